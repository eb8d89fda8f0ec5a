"""Our plan says that half of the people are away. What is its epsilon really if it is 45%, or if someone knows some?

A plan leans on its priors as one entity's matrix does. Measure it, and design for the worlds you cannot rule out.
"""

from optdp import MultiLTE, Population, epsilon_under, solve


def world(share):
    return [Population.binomial(12, share)] * 2


half_known = [office.conservative("0.5") for office in world("0.5")]
doubts = [world("0.45"), world("0.55"), half_known]  # privacy must hold in these worlds too

narrow = solve(MultiLTE(world("0.5"), epsilon="0.5", method="joint"))
robust = solve(MultiLTE(world("0.5"), epsilon="0.5", also=doubts, method="joint"))
careful = solve(MultiLTE(world("0.5"), epsilon="0.5", fallback_epsilon=2, method="joint"))
plans = {"one world": narrow, "four worlds": robust, "fallback 2": careful}
errors = ", ".join(f"{name} {plan.mae:.3f}" for name, plan in plans.items())
print(f"mean absolute error: {errors}, geometric {narrow.baseline_mae:.3f}")

worlds = {f"{share} away": world(share) for share in ("0.4", "0.45", "0.48", "0.5", "0.55")}
worlds["0.5 away, half known"] = half_known
print("the world              " + "".join(f"{name:<14}" for name in plans))
for name, truth in worlds.items():
    real = [epsilon_under(plan, truth) for plan in plans.values()]
    shown = ["infinite" if epsilon is None else f"{float(epsilon):.2f}" for epsilon in real]
    print(f"{name:<23}" + "".join(f"{text:<14}" for text in shown))
