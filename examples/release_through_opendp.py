"""My pipeline is written in OpenDP. How do I put a noise matrix into it?

OpenDP speaks of ordinary differential privacy, so the table needs a fallback: the measurement carries that epsilon.
"""

import opendp.prelude as dp

from optdp import OptdpError, Population, SingleLTE, solve

dp.enable_features("contrib", "honest-but-curious")  # we trust a measurement that OpenDP has not vetted itself
people = Population.binomial(50, "0.1")

# Without a fallback there is no ordinary epsilon, and nothing that OpenDP could count.
try:
    solve(SingleLTE(people, epsilon="0.3")).to_opendp()
except OptdpError as refusal:
    print(f"refused: {refusal}")

solution = solve(SingleLTE(people, epsilon="0.3", fallback_epsilon=1))
print(f"mean absolute error {solution.mae:.3f}, geometric noise {solution.baseline_mae:.3f}")

# Count, then release; and a second release of the same count with OpenDP's own noise.
rows = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
count = dp.t.make_count(*rows)
away = count >> solution.to_opendp()
print(f"one person more or less: epsilon {away.map(1):.4f}; two: {away.map(2):.4f}")
both = dp.c.make_composition([away, count >> dp.m.then_laplace(scale=4.0)])
print(f"with a Laplace release of 0.25: epsilon {both.map(1):.4f}")
print(f"seven people are away, we publish {away(['Ada', 'Bo', 'Cem', 'Dina', 'Eve', 'Finn', 'Gil'])}")
