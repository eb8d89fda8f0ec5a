"""Three hundred people, values up to 100, epsilon = 0.1 for each unit. Which mechanism is to be used?

All keep the same promise while the shuffler is honest. They differ in what a single message gives away (per unit, if
the shuffler fails), in the error of the sum, and in how many bits everybody sends.
"""

import math

from optdp import MetricShuffle, compare_mechanisms

asked = MetricShuffle("hybrid", n=300, k=100, delta="1e-6", epsilon="0.1", local_epsilon=2)
print("mechanism     one message   error    bits")
for row in compare_mechanisms(asked):
    alone = f"{row.local_epsilon:.3f}" if math.isfinite(row.local_epsilon) else "everything"
    print(f"{row.problem.mechanism:<13} {alone:<13} {row.mae:<8.2f} {row.bits_per_user}")
