"""Three hospitals train one model together, epoch after epoch. When is the budget spent? (Paper A, section VIII)

Each epoch every patient's gradient is rounded at random to one bit. Each hospital counts its bits, and only the sum of
the three reports is opened. The prior of an epoch is simulated on public (shadow) data, as the paper proposes. The same
patients are in every epoch, so a promise under the prior does not add up. The prior therefore serves accuracy alone:
the promise is for somebody who knows everything else (`known = "all"`), and the ledger counts it.
"""

import math
import random
import tempfile
from pathlib import Path

from optdp import SGDL, CertificateError, Ledger, MultiLTE, Observer, Population, open_artifact, solve

SIZES, TRUE_WEIGHT, RATE = (20, 30, 40), 1.5, 4.0
chance = random.Random(5)  # for data and gradients, the same in every run; the reports use secure randomness


def patient():
    """A measurement, and whether the patient came back."""
    x = chance.gauss(0, 1)
    return x, chance.random() < 1 / (1 + math.exp(-TRUE_WEIGHT * x))


def bit(weight, person):
    """The gradient of the logistic loss, between -1 and 1, rounded at random to 0 or 1."""
    x, returned = person
    gradient = max(-1.0, min(1.0, (1 / (1 + math.exp(-weight * x)) - returned) * x))
    return chance.random() < (1 + gradient) / 2


hospitals = [[patient() for _ in range(size)] for size in SIZES]
shadow = [patient() for _ in range(20_000)]
plans, weight = {}, 0.0
with tempfile.TemporaryDirectory() as place:
    folder = Path(place)
    ledger = Ledger.create(folder / "training.jsonl", epsilon=4, note="one model, the same patients in every epoch")
    for epoch in range(1, 10):
        # The share of ones in the shadow data at this weight, in steps of 0.05; a new plan only if it has moved.
        share = f"{round(20 * sum(bit(weight, person) for person in shadow) / len(shadow)) / 20:.2f}"
        if share not in plans:
            parties = [Population.binomial(size, share) for size in SIZES]
            plan = solve(MultiLTE(parties, epsilon="0.8", observer=Observer(known="all"), method="alone"))
            plan.save(folder / share)
            plans[share] = open_artifact(folder / share)  # verified once
            whole = float(SGDL(len(SIZES), math.exp(-0.8)).mean_absolute())
            print(f"plan for a share of {share}: error of the sum {plan.mae:.3f}")
            print(f"  geometric noise in each hospital {whole:.3f}, one noise shared by all {plan.baseline_mae:.3f}")
        opened = plans[share]
        try:
            ledger = ledger.add(opened, about=f"epoch {epoch}")  # record first, release then
        except CertificateError as refused:
            print(f"training ends before epoch {epoch}: {refused}")
            break
        counts = [sum(bit(weight, person) for person in hospital) for hospital in hospitals]
        reports = [table.sample(count)[0] for table, count in zip(opened.plan.tables, counts, strict=True)]
        weight -= RATE * (2 * sum(reports) / sum(SIZES) - 1)  # in production `optdp aggregate` opens the sum
        print(f"epoch {epoch}: sum {sum(reports)}, weight {weight:.2f}; spent {float(ledger.spent):.1f} of 4")
