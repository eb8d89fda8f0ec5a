"""My queries are written with OpenDP's Context. How does a query end with a table of optdp's?

OpenDP speaks of ordinary differential privacy, so the table needs a fallback, and the context counts that epsilon.
"""

import opendp.prelude as dp

from optdp import Population, SingleLTE, solve
from optdp.bridges.opendp import in_context

dp.enable_features("contrib", "honest-but-curious")  # we trust a measurement that OpenDP has not vetted itself
in_context()

solution = solve(SingleLTE(Population.binomial(50, "0.1"), epsilon="0.3", fallback_epsilon=1))
ctx = dp.Context.compositor(
    data=["Ada", "Bo", "Cem", "Dina", "Eve", "Finn", "Gil"],
    privacy_unit=dp.unit_of(contributions=1),
    privacy_loss=dp.loss_of(epsilon=2.0),
    split_evenly_over=2,
    domain=dp.vector_domain(dp.atom_domain(T=str)),
)
print(f"seven people are away, we publish {ctx.query().count().optdp(solution).release()}")
print(f"by OpenDP's own noise: {ctx.query().count().laplace().release()}")
try:
    ctx.query().count().optdp(solution).release()
except ValueError as refusal:
    print(f"a third query is refused: {str(refusal).splitlines()[0]}")
