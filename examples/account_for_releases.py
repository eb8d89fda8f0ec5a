"""I publish the same kind of sum every day. What do all releases together reveal?

Epsilons under a prior do not add up. The ordinary epsilon does, and dp-accounting adds up better than by hand.
"""

from dp_accounting.pld import privacy_loss_distribution as pld

from optdp import Population, SingleLTE, solve

managers = Population.iid(10, ["0.35", "0.3", "0.2", "0.1", "0.05"])  # 0 to 4 urgent e-mails in an hour
solution = solve(SingleLTE(managers, epsilon="0.3", fallback_epsilon="0.5"))
print(f"one release: epsilon 0.3 under the prior, {float(solution.certificate.ordinary_epsilon):.4f} without it")

daily = solution.to_pld()
print(f"the distribution is that of {daily.optdp_note}")
print("releases   by hand   by dp-accounting, delta = 1e-6")
for days in (1, 10, 30, 100):
    print(f"{days:<10} {days * 0.5:<9.2f} {daily.self_compose(days).get_epsilon_for_delta(1e-6):.2f}")

noise = pld.from_gaussian_mechanism(standard_deviation=5.0)
together = daily.self_compose(30).compose(noise)
print(f"30 releases and one with Gaussian noise: {together.get_epsilon_for_delta(1e-6):.2f}")
