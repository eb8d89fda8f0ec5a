"""Ten thousand people answer by randomized response on ten values at eps0 = 2. What is epsilon once they are shuffled?

`value` is promised for every data set, `lower` is broken by one: the truth lies between. The paper's bounds are beside.
"""

from optdp import KRR, Amplification, solve

answer = solve(Amplification(KRR(10), eps0=2, n=10_000, delta="1e-6"))
print(f"epsilon {answer.value:.6f}, by the bound {answer.method}")
print(f"limit of any analysis: {answer.lower:.6f}: {100 * (answer.value / answer.lower - 1):.2f}% is left")

print("bound              epsilon")
for row in answer.bounds:
    if row.method in ("hoeffding-k-rr", "bennett-k-rr", "clones", "stronger-clones", "blanket"):
        print(f"{row.method:<18} {row.value:.6f}")
