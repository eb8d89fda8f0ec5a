"""An order and its shuffle: the groups are those that it was made for, and `q` gives them what is claimed.

A word `W` is drawn with a probability proportional to `q^d(W)`, and record `order[k]` gets the answer of record
`order[W[k]]`. If members of a group exchange their answers, the word that leads to the same release has their numbers
exchanged. If that moves `d` by at most `Delta`, no release is more than `q^-Delta` times as likely: `alpha = Delta
log(1/q)`. Numbers are positions in the order; a group has `m` of them, `g_1 < .. < g_m`.

**Kendall**, `d` counts inversions. Two members are one inversion or none: at most `m(m-1)/2` in all. Let `r` be a
number of nobody in the group, with `b` members' numbers below it and `a` above, and let `L` of them stand left of it in
the word; exchanging members does not change `L`. If `k` of those to the left are above, `r` is in `k + (b - (L-k)) = 2k
+ b - L` inversions with members, and `k` lies within `max(0, L-b)..min(L, a)`, so that it moves by `min(a, b)` at most:

    Delta = m(m-1)/2 + 2 sum over r of min(a, b).

It is reached between the word in which every number is in its place, `L = b`, and the same with the members in reverse.
`min(a, b)` is how many of the pairs `(g_1, g_m), (g_2, g_(m-1)), ..` have `r` between them. The `j`-th pair has
`g_(m+1-j) - g_j - 1` numbers between it, of which `m - 2j` are members. Summed over all `h = floor(m/2)` pairs this is

    Delta = m(m-1)/2 + 2 ((sum of the h largest) - (sum of the h smallest) - h (m-h)).

**Few values.** If all answers together have `k` different values at most, exchanging neighbours that are equal changes
nothing, and exchanging others changes `d` by 1: no release is more than `q^-K` times as likely, `K` the number of
exchanges of different neighbours that lead from one sequence of answers to the other. With two values, F(p) ones among
the first `p` answers before and G(p) after, `K` is the sum of |F(p) - G(p)|; between the `i`-th and the next member it
is at most `min(i, m-i)`, which the `h` first members' ones reach that go to the last:

    Delta = (sum of the h largest) - (sum of the h smallest).

With more, let members whose answers are equal keep their order. Then only pairs with different answers are exchanged
among members, at most `(m^2 - sum of c^2) / 2` of them for classes `c` of sizes as equal as can be; the rest as above.

**Hamming**, `d` counts the places with `W[k] != k`. Only those of members change, and all of them do between a word
that leaves them in place and one that leaves none: `Delta = m`, or 0 for `m < 2`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from .claims import as_decimal
from .enclosures import log_above, within
from .fields import exact_number, one_of, table_with, whole_number
from .groups import MOST_RECORDS, Groups, groups_digest, read_groups
from .reading import check_head, is_digest
from .verdict import Failed, Findings, Refused, must, printable, shown, spend

CLOSE = Fraction(1, 10**9)
"""How far the float `theta` may be from the logarithm of `1/q`, relatively: it is for reading."""
_LEAST_FLOAT = Fraction(1, 2**1074)
_NUMBER = re.compile(r"[0-9]{1,400}(\.[0-9]{1,400})?(e[-+]?[0-9]{1,4})?(/[0-9]{1,400})?")


def recheck_order(path: str | os.PathLike[str], document: Mapping[str, Any], allow_outside: bool) -> Findings:
    try:
        return _check_order(document, os.path.dirname(os.path.realpath(path)), allow_outside)
    except (Refused, Failed) as error:
        raise type(error)(f"{printable(path)}: {error}") from None


def _check_order(document: Mapping[str, Any], folder: str, allow_outside: bool) -> Findings:
    keys = "format version n distance order groups problem claim provenance sha256"
    check_head(document, "optdp/order", keys)
    n = whole_number(document["n"], "n", 1, MOST_RECORDS)
    order = document["order"]
    right = isinstance(order, list) and len(order) == n and all(type(record) is int for record in order)
    spend(4 * n, 0)
    must(right and sorted(order) == list(range(n)), f"An order must be a permutation of 0..{n - 1}", order)
    distance = one_of(document["distance"], "distance", "kendall hamming")
    must(is_digest(document["groups"]), "groups must be a SHA-256 digest", document["groups"])
    claim, q = _stated_claim(document)
    count, groups = read_groups(document["problem"].get("groups"), folder, allow_outside)
    found = groups_digest(count, groups)
    must(count == n, f"The groups must be of the {n} records of the order", count)
    must(found == document["groups"], "The groups must be those that the order was made for", found)

    largest, wide = order_figures(groups, order, distance, claim.get("values"))
    for name, value in (("sensitivity", largest), ("width", wide)):
        if claim[name] != value:
            raise Failed(f"the claim {name} = {shown(claim[name])} does not hold. Found {value}.")
    alpha = exact_number(claim["alpha"], "alpha")
    if largest and not q:
        raise Failed("the order is claimed to be private, but with q = 0 nothing is random.")
    ratio = 1 / q if largest else Fraction(1)
    log = log_above(ratio)
    assert log is not None
    if largest and not within(ratio, alpha / largest):
        raise Failed(f"the claim alpha <= {claim['alpha'][:40]} does not hold. Found {as_decimal(log * largest)}.")
    _check_theta(claim["theta"], q)
    figures = {
        "alpha": log * largest,
        "theta": log_above(1 / q) if q else None,
        "sensitivity": Fraction(largest),
        "width": Fraction(wide),
    }
    return Findings("PASS", "order", figures, (), document["sha256"])


def _stated_claim(document: Mapping[str, Any]) -> tuple[dict[str, Any], Fraction]:
    """The claim in its form, and `q`; it must be that of the problem."""
    claim = table_with(document["claim"], "claim", "alpha theta q sensitivity width meaning", "values")
    title = table_with(document["problem"], "problem", "kind alpha distance groups", "title values").get("title", "")
    must(isinstance(title, str), "title must be text", title)
    for name in ("sensitivity", "width"):
        must(type(claim[name]) is int and claim[name] >= 0, f"{name} must be a whole number", claim[name])
    for name in ("alpha", "theta"):
        right = isinstance(claim[name], str) and _NUMBER.fullmatch(claim[name]) is not None
        must(right or (name == "theta" and claim[name] is None), f"{name} must be a number in text", claim[name])
    stated = [document["problem"].get(name) for name in ("kind", "alpha", "distance")]
    right = stated == ["order-shuffle", claim["alpha"], document["distance"]]
    must(right, "The claim must be that of the problem in the file", stated)
    if "values" in claim or "values" in document["problem"]:
        values = whole_number(claim.get("values"), "values", 2, MOST_RECORDS)
        same = whole_number(document["problem"].get("values"), "values", 2, MOST_RECORDS) == values
        must(same and document["distance"] == "kendall", "values must be the problem's, by Kendall's distance", values)
    pair = claim["q"]
    right = isinstance(pair, list) and len(pair) == 2 and all(isinstance(part, str) for part in pair)
    right = right and all(re.fullmatch("[0-9]{1,1000}", part) for part in pair)
    right = right and 0 < int(pair[1]) >= int(pair[0])
    must(right, "q must be two whole numbers in text, a fraction from 0 to 1", pair)
    return claim, Fraction(int(pair[0]), int(pair[1]))


def order_figures(groups: Groups, order: Sequence[int], distance: str, values: int | None = None) -> tuple[int, int]:
    """The largest `Delta` of a group for so many values (None: any), and how far apart members of one stand at most."""
    position = [0] * len(order)
    for place, record in enumerate(order):
        position[record] = place
    largest = wide = 0
    before: Sequence[int] | None = None
    for group in groups:
        if group is before or not group:  # records at one place share a list
            continue
        before, m = group, len(group)
        spend(2 * m, 0)
        places = sorted(map(position.__getitem__, group))
        wide = max(wide, places[-1] - places[0])
        half = m // 2
        far = sum(places[m - half :]) - sum(places[:half])
        if distance == "hamming":
            delta = m
        else:
            delta = far if values == 2 else _unequal(m, values) + 2 * (far - half * (m - half))
        largest = max(largest, delta if m > 1 else 0)
    return largest, wide


def _unequal(m: int, values: int | None) -> int:
    """The most pairs of different answers among `m`, of so many values; None: as many as there are answers."""
    classes = m if values is None else min(m, values)
    size, larger = divmod(m, classes)
    return (m * m - larger * (size + 1) ** 2 - (classes - larger) * size**2) // 2


def _check_theta(text: str | None, q: Fraction) -> None:
    if text is None or not q:
        if (text is None) != (not q):
            raise Failed(f"the claim theta = {text and text[:40]} does not hold. Found q = {as_decimal(q)}.")
        return
    must("/" not in text, "theta must be a decimal", text)
    theta = exact_number(text, "theta")
    least, most = theta * (1 - CLOSE) - _LEAST_FLOAT, theta / (1 - CLOSE) + _LEAST_FLOAT
    if not within(1 / q, most) or (least > 0 and within(1 / q, least)):
        raise Failed(f"the claim theta = {text[:40]} does not hold. Found {as_decimal(log_above(1 / q))}.")
