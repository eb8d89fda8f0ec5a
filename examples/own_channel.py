"""My randomizer is in no catalogue: a table of three answers. What does shuffling buy for it?

A row for each true value, a column for each message; rows sum to 1. A CSV file works too, see the how-to.
"""

from optdp import Amplification, Channel, profile, solve

# "yes" is often softened to "perhaps", "no" hardly ever.
channel = Channel.of([[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]])
print(f"eps0 of one report alone: {channel.own_eps0:.4f}")

answer = solve(Amplification(channel, n=5_000, delta="1e-8"))
print(f"epsilon of 5,000 shuffled ones: {answer.value:.4f}, surely not below {answer.lower:.4f}")

print("epsilon   delta lies between")
for epsilon, lower, upper in profile(answer.problem, [0.05, 0.1, 0.15, 0.2]):
    print(f"{epsilon:<9} {lower:.2e} and {upper:.2e}")
