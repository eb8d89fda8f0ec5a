"""How large is the error for each true count, and on average? (Paper A, Fig. 4, with the optimum)

Usage: python figure_4.py [picture.svg]
"""

import sys

from optdp import Population, SingleLTE, errors_by_input, solve

curves = {}
for share, colour in (("0.1", "#e07b00"), ("0.5", "#2f81f7")):
    solution = solve(SingleLTE(Population.binomial(100, share), epsilon="0.3"))
    curves[share] = (errors_by_input(solution.mechanism), solution.mae, colour)
    print(f"Bin(100, {share}): error {solution.mae:.3f}, geometric {solution.baseline_mae:.3f}")

try:
    import matplotlib
    from matplotlib import pyplot as plt
except ImportError:
    print("no picture: matplotlib is not installed (pip install 'optdp[plot]')")
    sys.exit(0)

place = sys.argv[1] if len(sys.argv) > 1 else "figure-4.svg"
grey = "#808890"  # readable on white and on black
keys = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "optdp", "font.size": 11, **dict.fromkeys(keys, grey)})
figure, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
axes.axhline(solution.baseline_mae, color=grey, linewidth=2.5)
axes.text(100, solution.baseline_mae + 0.08, f"geometric noise, any prior: {solution.baseline_mae:.2f}", ha="right")
for (share, (errors, mae, colour)), at in zip(curves.items(), (16, 62), strict=True):
    axes.plot(errors, color=colour, linewidth=2)
    axes.axhline(mae, color=colour, linestyle="--", linewidth=1.2)
    axes.text(at, mae + 0.08, f"optdp, Bin(100, {share}): mean {mae:.2f}", color=colour)
axes.set(xlabel="true count", ylabel="mean absolute error", ylim=(0, 3.8), xlim=(-1, 101))
axes.spines[["top", "right"]].set_visible(False)
figure.savefig(place, transparent=True, metadata={"Date": None, "Creator": None})
print(f"wrote {place}")
