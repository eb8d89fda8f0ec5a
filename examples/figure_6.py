"""What does a more careful prior cost, and is it more careful? (Paper A, Fig. 6)

Two entities, 10% and 20% away. A careful designer assumes that only a share of the people is uncertain. The paper says
that privacy then also holds if all are. For noise that is added that is so; for tables it must be asked for.
Usage: python figure_6.py [picture.svg [people in each entity]]
The picture in the documentation: python figure_6.py figure-6.svg 50
"""

import sys

from pictures import canvas, grey, keep

from optdp import MultiLTE, Population, caution, solve

people = int(sys.argv[2]) if len(sys.argv) > 2 else 15
problem = MultiLTE([Population.binomial(people, share) for share in ("0.1", "0.2")], epsilon="0.3", method="joint")
first = solve(problem)
print(f"all people uncertain: error {first.mae:.3f}, geometric {first.baseline_mae:.3f}")
rows = [("1", 0.0, first.mae)]
print("If all are uncertain after all:")
print("uncertain   plan for that alone: error, epsilon   plan for both: error, epsilon")
for found in caution(problem, ["0.6", "0.3", "0.1"]):
    share, real = f"{float(found.share):g}", "infinite" if found.epsilon is None else f"{found.epsilon:.2f}"
    rows.append((share, found.mae, found.robust_mae))
    print(f"{share:<11} {found.mae:<7.3f} {real:<29} {found.robust_mae:<7.3f} 0.30")

figure, axes = canvas(figsize=(7, 3.4))
axes.axhline(first.baseline_mae, color=grey, linewidth=2.5)
axes.text(-0.4, first.baseline_mae - 0.25, "geometric noise", ha="left")
places = range(len(rows))
axes.bar(
    [x - 0.2 for x in places],
    [row[1] for row in rows],
    0.38,
    color="#e07b00",
    alpha=0.6,
    label="plan for that prior alone: not private",
)
axes.bar(
    [x + 0.2 for x in places], [row[2] for row in rows], 0.38, color="#2f81f7", label="plan for that and the full prior"
)
axes.set(xlabel="share of the people that is uncertain", ylabel="mean absolute error", ylim=(0, 4.2))
axes.set_xticks(list(places), [row[0] for row in rows])
axes.legend(frameon=False, fontsize=9, loc="upper center", ncols=2)
keep(figure, "figure-6.svg")
