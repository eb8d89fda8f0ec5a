"""At which granularity can shuffled colours be told? (Paper E, Figures 1 and 5h)

Eight colours lie in two clusters, of two crescents each, of two halves each. A model learns the colours from what is
released, and is asked for the colour, the crescent and the cluster. With larger groups it knows coarser things only.
Usage: python order_granularity.py [picture.svg]
"""

import sys

import numpy as np

from optdp.numbers.source import Source
from optdp.order.mechanism import ratio
from optdp.order.study import (
    COLOURS,
    accuracy,
    crescents,
    debiased,
    nearest,
    nearest_model,
    no_shuffle,
    order_shuffle,
    reports,
    uniform_shuffle,
)
from optdp.order.tradeoff import radius_sweep

n, eps, alpha = 4000, 2.55, 4
source = Source(1)  # a simulation, to be repeated
points, colours = crescents(n, source)
told = reports(colours, COLOURS, eps, source)
model = nearest_model(nearest(points, source, 50), COLOURS)

releases = {"no shuffle": no_shuffle(n)}
for design in radius_sweep(points, [0.03, 0.06, 0.1, 0.2], alpha):
    releases[f"radius {design.at}"] = order_shuffle(design.order, ratio(design.alpha, design.sensitivity))
releases["uniform shuffle"] = uniform_shuffle(n)

print(f"{n:,} records, eps = {eps}, alpha = {alpha}: how often a model tells the")
print("                  colour (8)  crescent (4)  cluster (2)")
guesses = {}
for name, shuffle in releases.items():
    shares = debiased(model(told[shuffle(source)]), COLOURS, eps)
    right = [accuracy(shares, colours, np.arange(COLOURS) >> bits) for bits in (0, 1, 2)]
    guesses[name] = shares.argmax(axis=1)
    print(f"{name:<17} {right[0]:<11.3f} {right[1]:<13.3f} {right[2]:.3f}")

if len(sys.argv) > 1:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        print("no picture: matplotlib is not installed")
    else:
        figure, axes = plt.subplots(1, len(guesses), figsize=(3 * len(guesses), 2.4), sharex=True, sharey=True)
        for axis, (name, guess) in zip(axes, guesses.items(), strict=True):
            axis.scatter(*points[::4].T, c=guess[::4], s=3, cmap="Paired", vmin=0, vmax=11, rasterized=True)
            axis.set_title(name)
            axis.set_axis_off()
        figure.savefig(sys.argv[1])
        print(f"wrote {sys.argv[1]}")
