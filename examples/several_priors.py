"""I do not know the share exactly. Can the guarantee hold for every share that I think possible?"""

from optdp import Population, SingleLTE, epsilon_under, solve

shares = ("0.1", "0.08", "0.09", "0.11", "0.12")  # the error is minimised under the first
priors = [Population.binomial(100, share) for share in shares]

narrow = solve(SingleLTE(priors[0], epsilon="0.3"))
robust = solve(SingleLTE(priors, epsilon="0.3"))
errors = f"one prior {narrow.mae:.3f}, five priors {robust.mae:.3f}, geometric {robust.baseline_mae:.3f}"
print(f"mean absolute error: {errors}")

print("real share   epsilon, one prior   epsilon, five priors")
for share in ("0.08", "0.085", "0.1", "0.115", "0.12"):
    world = Population.binomial(100, share)
    real = [float(epsilon_under(s.problem, s.mechanism, world)) for s in (narrow, robust)]
    print(f"{share:<12} {real[0]:<20.3f} {real[1]:.3f}")
