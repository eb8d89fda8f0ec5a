"""How do I get from "100 people, epsilon 0.3" to a number that I may publish?"""

import sys
from pathlib import Path

from optdp import Population, SingleLTE, solve, verify

# Who is counted: 100 employees, each on sick leave with probability one tenth, independently.
problem = SingleLTE(Population.binomial(100, "0.1"), epsilon="0.3")

# Design time: find the best noise matrix and write it down.
solution = solve(problem)
print(f"mean absolute error {solution.mae:.3f}, geometric noise {solution.baseline_mae:.3f}")
print(f"epsilon under the prior, proved: {float(solution.certificate.epsilon):.6g}")
file = Path(sys.argv[1] if len(sys.argv) > 1 else "sick-leave.json")
solution.save(file)

# Production: trust nothing but the file. `verify` recomputes every claim and raises if one does not hold.
checked = verify(file)
(released,) = checked.matrix.sample(12)
print(f"verified {file.name} in {checked.seconds:.2f} s; 12 people are away, we publish {released}")
