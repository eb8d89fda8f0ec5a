"""How large may theta be for groups of friends, and whom does it protect? (Paper E, Figure 5c)

By default a made-up network of 2,000 people in 40 circles, where most of a circle answers alike; or an edge list, and a
file with a column of node numbers and a column of values.
Usage: python order_friends.py [edges.csv people.csv number-column value-column]
"""

import sys

import numpy as np

from optdp.numbers.source import Source
from optdp.order.sources import column_csv, edges_csv, from_graph
from optdp.order.study import nearest_by_hops
from optdp.order.tradeoff import alpha_sweep, attack_curve, width_sweep

source, random = Source(1), np.random.default_rng(1)  # a simulation, to be repeated
if len(sys.argv) > 4:
    edges, n = edges_csv(sys.argv[1])
    numbers = column_csv(sys.argv[2], sys.argv[3]).astype(int)
    _, answers = np.unique(column_csv(sys.argv[2], sys.argv[4], numbers=False), return_inverse=True)
    values = np.zeros(n, dtype=np.int64)
    values[numbers] = answers
else:
    n = 2000
    circle = np.arange(n) // 50
    within = random.integers(0, 50, (6 * n, 2)) + 50 * random.integers(0, 40, (6 * n, 1))
    next_door = np.stack([within[: n // 4, 0], (within[: n // 4, 1] + 50) % n], axis=1)
    hidden = random.permutation(n)  # the numbers say nothing about the circles
    edges = hidden[np.concatenate([within, next_door])]
    values = np.empty(n, dtype=np.int64)
    values[hidden] = (random.random(n) < np.where(circle % 2, 0.85, 0.15)).astype(np.int64)

groups = from_graph(edges, 1, n)
near = nearest_by_hops(edges, source, n)
k, eps = int(values.max()) + 1, 2.5
print(f"{n:,} people with {groups.sizes.mean() - 1:.1f} friends on average, at most {groups.sizes.max() - 1}")

found = attack_curve(alpha_sweep(groups, [4, 400, 40_000]), near, values, k, eps, source, trials=30)
print(f"theta is {found.rows[0].gain:.1f} times that of the paper's order and bound, for every alpha")
print("alpha    theta      vulnerable   by the paper's theta")
for row in found.rows:
    print(f"{row.at:<8g} {row.theta:<10.3g} {row.found:<12.3f} {row.paper_found:.3f}")
print(f"no shuffle          {found.local:.3f}")
print(f"uniform shuffle     {found.uniform:.3f}")

print("alpha = 4 for groups up to a width of the paper's order only:")
print("width    groups that are    theta      paper's    vulnerable  paper's")
for row in attack_curve(width_sweep(groups, [50, 75, 100, n - 1], 4), near, values, k, eps, source, 30).rows:
    thetas = f"{row.theta:<10.3g} {row.paper_theta:<10.3g}"
    print(f"{row.at:<8g} {row.covered:<18.1%} {thetas} {row.found:<11.3f} {row.paper_found:.3f}")
