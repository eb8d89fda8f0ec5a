"""What does it cost to assume less about what others know?

One hundred employees, one in ten on sick leave. The fewer assumptions about an observer, the larger the error at the
same epsilon; without any it is that of ordinary differential privacy. Usage: python observer_ladder.py [picture.svg]
"""

from pictures import canvas, grey, keep

from optdp import Observer, Population, SingleLTE, solve

staff = Population.binomial(100, "0.1")
rungs = {
    "exactly the prior": Observer(),
    "each chance is 9 to 11 %": Observer(between=("0.09", "0.11")),
    "each chance is 5 to 15 %": Observer(between=("0.05", "0.15")),
    "... and 5 people exactly": Observer(between=("0.05", "0.15"), known=5),
}
errors = {}
for name, observer in rungs.items():
    solution = solve(SingleLTE(staff, epsilon="0.3", tail="none", observer=observer))
    errors[name] = solution.mae
    print(f"{name:<30} {solution.mae:.3f}")
others = {
    "everybody else exactly": solution.ordinary_mae,
    "nothing published: “10”": solution.no_data_mae,
    "geometric noise": solution.baseline_mae,
}
for name, error in others.items():
    print(f"{name:<30} {error:.3f}")

every = errors | others
figure, axes = canvas(figsize=(7, 2.8))
colours = ["tab:blue"] * len(errors) + ["tab:purple", "none", "tab:orange"]
bars = axes.barh(
    list(every), list(every.values()), color=colours, edgecolor=[grey if c == "none" else c for c in colours]
)
axes.bar_label(bars, fmt="%.2f", padding=3, color=grey)
axes.invert_yaxis()
axes.set(
    title="What an observer may know about the other 99 people",
    xlabel="mean absolute error of the count, at epsilon 0.3",
)
keep(figure, "observer-ladder.svg")
