"""My people are not alike: private clients rarely make a large transfer, companies often do. Who is protected?

Everybody, each at epsilon: the guarantee is checked for every distinct kind of person against the law of the others.
"""

from optdp import Population, SingleLTE, solve

clients = [["0.97", "0.03"]] * 120
shops = [["0.8", "0.2"]] * 40
companies = [["0.4", "0.6"]] * 15

branch = Population.independent(clients + shops + companies)
print(branch.describe)
solution = solve(SingleLTE(branch, epsilon="0.5"))
print(f"error {solution.mae:.3f}, geometric {solution.baseline_mae:.3f}")
print(f"epsilon for everybody: {float(solution.certificate.epsilon):.6g}")
