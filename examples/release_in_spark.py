"""A column of counts is in Spark. How do I release each of them once?

Spark computes a column again whenever it likes, and a second draw is a second release: write the releases down before
anybody reads them. optdp must be installed where Spark's workers run.
"""

from pathlib import Path

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.functions import pandas_udf

from optdp import Population, SingleLTE, solve, verify

solve(SingleLTE(Population.binomial(100, "0.1"), epsilon="0.3")).save("sick-leave.json")
matrix = verify("sick-leave.json").matrix  # checked once, here; the workers get the table

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")


@pandas_udf("long")
def release(counts: pd.Series) -> pd.Series:
    return matrix.sample(counts)


offices = spark.createDataFrame([(f"office {i}", 8 + i % 5) for i in range(20)], "office string, away long")
offices.select("office", release("away").alias("released")).write.parquet("released")  # one draw for each office

first, again = (spark.read.parquet("released").orderBy("office").collect() for _ in range(2))
print(f"{len(first)} offices released, {Path('released').is_dir() and first == again and 'the same when read again'}")
print(f"{first[0].office}: we publish {first[0].released}")
spark.stop()
