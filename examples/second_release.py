"""Yesterday I released a count. May I release the same count again?

After a release the observer's prior is the posterior. The first matrix says nothing about a second draw; a matrix
designed for the posterior does. Both together then cost at most the sum of the two epsilons.
"""

from optdp import Population, SingleLTE, epsilon_under, posterior, solve

prior = Population.binomial(60, "0.2")
first = solve(SingleLTE(prior, epsilon="0.3", fallback_epsilon=2))
released = 6
belief = posterior(prior, first.mechanism, released)

again = epsilon_under(first.problem, first.mechanism, belief)
print(f"first release: {released}, error {first.mae:.3f}, epsilon 0.3 under the prior")
print(f"the same matrix a second time: epsilon {float(again):.2f} under the posterior, not 0.3")

# The people are no longer independent, so outputs must stay in range (tail="none").
second = solve(SingleLTE(belief, epsilon="0.3", tail="none", never_worse=False))
print(f"a matrix for the posterior: epsilon {float(second.certificate.epsilon):.2f}, error {second.mae:.3f}")
