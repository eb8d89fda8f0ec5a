"""The folder of a plan: its files belong together, and every claim of theirs holds."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from .bounds import check_bound
from .claims import as_decimal, check_keys, claimed, claimed_epsilon, demand, epsilon_of
from .enclosures import log_above, noise_ratio, share_mean
from .entity import Table, read_table
from .fields import list_of
from .maps import Maps, read_maps
from .plan_bounds import check_plan_bound
from .plans import Plan, bounding, joint_figures, read_plan
from .reading import canonical, check_head, read_document
from .seeded import seeded_figures
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
    tables: list[Table | Maps] = []
    claims: list[Any] = []
    for i, entry in enumerate(entries):
        place = os.path.join(folder, f"party-{i}.json")
        member = read_document(place)
        try:
            tables.append(read_maps(member) if member.get("format") == "optdp/seeded-maps" else read_table(member))
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
        for i, claim in enumerate(claims):
            must(claim.get("tables") == identity["tables"], f"Party {i} must list the digests of all tables", i)
        return _check_plan(document, tables, claims)
    except (Refused, Failed) as error:
        raise type(error)(f"{printable(folder)}: {error}") from None


def _check_plan(
    document: Mapping[str, Any], tables: Sequence[Table | Maps], claims: Sequence[Mapping[str, Any]]
) -> Findings:
    plan = read_plan(document["problem"], tables)
    claim, parties = document["claim"], list_of(document["claim"].get("parties"), "The claim's parties")
    check_keys(claim, "epsilon mae mse worst_mae baseline_mae lower_bound parties meaning explained")
    must(len(parties) == len(tables), "The claim must speak of every party", len(parties))
    if isinstance(tables[0], Maps):
        found = seeded_figures(plan)
    else:
        found = joint_figures(plan) if tables[0].tail is None else shared_figures(plan)
    epsilons = [(log_above(ratio) or 0) * steps for ratio, steps in zip(found.quotients, plan.steps, strict=True)]
    for i, ordinary in enumerate(found.ordinary):
        if plan.fallback is not None:
            demand(f"the ordinary epsilon of party {i}", ordinary, plan.fallback, plan.worlds[0][i].largest)
    baseline = share_mean(Fraction(len(tables), plan.honest), noise_ratio(plan.epsilon / plan.sensitivity))
    for i, ratio in enumerate(found.quotients):
        claimed_epsilon(claim, "epsilon", ratio, plan.steps[i])
    figures = {"mae": found.mae, "mse": found.mse, "baseline_mae": baseline}
    must(found.worst is not None or "worst_mae" not in claim, "worst_mae is claimed with never_worse only", claim)
    if found.worst is not None:
        figures["worst_mae"] = found.worst
        limit = (plan.never_worse or 0) * baseline
        if found.worst > limit:
            stated = f"at most {as_decimal(limit)}. Found {as_decimal(found.worst)}"
            raise Failed(f"the mean absolute error given any sum must be {stated}.")
    for name, value in figures.items():
        if name != "baseline_mae" or name in claim:
            claimed(claim, name, value)
    for i in range(len(tables)):
        for own, more in ((parties[i], ""), (claims[i], " plan party tables meaning explained")):
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
    left = _check_bound(plan, document, found.mae if plan.power == 1 else found.mse)
    return Findings("PASS", "plan", all_figures, left, document["sha256"])


def _check_bound(plan: Plan, document: Mapping[str, Any], value: Fraction) -> tuple[str, ...]:
    """A claimed bound is one for every plan whose reports are added, or that of one entity with all data."""
    claim, provenance = document["claim"], document["provenance"]
    if not isinstance(provenance.get("prices"), dict) or "blocks" not in provenance["prices"]:
        return check_bound(claim, provenance, value, None if claim.get("lower_bound") is None else bounding(plan))
    if claim.get("lower_bound") is not None:
        check_plan_bound(plan, claim, provenance, value, document["problem"].get("method"))
    return ()
