"""Two offices publish one number together, and neither shows its own. How do we get from there to a plan?

Each office replaces its count by a draw from its own table; only the sum of the two draws is seen.
"""

import sys
from pathlib import Path

from optdp import MultiLTE, Population, solve, verify_plan

# 25 people in each office; each is away with probability one half, independently.
problem = MultiLTE([Population.binomial(25, "0.5")] * 2, epsilon="0.5", method="joint")

# Design time: one plan for both, and what it is worth.
plan = solve(problem)
print(f"mean absolute error of the sum {plan.mae:.3f}, shared geometric noise {plan.baseline_mae:.3f}")
print(f"lower bound for any plan: {float(plan.lower_bound):.3f}, even for one office that holds all data")
print(f"epsilon of everybody, proved: {float(plan.certificate.epsilon):.6g}")
folder = Path(sys.argv[1] if len(sys.argv) > 1 else "two-offices")
plan.save(folder)  # plan.json, party-0.json and party-1.json: each office needs only its own file

# Production: trust nothing but the files. `verify_plan` recomputes the joint claim and raises if it does not hold.
checked = verify_plan(folder)
counts = (11, 14)
reports = [table.sample(count)[0] for table, count in zip(checked.tables, counts, strict=True)]
print(f"verified {folder.name} in {checked.seconds:.2f} s; {sum(counts)} people are away, we publish {sum(reports)}")
# A single report is not private: add them up with `optdp aggregate` (examples/aggregate_locally.py).
