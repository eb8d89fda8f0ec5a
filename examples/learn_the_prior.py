"""I have no prior, but I have noisy answers from the past. Can I learn one without asking anybody again?

Last year 1,000 people answered "were you away today?" with randomised response: the truth with probability 3/4,
the opposite otherwise. What is learnt from releases reveals nothing more than they did.
"""

from fractions import Fraction

from optdp import Population, SingleLTE, epsilon_under, iterative_bayesian_update, solve

channel = [[0.75, 0.25], [0.25, 0.75]]  # channel[truth][answer]
answers = [700, 300]  # how many said no, and yes
law = iterative_bayesian_update(channel, answers)
print(f"share of people away, most likely: {float(law[1]):.4f}")

# An estimate is not the truth: design for a band around it as well (here two standard errors).
error = Fraction(2 * 145, 10_000)
band = [law[1], law[1] - error, law[1] + error]
learnt = solve(SingleLTE(Population.iid(100, law), epsilon="0.5"))
banded = solve(SingleLTE([Population.binomial(100, share) for share in band], epsilon="0.5"))

truth = Population.binomial(100, law[1] + error)
for name, solution in (("the estimate alone", learnt), ("the estimate and its band", banded)):
    real = float(epsilon_under(solution.problem, solution.mechanism, truth))
    print(f"{name}: error {solution.mae:.3f}; epsilon {real:.2f} at the edge of the band")
