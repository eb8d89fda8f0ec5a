"""I have a favourite LP solver. Can I deploy what it returns?

Not as it stands: "optimal" is said within tolerances, and privacy is a statement about quotients of tiny numbers.
"""

from optdp import Population, SingleLTE, compare

names = ["highs", "scipy", "clarabel"]
problem = SingleLTE(Population.binomial(60, "0.5"), epsilon="0.3")
print(f"{'backend':<12} status    seconds  error   epsilon as returned  epsilon repaired")
for row in compare(problem, names, timeout=60):
    if row.mae is None or row.seconds is None:
        print(f"{row.backend:<12} {row.status}: {row.note}")
        continue
    figures = f"{row.seconds:<8.2f} {row.mae:.4f}  {row.raw_epsilon:<20} {row.certified_epsilon}"
    print(f"{row.backend:<12} {row.status:<9} {figures}")
