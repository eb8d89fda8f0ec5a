"""Ten subsidiaries count e-mails for their holding company. What does each way to add noise cost? (Paper A, Fig. 7)

Each employee sends 0 to 4 e-mails. By default two small subsidiaries, which takes seconds. Ten of the paper's size,
50 90 130 170 210 250 290 330 370 400, take ten minutes.
Usage: python figure_7.py [picture.svg [people in each subsidiary ...]]
"""

import sys

from optdp import MultiLTE, Population, solve

law = ["0.5", "0.2", "0.15", "0.1", "0.05"]
sizes = [int(number) for number in sys.argv[2:]] or [5, 8]
parties = [Population.iid(people, law) for people in sizes]
mean = sum(sizes) * sum(w * float(chance) for w, chance in enumerate(law))

ways = {"shares of geometric noise": "geometric", "each designs alone": "divisible", "one plan": "joint"}
if max(sizes) > 40:
    del ways["each designs alone"]  # its programs are too slow for entities of that size
errors = {name: solve(MultiLTE(parties, epsilon="0.3", method=method)).mae for name, method in ways.items()}
geometric = errors["shares of geometric noise"]
for name, error in errors.items():
    print(
        f"{name:<26} error {error:8.4f}, {error / mean:8.4%} of the mean, {1 - error / geometric:6.1%} below geometric"
    )

try:
    import matplotlib
    from matplotlib import pyplot as plt
except ImportError:
    print("no picture: matplotlib is not installed (pip install 'optdp[plot]')")
    sys.exit(0)

place = sys.argv[1] if len(sys.argv) > 1 else "figure-7.svg"
grey = "#808890"  # readable on white and on black
inks = dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), grey)
matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "optdp", "font.size": 11, **inks})
figure, axes = plt.subplots(figsize=(8, 2.2), layout="constrained")
bars = axes.barh(list(errors), list(errors.values()), color=[grey, *("#2f81f7", "#e07b00")[-len(errors) + 1 :]])
axes.bar_label(bars, fmt=" %.3g")
axes.invert_yaxis()
axes.set(xlabel="mean absolute error, e-mails", xlim=(0, 1.12 * max(errors.values())))
axes.spines[["top", "right"]].set_visible(False)
figure.savefig(place, transparent=True, metadata={"Date": None} if place.endswith(".svg") else None)
print(f"wrote {place}")
