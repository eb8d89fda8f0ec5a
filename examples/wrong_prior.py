"""I said 10% are away. What is my epsilon really if it is 8%, or 12%, or if someone knows half of the people?"""

from optdp import Population, SingleLTE, epsilon_under, solve

stated = Population.binomial(50, "0.1")
one = solve(SingleLTE(stated, epsilon="0.3"))
two = solve(SingleLTE(stated, epsilon="0.3", fallback_epsilon=2))

worlds = {f"{p} away": Population.binomial(50, p) for p in ("0.08", "0.09", "0.1", "0.11", "0.12")}
# `conservative("0.5")`: half of the people are uncertain, the others are known to contribute their mean.
worlds["0.1 away, half known"] = stated.conservative("0.5")

print("the world              real epsilon   with fallback 2")
for name, world in worlds.items():
    real = [epsilon_under(s.problem, s.mechanism, world) for s in (one, two)]
    shown = ["infinite" if epsilon is None else f"{float(epsilon):.2f}" for epsilon in real]
    print(f"{name:<22} {shown[0]:<14} {shown[1]}")
