"""How much privacy does plain geometric noise waste? (Paper A, Fig. 1)

The quotient Pr[s | w=0] / Pr[s | w=1] of every output s must lie between e^-eps and e^eps. Geometric noise stays far
inside where outputs are likely; the optimal matrix uses the room. Usage: python figure_1.py [picture.svg]
"""

import math

from pictures import canvas, keep

from optdp import Population, SingleLTE, quotients, solve

people = Population.binomial(50, "0.5")
curves = {}
for method in ("geometric", "lp"):
    solution = solve(SingleLTE(people, epsilon="0.3", method=method, tail="none"))
    (curves[method],) = quotients(solution.problem, solution.mechanism)
    some = " ".join(f"{curves[method].values[s]:.3f}" for s in (15, 20, 25, 30, 35))
    print(f"{method:<10} error {solution.mae:.3f}, quotients at 15, 20, 25, 30, 35: {some}")

figure, axes = canvas(figsize=(7, 3.5))
for (method, curve), style in zip(curves.items(), ("-", "."), strict=True):
    axes.plot(curve.outputs, curve.values, style, label={"geometric": "geometric noise", "lp": "optdp"}[method])
axes.axhline(math.exp(0.3), color="gray", linestyle=":")
axes.axhline(math.exp(-0.3), color="gray", linestyle=":")
axes.set(xlabel="output s", ylabel="Pr[s | 0] / Pr[s | 1]", title="DP quotients, Bin(50, 0.5), epsilon 0.3")
axes.legend()
keep(figure, "figure-1.svg")
