"""Must a count of people ever be published as -3 or 104? What if outputs stay in 0..n?

tail="geometric" is the form of the paper: outside the table there is geometric noise. tail="none" keeps outputs in
range. It is never less accurate, and for a rare event it is much more accurate.
"""

from optdp import Population, SingleLTE, solve

print("share   geometric tails   in range   in range, no cap on rare inputs")
for share in ("0.1", "0.5"):
    people = Population.binomial(100, share)
    errors = [
        solve(SingleLTE(people, epsilon="0.3", tail=tail, never_worse=cap)).mae
        for tail, cap in (("geometric", True), ("none", True), ("none", False))
    ]
    print(f"{share:<7} {errors[0]:<17.3f} {errors[1]:<10.3f} {errors[2]:.3f}")
