"""An observer sees one bar of the histogram. Another sees all of it. Who learns how much?

`KRRCount` is for the first, in one data set. `Amplification` is for the second, over all data sets. Do not take the
first for the second: its delta is smaller.
"""

from optdp import KRR, Amplification, KRRCount, solve

people, values, local = 100, 10, 2
print("epsilon   one count, 80 of the others hold it   all counts, every data set")
for epsilon in ("0.5", "1", "1.5"):
    one = solve(KRRCount(n=people, n_x0=80, k=values, eps0=local, epsilon=epsilon))
    every = solve(Amplification(KRR(values), eps0=local, n=people, epsilon=epsilon))
    print(f"{epsilon:<9} {one.value:<37.3e} {every.value:.3e}")

few = solve(KRRCount(n=people, n_x0=0, k=values, eps0=local, epsilon="0.5"))
print(f"one count at 0.5, if none of the others holds it: {few.value:.3e}")
