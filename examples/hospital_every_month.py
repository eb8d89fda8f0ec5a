"""A hospital publishes every month how many of its 60 patients have an infection. What may each number tell?

Nobody knows the risk exactly, so we say a range. Patients stay, so that over the year only an ordinary epsilon counts:
we say a total for twelve releases, and optdp finds what is left for each. A ledger then keeps the account.
"""

import calendar
import tempfile
from pathlib import Path

from optdp import CertificateError, Ledger, Observer, Population, SingleLTE, Total, open_artifact, solve

MONTHS = calendar.month_name[1:]

patients = Population.binomial(60, "0.2")
risk = Observer(between=("0.1", "0.3"))
plain = {"tail": "none", "never_worse": False}

# One number, for somebody who knows the range: very accurate. But a second one about the same patients may tell it all.
once = solve(SingleLTE(patients, epsilon="0.2", observer=risk, **plain))
ordinary = once.summary()["ordinary_epsilon"]
print(f"one release, 0.2 for somebody who knows the range: error {once.mae:.3f}, ordinary epsilon {ordinary}")

# Twelve numbers: the same for a month of new patients, and 4 at delta 1e-6 for the year whatever anybody knows.
total = Total(4, "1e-6")
year = solve(SingleLTE(patients, epsilon="0.2", observer=risk, releases=12, total=total, **plain))
noise = year.summary()["fallback_geometric_mae"]
print(year.over_time.line)
print(f"error of each {year.mae:.3f}, of geometric noise {noise:.3f}, without any data {year.no_data_mae:.3f}")
print(year.over_time.meaning)

with tempfile.TemporaryDirectory() as folder:
    artifact = Path(folder) / "hospital.json"
    year.save(artifact)
    ledger = Ledger.create(Path(folder) / "hospital.jsonl", total.epsilon, total.delta, planned=True)
    opened = open_artifact(artifact)  # verified: the total too
    for month, infected in zip(MONTHS, [11, 12, 12, 10, 9, 9, 14, 15, 13, 12, 11, 11], strict=True):
        ledger = ledger.add(opened, about=month)  # record first, release then
        print(f"{month:<10} we publish {opened.matrix.sample(infected)[0]:>2}   spent {float(ledger.spent):.4f} of 4")
    try:
        ledger.add(opened, about="January again")
    except CertificateError as error:
        print(f"refused: {error}")
