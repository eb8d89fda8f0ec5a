"""How much of a noisy number does not depend on the number at all? (Paper B, Fig. 2)

A number in [0, 1] plus Laplace noise. With probability gamma the report comes from one law, whatever the number is: the
blanket. Among many shuffled reports those of the blanket are what hides everybody else.
Usage: python blanket_picture.py [picture.svg [epsilon]]
"""

import sys

import numpy as np
from pictures import canvas, grey, keep

from optdp.amplification.catalogue import Laplace
from optdp.amplification.decomposition import decompose

eps0 = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
blanket = decompose(Laplace(), eps0)
print(f"{eps0:g}-LDP Laplace noise: gamma {blanket.gamma:.4f}, so {blanket.gamma:.1%} of the reports are the blanket's")

places = np.linspace(-1.5, 2.5, 401)
print("number   most of what it adds is at   never at")
for number in (0.0, 1.0):
    added = blanket.residual(number, places)
    empty = places[added == 0.0]
    never = f"{empty[0]:.1f} and above" if number < 0.5 else f"{empty[-1]:.1f} and below"
    print(f"{number:<8} {places[added.argmax()]:<28.2f} {never}")

figure, axes = canvas(figsize=(8, 3.4))
axes.fill_between(places, blanket.density(places), color=grey, alpha=0.25, linewidth=0, label="the blanket")
axes.plot(places, blanket.density(places), color=grey, linewidth=2.5)
colours = ("#2f81f7", "#5f9e6e", "#e07b00", "#d1495b")
for number, colour in zip((0.0, 0.25, 0.75, 1.0), colours, strict=True):
    axes.plot(places, blanket.residual(number, places), color=colour, linewidth=1.3, label=f"what {number:g} adds")
axes.set(xlabel="report", ylabel="density", xlim=(places[0], places[-1]), ylim=(0, None))
axes.legend(frameon=False, fontsize=9)
keep(figure, "blanket.svg")
