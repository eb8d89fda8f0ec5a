"""How much worse is a shuffled histogram than that of a trusted curator? (Paper C, section 5: Tables 4, 5, Figs. 1 to 3)

By default draws of N(0, 2) in 15 bins, 1,000 and 100,000 of them. Give a CSV file and a column to use its values.
Usage: python shuffled_histogram.py [people.csv marital_status]
"""

import csv
import sys
from collections import Counter

import numpy as np

from optdp import ShuffleHistogram, compare_with_central, solve

if len(sys.argv) > 2:
    with open(sys.argv[1], encoding="utf-8", newline="") as file:
        held = Counter(row[sys.argv[2]] for row in csv.DictReader(file))
    data = [list(held.values())]
else:
    rng = np.random.default_rng(1)
    draws = [rng.normal(0.0, 2.0, size) for size in (1_000, 100_000)]
    data = [np.histogram(np.clip(values, -4.99, 4.99), 15, (-5, 5))[0].tolist() for values in draws]

for counts in data:
    n, k = sum(counts), len(counts)
    design = solve(ShuffleHistogram(k, n, eps0=4, delta="1e-6"))
    print(f"{n:,} people, {k} values, eps0 = 4: epsilon {design.epsilon:.4f} for the whole histogram, delta 1e-6")
    print("                     one value (largest)   all values (total variation)")
    found = compare_with_central(counts, eps0=4, epsilon=f"{design.epsilon:.9f}", delta="1e-6", runs=50)
    for name in ("reports", "inversion", "projection", "likelihood", "gaussian", "gaussian-projected"):
        print(f"{name:<20} {found.individual[name][np.argmax(counts)]:<21.2e} {found.community[name].mean():.2e}")
