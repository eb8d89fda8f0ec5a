"""How much noise is left if m entities share it, and how does that change with their size? (Paper A, Fig. 5)

Usage: python figure_5.py [picture.svg [people ...]], where people is the number in all entities together.
The picture in the documentation: python figure_5.py figure-5.svg 50 100 150 200
"""

import sys

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

try:
    import matplotlib
    from matplotlib import pyplot as plt
except ImportError:
    print("no picture: matplotlib is not installed (pip install 'optdp[plot]')")
    sys.exit(0)

place = sys.argv[1] if len(sys.argv) > 1 else "figure-5.svg"
grey = "#808890"  # readable on white and on black
inks = dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), grey)
matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "optdp", "font.size": 11, **inks})
figure, both = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
for axes, count in zip(both, (2, 5), strict=True):
    axes.axhline(plan.baseline_mae, color=grey, linewidth=2.5)
    axes.text(sizes[-1], plan.baseline_mae - 0.25, "geometric noise", ha="right")
    for share, colour in (("0.1", "#e07b00"), ("0.05", "#2f81f7")):
        for method, style in (("divisible", "--"), ("joint", "-")):
            name = f"p = {share}, " + ("one plan" if method == "joint" else "each alone")
            axes.plot(sizes, curves[count, share, method], style, marker=".", color=colour, label=name)
    axes.set(title=f"{count} entities", xlabel="people in all", ylim=(0, 3.6), xticks=sizes)
    axes.spines[["top", "right"]].set_visible(False)
both[0].set_ylabel("mean absolute error")
both[0].legend(frameon=False, fontsize=9, loc=(0.02, 0.42))
figure.savefig(place, transparent=True, metadata={"Date": None} if place.endswith(".svg") else None)
print(f"wrote {place}")
