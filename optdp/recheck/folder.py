"""The folder of a plan: its files belong together, and every claim of theirs holds."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from .bounds import check_bound
from .claims import check_keys, claimed, claimed_epsilon, demand, epsilon_of
from .enclosures import log_above, noise_ratio, share_mean
from .entity import Table, read_table
from .fields import list_of
from .plans import bounding, joint_figures, read_plan
from .reading import canonical, check_head, read_document
from .shares import shared_figures
from .verdict import Failed, Findings, Refused, must, printable


def recheck_plan(folder: str | os.PathLike[str]) -> Findings:
    path = os.path.join(folder, "plan.json")
    document = read_document(path)
    try:
        check_head(document, "optdp/plan", "format version plan claim problem provenance parties sha256")
        entries = list_of(document["parties"], "parties", 2)
        for i, entry in enumerate(entries):
            right = (
                isinstance(entry, dict) and entry.keys() == {"file", "sha256"} and entry["file"] == f"party-{i}.json"
            )
            must(right, "parties must list party-0.json, party-1.json, .. with their digests", entry)
    except Refused as error:
        raise Refused(f"{printable(path)}: {error}") from None
    tables, claims = [], []
    for i, entry in enumerate(entries):
        place = os.path.join(folder, f"party-{i}.json")
        member = read_document(place)
        try:
            tables.append(read_table(member))
            claims.append(member["claim"])
            party = claims[i].get("party")
            must(type(party) is int and party == i, f"The file must be that of party {i}", party)
            must(claims[i].get("plan") == document["plan"], "The file must be of this plan", claims[i].get("plan"))
            must(canonical(member["problem"]) == canonical(document["problem"]), "The file must be of this plan", i)
            must(member["sha256"] == entry["sha256"], "The file must be the one that plan.json lists", entry["sha256"])
        except Refused as error:
            raise Refused(f"{printable(place)}: {error}") from None
    try:
        identity = {"problem": document["problem"], "tables": [table.bare for table in tables]}
        right = document["plan"] == hashlib.sha256(canonical(identity)).hexdigest()
        must(right, "The identity of the plan must fit its tables", document["plan"])
        return _check_plan(document, tables, claims)
    except (Refused, Failed) as error:
        raise type(error)(f"{printable(folder)}: {error}") from None


def _check_plan(document: Mapping[str, Any], tables: Sequence[Table], claims: Sequence[Mapping[str, Any]]) -> Findings:
    plan = read_plan(document["problem"], tables)
    claim, parties = document["claim"], list_of(document["claim"].get("parties"), "The claim's parties")
    check_keys(claim, "epsilon mae mse baseline_mae lower_bound parties meaning explained")
    must(len(parties) == len(tables), "The claim must speak of every party", len(parties))
    found = joint_figures(plan) if tables[0].tail is None else shared_figures(plan)
    epsilons = [(log_above(ratio) or 0) * steps for ratio, steps in zip(found.quotients, plan.steps, strict=True)]
    for i, ordinary in enumerate(found.ordinary):
        if plan.fallback is not None:
            demand(f"the ordinary epsilon of party {i}", ordinary, plan.fallback, plan.worlds[0][i].largest)
    baseline = share_mean(Fraction(len(tables), plan.honest), noise_ratio(plan.epsilon / plan.sensitivity))
    for i, ratio in enumerate(found.quotients):
        claimed_epsilon(claim, "epsilon", ratio, plan.steps[i])
    figures = {"mae": found.mae, "mse": found.mse, "baseline_mae": baseline}
    for name, value in figures.items():
        claimed(claim, name, value)
    for i in range(len(tables)):
        for own, more in ((parties[i], ""), (claims[i], " plan party meaning explained")):
            must(isinstance(own, dict), f"The claim of party {i} must be a table", own)
            check_keys(own, "epsilon ordinary_epsilon mae" + more)
            claimed_epsilon(own, "epsilon", found.quotients[i], plan.steps[i])
            claimed_epsilon(own, "ordinary_epsilon", found.ordinary[i], plan.worlds[0][i].largest)
            claimed(own, "mae", found.own[i])
    all_figures: dict[str, Fraction | bool | None] = {"epsilon": max(epsilons), **figures}
    for i, epsilon in enumerate(epsilons):
        all_figures[f"party {i}: epsilon"] = epsilon
        all_figures[f"party {i}: ordinary_epsilon"] = epsilon_of(found.ordinary[i], plan.worlds[0][i].largest)
        all_figures[f"party {i}: mae"] = found.own[i]
    whole = None if claim.get("lower_bound") is None else bounding(plan)
    left = check_bound(claim, document["provenance"], found.mae if plan.power == 1 else found.mse, whole)
    return Findings("PASS", "plan", all_figures, left, document["sha256"])
