"""Counts are added up by servers that see only shares of them, as with Prio. Who adds the noise, and which?

Noise of one law for every sum can be drawn by a server that does not know the sum: it adds the noise to its share.
Nobody ever holds the true sum. The server that drew the noise could take it off the published number, so it is trusted
not to, as the person who draws always is.
"""

import secrets

from optdp import Population, SingleLTE, epsilon_under, solve

FIELD = 2**61 - 1
"""Shares are added up modulo this prime."""
people = Population.binomial(100, "0.1")
problem = SingleLTE(people, epsilon="0.3", form="additive")
solution = solve(problem)
print(f"error {solution.mae:.3f}, of geometric noise {solution.baseline_mae:.3f}")


def split(value: int) -> list[int]:
    """A number as three shares; any two of them say nothing about it."""
    first, second = secrets.randbelow(FIELD), secrets.randbelow(FIELD)
    return [first, second, (value - first - second) % FIELD]


# Everybody splits what they contribute, and each server adds up the shares that it gets.
true = [int(secrets.randbelow(10) == 0) for _ in range(100)]
servers = [sum(shares) % FIELD for shares in zip(*map(split, true), strict=True)]

(noise,) = solution.mechanism.sample(0)  # a release of the sum 0 is the noise itself
servers[0] = (servers[0] + noise) % FIELD

total = sum(servers) % FIELD
published = total if total < FIELD // 2 else total - FIELD
print(f"we publish {published}")
print(f"the noise is the same whatever the sum: {published - noise == sum(true)}")

wider = Population.binomial(100, "0.2")
print(f"epsilon if everybody's chance is 0.2: {float(epsilon_under(problem, solution.mechanism, wider)):.3f}")
