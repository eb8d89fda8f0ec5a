"""A statistics office shuffles the answers to a question with eight answers, and wants (0.5, 1e-7)-privacy.

Which eps0 may the questionnaire use, for how many people? And if eps0 is fixed, how many people must take part?
"""

import math

from optdp import KRR, Amplification, solve

question = KRR(8)
print("people   eps0, kept   eps0, broken   true answers")
for people in (1_000, 5_000, 20_000):
    found = solve(Amplification(question, n=people, epsilon="0.5", delta="1e-7"))
    true = math.exp(found.value) / (math.exp(found.value) + 7)
    print(f"{people:<8,} {found.value:<12.4f} {found.lower:<14.4f} {true:.0%}")

needed = solve(Amplification(question, eps0=3, epsilon="0.5", delta="1e-7"))
print(f"at eps0 = 3: {needed.value:,} people are enough, {needed.lower:,} are not")
