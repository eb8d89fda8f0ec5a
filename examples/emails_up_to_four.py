"""A person may contribute more than 1. What is protected, and what does it cost?

`epsilon` is for one person's whole contribution 0..D. With adjacency "unit" each step w -> w+1 is protected at
epsilon/D, which implies epsilon for every pair. With "all" every pair is protected at epsilon directly: less noise.
"""

from optdp import Population, SingleLTE, quotients, solve

managers = Population.iid(40, ["0.35", "0.3", "0.2", "0.1", "0.05"])  # 0 to 4 urgent e-mails in an hour
for adjacency in ("unit", "all"):
    solution = solve(SingleLTE(managers, epsilon=1, adjacency=adjacency))
    pairs = quotients(solution.problem, solution.mechanism)
    print(
        f"{adjacency:<5} {len(pairs)} pairs of secrets, error {solution.mae:.3f}, "
        f"geometric {solution.baseline_mae:.3f}, epsilon {float(solution.certificate.epsilon):.6g}"
    )
