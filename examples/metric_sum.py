"""Two hundred people hold a number from 0 to 500. What sum may be published through a shuffler, and what does it tell?

The noise is found for epsilon = 0.2 for every unit, up to data sets that are 20 units apart. Then everybody's message
is drawn, shuffled, and summed up.
"""

import numpy as np

from optdp import MetricShuffle, Source, solve

design = solve(MetricShuffle("geo", n=200, k=500, delta="1e-5", epsilon="0.2", max_distance=20))
print(f"eps_geo = {design.eps_geo:.4f}, padding {design.c}, {design.bits_per_user} bits each")
print(f"error {design.mae:.2f}; one message alone: {design.local_epsilon:.4f} for each unit")
print("distance   epsilon for each unit")
for distance, epsilon in design.profile:
    if distance in (1, 2, 5, 10, 20):
        print(f"{distance:<10.0f} {epsilon:.4f}")

values = np.random.default_rng(1).binomial(500, 0.3, size=200)  # made up
protocol = design.protocol()
messages = protocol.randomize(values, Source())  # secure; Source(1) repeats itself and is not private
estimate = protocol.analyze(protocol.shuffle(messages))
print(f"true sum {values.sum()}, estimate {estimate.sums[0]:.0f}, 95 in 100 times within {estimate.within_95:.0f}")
