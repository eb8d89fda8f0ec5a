"""Subsidiaries count e-mails for their holding company. What does each way to add noise cost? (Paper A, Fig. 7)

Each employee sends 0 to 4 e-mails. The first rows are for one subsidiary, the largest; the others for the sum of all.
By default two small subsidiaries, which takes seconds. Ten of the paper's size,
50 90 130 170 210 250 290 330 370 400, take some minutes.
Usage: python figure_7.py [picture.svg [people in each subsidiary ...]]
"""

import sys

from pictures import canvas, keep

from optdp import MultiLTE, Population, SingleLTE, solve

law = ["0.5", "0.2", "0.15", "0.1", "0.05"]
sizes = [int(number) for number in sys.argv[2:]] or [5, 8]
parties = [Population.iid(people, law) for people in sizes]
mean = sum(w * float(chance) for w, chance in enumerate(law))  # e-mails of one person

alone = {
    "one: central model, geometric noise": "geometric",
    "one: single party, Algorithm 2": "shifting",
    "one: single party, optimum": "lp",
}
together = {
    "all: local model, shares of noise": "geometric",
    "all: each designs alone": "divisible",
    "all: one plan": "joint",
}
if max(sizes) > 40:
    del together["all: each designs alone"]  # its programs are too slow for entities of that size
largest = max(parties, key=lambda party: party.last)
errors = {name: solve(SingleLTE(largest, epsilon="0.3", method=method)).mae for name, method in alone.items()}
errors |= {name: solve(MultiLTE(parties, epsilon="0.3", method=method)).mae for name, method in together.items()}
geometric = errors["one: central model, geometric noise"]  # the shares add up to the same noise
for name, error in errors.items():
    relative = error / (mean * (max(sizes) if name in alone else sum(sizes)))
    print(f"{name:<36} error {error:8.4f}, {relative:8.4%} of the mean, {1 - error / geometric:6.1%} below geometric")

figure, axes = canvas(figsize=(8, 2.8))
bars = axes.barh(
    list(errors), list(errors.values()), color=["#e07b00" if name in alone else "#2f81f7" for name in errors]
)
axes.bar_label(bars, fmt=" %.3g")
axes.invert_yaxis()
axes.set(xlabel="mean absolute error, e-mails", xlim=(0, 1.12 * max(errors.values())))
keep(figure, "figure-7.svg")
