"""How large is the error for each true count, and on average? (Paper A, Fig. 4, with the optimum)

Usage: python figure_4.py [picture.svg]
"""

from pictures import canvas, grey, keep

from optdp import Population, SingleLTE, errors_by_input, solve

panels = []
for share, window, colour in (("0.1", range(31), "#e07b00"), ("0.5", range(30, 79), "#2f81f7")):
    people = Population.binomial(100, share)
    solution = solve(SingleLTE(people, epsilon="0.3"))
    prior = [float(people.total.fraction(x)) for x in window]
    errors = errors_by_input(solution.mechanism)[window.start : window.stop]
    panels.append((share, window, colour, prior, errors, solution.mae, solution.baseline_mae))
    print(f"Bin(100, {share}): error {solution.mae:.3f}, geometric {solution.baseline_mae:.3f}")

figure, both = canvas(1, 2, figsize=(9, 3.4), sharey=True)
for axes, (share, window, colour, prior, errors, mae, baseline) in zip(both, panels, strict=True):
    axes.bar(window, [2 * value / max(prior) for value in prior], width=0.9, color=grey, alpha=0.25)
    axes.axhline(baseline, color=grey, linewidth=2.5)
    axes.text(window[-1], baseline + 0.08, f"geometric noise {baseline:.2f}", ha="right")
    axes.plot(window, errors, color=colour, linewidth=2)
    axes.axhline(mae, color=colour, linestyle="--", linewidth=1.3)
    axes.text(window[-1], mae + 0.08, f"optdp, mean {mae:.2f}", ha="right", color=colour)
    axes.set(title=f"Bin(100, {share}), grey: how likely", xlabel="true count", ylim=(0, 3.8))
both[0].set_ylabel("mean absolute error")
keep(figure, "figure-4.svg")
