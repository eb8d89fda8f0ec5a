"""The same ten thousand people report every day, each day shuffled anew. What is epsilon after a month?

Privacy loss is composed by dp-accounting: pip install 'optdp[accounting]'.
"""

from optdp import KRR, Amplification, ProblemError, solve


def epsilon(days: int) -> float:
    return solve(Amplification(KRR(10), eps0=2, n=10_000, delta="1e-6", rounds=days)).value


try:
    one = epsilon(1)
    print("days   epsilon   one day's times days   one report a day, not shuffled")
    for days in (1, 7, 30):
        print(f"{days:<6} {epsilon(days):<9.4f} {days * one:<22.4f} {2 * days}")
except ProblemError as error:
    print(f"no composition here: {error}")
