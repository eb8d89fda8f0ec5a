"""How much worse is a shuffled histogram than that of a trusted curator? (Paper C, Tables 4 and 5, Figs. 1 to 3)

By default draws of N(0, 2), rounded to -7..7, a thousand and a hundred thousand of them. Or the values of a CSV file.
Usage: python shuffled_histogram.py [people.csv column]
"""

import csv
import sys
from collections import Counter

import numpy as np

from optdp import ShuffleHistogram, compare_with_central, solve


def drawn(n: int) -> list[int]:
    values = np.clip(np.rint(np.random.default_rng(1).normal(0.0, 2.0, n)), -7, 7).astype(int)
    return np.bincount(values + 7, minlength=15).tolist()


if len(sys.argv) > 2:
    with open(sys.argv[1], encoding="utf-8-sig", newline="") as file:
        data = [list(Counter(row[sys.argv[2]] for row in csv.DictReader(file)).values())]
else:
    data = [drawn(1_000), drawn(100_000)]

for counts in data:
    n, k, commonest = sum(counts), len(counts), int(np.argmax(counts))
    design = solve(ShuffleHistogram(k, n, eps0=4, delta="1e-6"))
    print(f"{n:,} people, {k} values, eps0 = 4: epsilon {design.epsilon:.4f} for the whole histogram, delta 1e-6")
    print("mean error of         the commonest value   all values (total variation)")
    found = compare_with_central(counts, eps0=4, epsilon=f"{design.epsilon:.9f}", delta="1e-6", runs=50)
    for name in ("reports", "inversion", "projection", "likelihood", "gaussian", "gaussian-projected", "geometric"):
        print(f"{name:<21} {found.individual[name][commonest]:<21.2e} {found.community[name].mean():.2e}")
