"""Do the neighbours' answers give a secret away, and what is still learned? (Paper E, Figures 3 and 5)

Everybody reports by randomized response; an adversary takes a vote of the 25 nearest reports. Groups grow with the
radius, at the same alpha. By default a made-up data set of 3,000 people with eight colours; or the rows of a CSV file.
Usage: python order_attack.py [people.csv x-column y-column value-column radius ...]
"""

import sys

import numpy as np

from optdp.numbers.source import Source
from optdp.order.sources import column_csv, from_points, points_csv
from optdp.order.study import crescents, local_truth, nearest, nearest_model
from optdp.order.tradeoff import attack_curve, learnability_curve, radius_sweep

source = Source(1)  # a simulation, to be repeated
if len(sys.argv) > 5:
    file, x, y, column, *given = sys.argv[1:]
    points = points_csv(file, [x, y])
    _, values = np.unique(column_csv(file, column, numbers=False), return_inverse=True)
    kept = np.argsort(source.words(len(values)))[:3000]
    points, values, radii = points[kept], values[kept], [float(radius) for radius in given]
else:
    points, values = crescents(3000, source)
    radii = [0.0, 0.02, 0.04, 0.06, 0.1, 0.2]

k, eps, alpha = int(values.max()) + 1, 2.5, 4
designs = radius_sweep(points, radii, alpha)
attack = attack_curve(designs, nearest(points, source), values, k, eps, source, trials=30)
truth = local_truth(from_points(points, radii[len(radii) // 2]), values, k)
model = nearest_model(nearest(points, source, 60), k)
learned = learnability_curve(designs, model, truth, values, k, eps, source)

print(f"{len(values):,} people, {k} values, eps = {eps}, alpha = {alpha}: ours, and the order and bound of the paper")
print("radius   group   theta      paper's    vulnerable  paper's  error of trends  paper's")
print(f"no shuffle                           {attack.local:<11.3f}          {learned.local:.3f}")
for rho, error in zip(attack.rows, learned.rows, strict=True):
    print(
        f"{rho.at:<8g} {rho.group_size:<7.1f} {rho.theta:<10.3g} {rho.paper_theta:<10.3g} {rho.found:<11.3f} "
        f"{rho.paper_found:<8.3f} {error.found:<16.3f} {error.paper_found:.3f}"
    )
print(f"uniform shuffle                      {attack.uniform:<11.3f}          {learned.uniform:.3f}")
