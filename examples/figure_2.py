"""Several entities share the noise. What does each do to its own count first, and who pays for it? (Paper A, Fig. 2)

One of four entities with 50 people each. It moves its count towards the middle (mu), so that the moved count with noise
looks like the count without. Which count gets which report is then chosen so that the error is least.
Usage: python figure_2.py [picture.svg]
"""

from pictures import canvas, grey, keep

from optdp import MultiLTE, Population
from optdp.plan.coupling import against_share, report_laws
from optdp.plan.divisible import design

people = Population.binomial(50, "0.5")
problem = MultiLTE([people] * 4, epsilon="0.3", method="divisible")
panels = {}
for contraction, name in (("shifts", "the paper's search (VI-D)"), ("optimal", "the best by a linear program")):
    plan = design(problem, contraction, level=1)  # the paper's level of noise
    laws = panels[name] = report_laws(people, plan.parties[0])
    far = [abs(law - laws.prior).sum() / 2 for law in (laws.noisy, laws.base)]
    rows = against_share(problem, 0, plan.parties[0])
    kept = [row.x for row in rows if not row.worse]
    print(f"{name}: error of the sum of all four {float(plan.certificate.mae):.3f}, of geometric noise 3.284")
    print(f"  likeliest count {laws.prior.max():.4f}, with noise {laws.noisy.max():.4f}")
    print(f"  likeliest moved count {laws.contracted.max():.4f}, with noise {laws.base.max():.4f}")
    print(f"  total variation from the counts: with noise {far[0]:.4f}, moved and with noise {far[1]:.4f}")
    print(f"  Eq. (7): the deployed table keeps that law: {abs(laws.released - laws.base).max() < 1e-9}")
    print(f"  Eq. (8): at most the error of a share of noise, {float(rows[0].share):.2f}, at {kept[0]}..{kept[-1]}")
    print("  error at " + ", ".join(f"{x}: {float(rows[x].error):.2f}" for x in (10, 15, 20, 25, 30, 35, 40)))

figure, both = canvas(1, 2, figsize=(9, 4.2), sharey=True)
for axes, (name, laws) in zip(both, panels.items(), strict=True):
    shown = [s for s in laws.outputs if 10 <= s <= 40]
    for law, style, colour, label in (
        (laws.prior, "-", grey, "count, Bin(50, 0.5)"),
        (laws.noisy, "--", "#2da44e", "count and a share of noise"),
        (laws.contracted, "-", "#d1242f", "moved count: mu"),
        (laws.base, "--", "#2f81f7", "mu and a share of noise: the report"),
    ):
        axes.plot(shown, [law[s - laws.first] for s in shown], style, color=colour, linewidth=2, label=label)
    axes.set(title=name, xlabel="count or report", ylim=(0, 0.15), xlim=(10, 40))
both[0].set_ylabel("probability")
figure.legend(*both[0].get_legend_handles_labels(), frameon=False, fontsize=9, loc="outside lower center", ncols=4)
keep(figure, "figure-2.svg")
