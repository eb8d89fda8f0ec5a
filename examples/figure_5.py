"""How much noise is left if m entities share it, and how does that change with their size? (Paper A, Fig. 5)

Usage: python figure_5.py [picture.svg [people ...]], where people is the number in all entities together.
The picture in the documentation: python figure_5.py figure-5.svg 50 100 150 200
"""

import sys

from pictures import canvas, grey, keep

from optdp import MultiLTE, Population, solve

sizes = [int(number) for number in sys.argv[2:]] or [10, 20]
curves = {}
for count in (2, 5):
    for share in ("0.1", "0.05"):
        for method in ("joint", "divisible"):
            errors = []
            for people in sizes:
                parties = [Population.binomial(people // count, share)] * count
                plan = solve(MultiLTE(parties, epsilon="0.3", method=method))
                errors.append(plan.mae)
            curves[count, share, method] = errors
            listed = " ".join(f"{error:.3f}" for error in errors)
            print(f"m = {count}, p = {share:<4} {method:<9} {listed}  (geometric {plan.baseline_mae:.3f})")

figure, both = canvas(1, 2, figsize=(9, 3.4), sharey=True)
for axes, count in zip(both, (2, 5), strict=True):
    axes.axhline(plan.baseline_mae, color=grey, linewidth=2.5)
    axes.text(sizes[-1], plan.baseline_mae - 0.25, "geometric noise", ha="right")
    for share, colour in (("0.1", "#e07b00"), ("0.05", "#2f81f7")):
        for method, style in (("divisible", "--"), ("joint", "-")):
            name = f"p = {share}, " + ("one plan" if method == "joint" else "each alone")
            axes.plot(sizes, curves[count, share, method], style, marker=".", color=colour, label=name)
    axes.set(title=f"{count} entities", xlabel="people in all", ylim=(0, 3.6), xticks=sizes)
both[0].set_ylabel("mean absolute error")
both[0].legend(frameon=False, fontsize=9, loc=(0.02, 0.42))
keep(figure, "figure-5.svg")
