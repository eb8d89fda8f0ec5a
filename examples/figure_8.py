"""How large is the error if the true sum is far from what was expected? (Paper A, Fig. 8)

Two subsidiaries in which each employee sends 0 to 4 e-mails. A plan spends its accuracy where the sum is likely.
Usage: python figure_8.py [picture.svg [people in each subsidiary]]
The picture in the documentation: python figure_8.py figure-8.svg 30
"""

import sys

from pictures import canvas, grey, keep

from optdp import MultiLTE, Population, SingleLTE, errors_by_input, errors_by_total, solve

law = ["0.5", "0.2", "0.15", "0.1", "0.05"]
people = int(sys.argv[2]) if len(sys.argv) > 2 else 12
plan = solve(MultiLTE([Population.iid(people, law)] * 2, epsilon="0.3", method="joint"))
whole = solve(SingleLTE(Population.iid(2 * people, law), epsilon="0.3"))  # one entity with all data, never worse
geometric = plan.baseline_mae
print(f"on average: plan {plan.mae:.3f}, one entity {whole.mae:.3f}, geometric {geometric:.3f}")

likely = errors_by_total(plan)
alone = errors_by_input(whole.mechanism)
mean = 2 * people * sum(w * float(chance) for w, chance in enumerate(law))
print("distance   how likely   plan     one entity")
for item in likely:
    gap = item.total - round(mean)
    if gap >= 0 and gap % 6 == 0:
        print(f"{gap:<10} {item.probability:<12.1e} {item.error:<8.3f} {alone[item.total]:.3f}")

figure, axes = canvas(figsize=(8, 3.4))
gaps, most = [item.total - mean for item in likely], max(item.probability for item in likely)
axes.bar(gaps, [geometric * item.probability / most for item in likely], width=0.9, color=grey, alpha=0.25)
axes.axhline(geometric, color=grey, linewidth=2.5)
axes.text(gaps[-1], geometric + 0.6, "geometric noise", ha="right")
axes.plot(gaps, [item.error for item in likely], color="#e07b00", linewidth=2, label=f"one plan, mean {plan.mae:.2f}")
ours = [alone[item.total] for item in likely]
axes.plot(gaps, ours, color="#2f81f7", linewidth=1.3, label=f"one entity, never worse, mean {whole.mae:.2f}")
axes.set(
    xlabel="distance of the true sum from its mean (grey: how likely)", ylabel="mean absolute error", ylim=(0, None)
)
axes.legend(frameon=False, fontsize=9)
keep(figure, "figure-8.svg")
