"""A hundred thousand people hold a number in [0, 1]. How well can their sum be known, one message each?

The best k and gamma are found. Beside the error: what the paper's constants give, and what nobody can go below.
"""

import numpy as np

from optdp import RealSum, Source, solve

best = solve(RealSum(n=100_000, epsilon="0.5", delta="1e-6"))
print(f"messages 0..{best.k}, {float(best.gamma):.2%} of them random; one message alone: {best.local_epsilon:.3f}")
print(f"root mean square error of the sum: {best.mse**0.5:.1f}")
print(f"with the constants of Theorem 1:   {best.theorem_1_mse**0.5:.1f}")
print(f"nobody is below:                   {best.lower_mse**0.5:.1f}")
print(f"a curator with Gaussian noise:     {best.central_mse**0.5:.1f}")

values = np.random.default_rng(1).beta(2.0, 5.0, size=best.n)  # made up
protocol = best.protocol()
estimate = protocol.analyze(protocol.shuffle(protocol.randomize(values, Source())))
print(f"true sum {values.sum():.1f}, estimate {estimate.total:.1f}, standard error {estimate.standard_error:.1f}")
