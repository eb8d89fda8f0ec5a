"""What if my prior is wrong, or somebody knows everyone else? What does a second, unconditional guarantee cost?

`fallback_epsilon` is ordinary differential privacy. It needs no prior, and it may be added up over releases.
"""

from optdp import Population, SingleLTE, solve

people = Population.binomial(50, "0.5")
print("fallback   mean absolute error   ordinary epsilon")
for fallback in (None, 4, 2, 1):
    solution = solve(SingleLTE(people, epsilon="0.3", fallback_epsilon=fallback))
    ordinary = solution.certificate.ordinary_epsilon
    shown = "infinite" if ordinary is None else f"{float(ordinary):.4g}"
    print(f"{fallback or 'none':<10} {solution.mae:<21.3f} {shown}")
geometric = solve(SingleLTE(people, epsilon="0.3", method="geometric"))
print(f"{'geometric':<10} {geometric.mae:<21.3f} {float(geometric.certificate.ordinary_epsilon):.4g}")
