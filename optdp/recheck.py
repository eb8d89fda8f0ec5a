"""A second opinion on an artifact or on the folder of a plan: one file, Python's integers, nothing else of optdp.

    python -m optdp.recheck a.json        python -m optdp.recheck plan/        python recheck.py a.json

It reads the file as text, builds every prior from the `problem`, and recomputes the claim. Exit code 0: every claim
that is listed holds; 1: one does not; 2: the file is at fault, or more work than `MOST_WORK` is asked for. It shares no
code with `optdp verify`, which uses balls of python-flint. The claim `lower_bound` is left to `optdp verify`.

**Arithmetic.** Weights and priors are integers over common denominators, and sums and products of them are exact.
What is no finite sum of rationals of a bearable size (powers `q^k`, the laws of shares of noise, products of many
reports) is enclosed: two integers over one denominator, one not above the truth and one not below. Every term is
positive, so that enclosures stay as narrow as their terms. No floating-point number is used.

**Privacy under the prior.** For each prior, each kind of person and each two adjacent contributions `w, w'` of such a
person, `Pr[s|w] = sum over x of Pr[sum = x|w] Pr[s|x]`, and `Pr[s|w] <= e^eps Pr[s|w']` is asked of every output.
Unit steps may give away `eps/D`, with `D` the largest contribution of anybody.

**Outputs outside the table**, of which there are infinitely many with a geometric tail. There `Pr[s|x] = G(s-x)` for
every input, `G(k) = (1-q)/(1+q) q^|k|`, whatever `outside` says. If people are independent, the sum given `w` is `Y +
w` and `Pr[s|w] = E G(s-w-Y)`. As `|k+d|` and `|k|` differ by at most `|d|`, `G(k) <= q^-|d| G(k+d)` for each value of
`Y`, hence `Pr[s|w] <= q^-|w-w'| Pr[s|w']`; left of all inputs and right of them it is an equality. So `q^-|w-w'|` is
the largest quotient out there, exactly. If people are not independent, then left of all inputs `Pr[s|w]` is
proportional to `E[q^X|w]` and right of them to `E[q^-X|w]`, and outputs between inputs are looked at one by one.

**Inside**, `Pr[s|x] = c(x) weight/denominator` with `c(x)` the mass of `G(.-x)` on the outputs: for `x` among them `1
- (q^(b-x+1) + q^(x-a+1))/(1+q)`, else `(q^near - q^far)/(1+q)`. An input without a row has the nearest row's weights
("clamp") or `Pr[s|x] = G(s-x)` ("geometric").

**Ordinary epsilon**: the same for two inputs at most 1 apart (times `D`), or at most `D` apart (adjacency "all").

**Geometric noise to compare with** (`never_worse`, `baseline_mae`) has `q` = `e^(-eps/D)` rounded up to a multiple of
`2^-(64 + ceil(1.4427 eps/D))`. An input served by nothing but that noise is not worse than it. If the method is
"geometric", or nobody but one person is counted, `never_worse` allows `2^-30` of the error for the rounding of a table
without clamped inputs.

**Plans of finite tables.** Given `w`, the sum of the reports of honest parties has the law `u_w * v_2 * .. * v_t`:
polynomials are multiplied, as two long integers (Kronecker), and every quotient is looked at, for every set of
`honest` parties. Larger sets add independent terms, which raises no quotient.

**Plans of shares of noise** (tail "sgdl"). With `A_w` the law of the contracted input given `w`, `base_w = f A_w *
SGDL_beta`, `u_w` the law of the report: let `spread` be the largest `u_w/base_w` over outputs, secrets and the prior
over the smallest, both taken with 1. Then `u_w * u_2 * .. <= (spreads) base_w * base_2 * ..`, and as `beta >=
1/honest` this is `f A_w * Geo_q` convolved with what does not depend on `w`. So the quotient is at most `Q` times the
spreads, `Q` the largest quotient of `f A_w * Geo_q`. Between two points `f y` that law is `q^j L + q^(|f|-j) R`,
whose quotient for two secrets is monotone in `q^(2j)`; beyond the last point it falls by `q` with each step for both.
So `Q` is reached at a point `f y`.

**SGDL** is the difference of two negative binomials: `Pr[x] = C sum over k of b(k) b(k+x)`, `b(k+1)/b(k) = q (beta+k)
/ (k+1)`, `1/C = (sum of b)^2`. From some `k` on these ratios are at most `r < 1`, which bounds what a finite sum
leaves out. For `beta <= 1` they are at most `q`, so that `Pr[x+1] <= q Pr[x]`. Its generating function `g` satisfies
`(1 + q^2 - q(z+1/z)) z g' = beta q (z-1/z) g`. Compared at `z^x` and summed over `x >= 1` this says `(1-q)^2 E|X| =
2q (beta Pr[0] - (1-beta) Pr[1])`. The error of an aggregate is summed over laws cut at `|N_i| <= R`, plus `sum of
E[|N_i|; |N_i| > R] + Pr[|N_i| > R] sum of the other E|N_j|`, which bounds what was cut.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import reprlib
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, pairwise
from operator import mul
from typing import Any

MOST_BYTES = 64 * 1024 * 1024
MOST_WORK = 10_000_000_000
"""How many steps on digits of 30 bits one check may take: about half a minute."""
MOST_MEMORY = 4_000_000_000
"""How many bits the laws of one prior may take."""
MOST_BITS = 1 << 18
"""The longest enclosures of powers of `q`, and the longest common denominator of one person's law."""
GUARD = 400
"""Bits to which enclosures are right, relative to the smallest number that matters."""

Pair = tuple[int, int]
"""An enclosure: two integers, the truth times a known denominator between them."""
Row = Sequence[tuple[int, int]]
"""Pairs (output, weight); in a file they are lists."""


class Refused(Exception):  # noqa: N818
    """The file is at fault, or asks for more than this checker does (exit code 2)."""


class Failed(Exception):  # noqa: N818
    """A claim does not hold (exit code 1)."""


@dataclass(frozen=True)
class Findings:
    """What was recomputed. Epsilons and errors are upper bounds; None is infinite, or nothing is proved of it."""

    status: str
    kind: str
    figures: Mapping[str, Fraction | bool | None]
    unchecked: tuple[str, ...]


def recheck(path: str | os.PathLike[str]) -> Findings:
    """Recompute the claim of an artifact, or of a plan's folder; raise Refused or Failed unless all of it holds."""
    token = _work.set([0])
    try:
        return _recheck_plan(path) if os.path.isdir(path) else _recheck_single(path)
    except (RecursionError, MemoryError, OverflowError) as error:
        raise Refused(f"{_name(path)}: more than can be read. Found {type(error).__name__}.") from None
    except ValueError as error:  # a zero byte in a name, an integer that Python will not print
        raise Refused(f"{_name(path)}: {str(error)[:200]}.") from None
    finally:
        _work.reset(token)


# ---------------------------------------------------------------------- work

_work: ContextVar[list[int]] = ContextVar("work")


def _spend(times: int, bits: int) -> None:
    """Account for `times` operations of a long integer with a short one, before they are done."""
    spent = _work.get()
    spent[0] += times * (bits // 30 + 200)
    if spent[0] > MOST_WORK:
        raise Refused(
            "This checker writes everything out as integers, up to about half a minute of work. Found more people, "
            "outputs or parties than that. Use optdp verify."
        )


# ---------------------------------------------------------------------- reading


def _name(path: str | os.PathLike[str]) -> str:
    name = os.fspath(path)
    return name if name.isprintable() else repr(name)


_shown = reprlib.repr


def _read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The JSON object of a regular file: UTF-8, no key twice, nothing infinite, deep or huge."""
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_BYTES:
            raise Refused(f"{_name(path)}: must be a regular file of at most {MOST_BYTES:,} bytes.")
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise Refused(f"{_name(path)}: cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    _spend(len(data) // 10, 0)
    if data[:2] == b"PK":
        raise Refused(f"{_name(path)}: this checker reads JSON. Found a .npz file. Use optdp verify.")
    try:
        document = json.loads(
            data.decode("utf-8"), object_pairs_hook=_table, parse_constant=_constant, parse_int=_integer
        )
        if not isinstance(document, dict):
            raise Refused(f"must be a JSON object. Found {_shown(document)}.")
        rest = {key: value for key, value in document.items() if key != "weights"}
        _shallow(rest, 40)
        json.dumps(rest, ensure_ascii=False, allow_nan=False).encode("utf-8")  # half a character, or 1e999
    except (ValueError, RecursionError, MemoryError) as error:
        raise Refused(
            f"{_name(path)}: must be whole JSON. Found {type(error).__name__}: {str(error)[:80]!r}."
        ) from None
    except Refused as error:
        raise Refused(f"{_name(path)}: {error}") from None
    return document


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        raise Refused("a key must stand once in a table.")
    return table


def _constant(text: str) -> None:
    raise Refused(f"numbers must be finite. Found {text}.")


def _integer(text: str) -> int:
    if len(text) > 1300 + text.startswith("-"):
        raise Refused(f"an integer may have 1300 digits. Found {len(text)}.")
    return int(text)


def _shallow(value: Any, left: int) -> None:
    if isinstance(value, dict | list):
        if left == 0:
            raise Refused("brackets may be nested 40 deep. Found more.")
        for item in value.values() if isinstance(value, dict) else value:
            _shallow(item, left - 1)


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii")


def _digest(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(_canonical({key: value for key, value in document.items() if key != "sha256"})).hexdigest()


def _must(condition: bool, rule: str, found: Any) -> None:
    if not condition:
        raise Refused(f"{rule}. Found {_shown(found)}.")


def _is_digest(text: Any) -> bool:
    return isinstance(text, str) and re.fullmatch("[0-9a-f]{64}", text) is not None


def _check_head(document: Mapping[str, Any], form: str, keys: str) -> None:
    """Format, version, keys and digest, which both kinds of files have."""
    _must(document.get("format") == form, f'format must be "{form}"', document.get("format"))
    version = document.get("version")
    _must(type(version) is int and version == 1, "version must be 1", version)
    _must(document.keys() == set(keys.split()), f"The keys must be {keys}", sorted(document))
    for name in ("problem", "claim", "provenance"):
        _must(isinstance(document[name], dict), f"{name} must be a table", document[name])
    stated = document["sha256"]
    _must(_is_digest(stated) and stated == _digest(document), "sha256 must be the digest of the content", stated)


@dataclass(frozen=True)
class Table:
    """Rows of integers over a power of two for the inputs `first..final`, and what goes with them."""

    first: int
    final: int
    low: int
    high: int
    denominator: int
    rows: Sequence[Row]
    outside: str
    tail: Mapping[str, Any] | None
    q: Fraction | None
    bare: str
    """The digest of the table alone."""

    @cached_property
    def columns(self) -> dict[int, tuple[list[int], list[int]]]:
        """For each output that a row reaches the numbers of these rows and their weights."""
        found: dict[int, tuple[list[int], list[int]]] = {}
        for i, row in enumerate(self.rows):
            for s, weight in row:
                if s not in found:
                    found[s] = ([], [])
                found[s][0].append(i)
                found[s][1].append(weight)
        return found

    @cached_property
    def entries(self) -> int:
        return sum(map(len, self.rows))

    def served(self, x: int) -> int | None:
        """The number of the row that serves input `x`; None if it gets noise alone."""
        if self.first <= x <= self.final:
            return x - self.first
        return None if self.outside == "geometric" else 0 if x < self.first else len(self.rows) - 1


def _artifact(document: Mapping[str, Any]) -> Table:
    """The table of a document that keeps every rule of the format."""
    keys = "format version inputs outputs denominator outside tail claim problem provenance sha256 weights"
    _check_head(document, "optdp/noise-matrix", keys)
    ends = []
    for name in ("inputs", "outputs"):
        pair = document[name]
        right = isinstance(pair, list) and [type(end) for end in pair] == [int, int]
        _must(right and -(2**53) <= pair[0] <= pair[1] <= 2**53, f"{name} must be [first, last] within 2^53", pair)
        ends.append(pair)
    (first, final), (low, high) = ends
    denominator = _positive(document["denominator"], "denominator")
    _must(denominator.bit_count() == 1, "denominator must be a power of two", document["denominator"])
    outside, tail, rows = document["outside"], document["tail"], document["weights"]
    _must(outside in ("error", "clamp", "geometric"), "outside must be error, clamp or geometric", outside)
    _must(outside != "geometric" or tail is not None, 'outside = "geometric" needs a tail', tail)
    _must(isinstance(rows, list) and len(rows) == final - first + 1, "weights must have a row for each input", rows)
    for row in rows:
        _check_row(row, low, high, denominator)
    q = None
    if tail is not None:
        laws = {"geometric": {"law", "q"}}
        laws["sgdl"] = {*laws["geometric"], "beta", "factor", "contraction", "contraction_denominator"}
        law = tail.get("law") if isinstance(tail, dict) else None
        right = isinstance(law, str) and law in laws and tail.keys() == laws[law]
        _must(right, "tail must be null, geometric noise or a share of it", tail)
        q = _quotient(tail["q"], "q")
        _must(q < 1, "q must lie between 0 and 1", tail["q"])
    bare = {**document, "problem": {}, "claim": {}, "provenance": {}}
    return Table(first, final, low, high, denominator, rows, outside, tail, q, _digest(bare))


def _check_row(row: Any, low: int, high: int, denominator: int) -> None:
    shape = isinstance(row, list) and row and all(type(pair) is list and len(pair) == 2 for pair in row)
    _must(bool(shape), "A row must be a list of pairs [output, weight]", row)
    _must(all(type(s) is int and type(weight) is int for s, weight in row), "A row must hold integers only", row)
    _must(all(one[0] < two[0] for one, two in pairwise(row)), "The outputs of a row must increase", row)
    _must(low <= row[0][0] and row[-1][0] <= high, f"A row must stay within {low}..{high}", row)
    _must(min(weight for _, weight in row) > 0, "Weights must be positive", row)
    _must(sum(weight for _, weight in row) == denominator, "A row must sum to the denominator", row)


def _positive(text: Any, name: str) -> int:
    right = isinstance(text, str) and len(text) <= 1300 and re.fullmatch("[1-9][0-9]*", text, re.ASCII) is not None
    _must(right and int(text) <= 1 << 4096, f"{name} must be a positive integer up to 2^4096, in text", text)
    return int(text)


def _quotient(pair: Any, name: str) -> Fraction:
    _must(isinstance(pair, list) and len(pair) == 2, f"{name} must be [numerator, denominator]", pair)
    top, bottom = (_positive(text, name) for text in pair)
    _must(math.gcd(top, bottom) == 1, f"{name} must be in lowest terms", pair)
    return Fraction(top, bottom)


# ---------------------------------------------------------------------- problems

_DECIMAL = re.compile(r"[+-]?([0-9]{1,400}(\.[0-9]{0,400})?|\.[0-9]{1,400})([eE]([+-]?[0-9]{1,4}))?")
_RATIO = re.compile(r"[+-]?[0-9]{1,400}/0*[1-9][0-9]{0,399}")


def _number(value: Any, name: str) -> Fraction:
    """The exact number that a problem states: an integer, or a decimal or a fraction in text."""
    if type(value) is int and value.bit_length() <= 4000:
        return Fraction(value)
    text = value.strip() if isinstance(value, str) else ""
    decimal = _DECIMAL.fullmatch(text)
    right = abs(int(decimal[4] or 0)) <= 1000 if decimal else _RATIO.fullmatch(text) is not None
    _must(right, f"{name} must be a number such as 3, '0.3' or '3/10'", value)
    return Fraction(text)


def _whole(value: Any, name: str, least: int, most: int) -> int:
    _must(type(value) is int and least <= value <= most, f"{name} must be a whole number {least}..{most}", value)
    return int(value)


NULL = ("fallback_epsilon", "weights", "conservative", "n", "honest", "f")
"""Keys of a problem that may be null, which is the same as left out."""


def _keys(table: Any, name: str, needed: str, allowed: str = "") -> dict[str, Any]:
    """A table with the needed keys, and of the others only allowed ones."""
    _must(isinstance(table, dict), f"{name} must be a table", table)
    _must(set(needed.split()) <= table.keys(), f"{name} must have the keys {needed}", sorted(table))
    extra = table.keys() - set(needed.split()) - set(allowed.split())
    _must(not extra, f"{name} must have no other keys", sorted(extra))
    return {key: value for key, value in table.items() if value is not None or key not in NULL}


def _list(value: Any, name: str, least: int = 0) -> list[Any]:
    _must(isinstance(value, list) and len(value) >= least, f"{name} must be a list of at least {least}", value)
    return list(value)


def _choice(value: Any, name: str, known: str) -> str:
    _must(isinstance(value, str) and value in known.split(), f"{name} must be one of {known}", value)
    return str(value)


@dataclass(frozen=True)
class Law:
    """Enclosures of a law on the integers from `first`: `below[k]/unit <= Pr[first + k] <= above[k]/unit`.

    Exact if both are the same list.
    """

    first: int
    below: Sequence[int]
    above: Sequence[int]
    unit: int

    def shifted(self, by: int) -> Law:
        return Law(self.first + by, self.below, self.above, self.unit)

    @property
    def exact(self) -> bool:
        return self.below is self.above

    def items(self) -> Iterator[tuple[int, int]]:
        """The possible values and their integers, of an exact law."""
        return ((x, weight) for x, weight in enumerate(self.below, start=self.first) if weight)

    def moment(self, power: int) -> Fraction:
        """An upper bound of the mean of `|value|^power`."""
        return Fraction(sum(w * abs(k) ** power for k, w in enumerate(self.above, start=self.first)), self.unit)


def _exact(weights: Sequence[int], unit: int, first: int = 0) -> Law:
    return Law(first, weights, weights, unit)


POINT = _exact([1], 1)


def _law(values: Any, name: str, least: int = 2) -> tuple[Fraction, ...]:
    """Probabilities of `0, 1, ..`, which sum to exactly one."""
    law = tuple(_number(value, name) for value in _list(values, name, least))
    _must(min(law) >= 0, f"{name} must not be negative", values)
    unit = _common(law, name)
    _must(sum(int(value * unit) for value in law) == unit, f"{name} must sum to exactly 1", values)
    return law


def _common(law: Sequence[Fraction], name: str) -> int:
    unit = 1
    for value in law:
        unit = math.lcm(unit, value.denominator)
        _must(unit.bit_length() <= MOST_BITS, f"{name} must have a common denominator below 2^{MOST_BITS}", law[:2])
    _spend(len(law), unit.bit_length())
    return unit


def _integers(law: Sequence[Fraction]) -> Law:
    unit = _common(law, "a law")
    return _exact([value.numerator * (unit // value.denominator) for value in law], unit)


def _power(f: Sequence[int], n: int) -> list[int]:
    """The coefficients of `f(z)^n = g(z)`, `f(0) != 0`: `f g' = n f' g` gives them one after the other."""
    d = len(f) - 1
    _spend(n * d * d, n * sum(f).bit_length())
    g = [f[0] ** n]
    for k in range(1, n * d + 1):
        total = sum(((n + 1) * i - k) * f[i] * g[k - i] for i in range(1, min(d, k) + 1) if f[i])
        g.append(total // (k * f[0]))
    return g


def _divided(product: Sequence[int], f: Sequence[int]) -> list[int]:
    """The coefficients of `product(z) / f(z)`, a polynomial with integer coefficients, `f(0) != 0`."""
    _spend(len(product) * len(f), product[0].bit_length() + max(product).bit_length())
    g: list[int] = []
    for k in range(len(product) - len(f) + 1):
        known = sum(f[i] * g[k - i] for i in range(1, min(len(f) - 1, k) + 1) if f[i])
        g.append((product[k] - known) // f[0])
    return g


def _multiplied(a: Sequence[int], b: Sequence[int]) -> list[int]:
    """The product of two polynomials with coefficients of at least 0, as one product of two long integers."""
    if len(a) == 1 or len(b) == 1:
        return [x * y for x in a for y in b]
    width = (sum(a) * max(b)).bit_length() // 8 + 1
    short, long = sorted((len(a) * width // 4 + 1, len(b) * width // 4 + 1))
    _spend(long // short + 1, 30 * 2000 * 3 ** (short // 70).bit_length())  # Karatsuba's method
    x, y = (int.from_bytes(b"".join(v.to_bytes(width, "little") for v in values), "little") for values in (a, b))
    size = len(a) + len(b) - 1
    data = (x * y).to_bytes(size * width, "little")
    return [int.from_bytes(data[k : k + width], "little") for k in range(0, size * width, width)]


def _times(one: Law, other: Law) -> Law:
    """The law of the sum of two independent numbers."""
    below = _multiplied(one.below, other.below)
    above = below if one.exact and other.exact else _multiplied(one.above, other.above)
    return Law(one.first + other.first, below, above, one.unit * other.unit)


def _rounded(law: Law, relative: bool) -> Law:
    """The law over a power of two, if that is shorter: each value right to GUARD bits, or all to `2^-(GUARD/2)`."""
    bits = GUARD // 2
    if relative:
        bits = GUARD + law.unit.bit_length() - min((w for w in law.below if w), default=law.unit).bit_length()
    if bits + 64 > law.unit.bit_length():
        return law
    _spend(2 * len(law.above), law.unit.bit_length() * 2)
    below = [(w << bits) // law.unit for w in law.below]
    above = [-((-w << bits) // law.unit) for w in law.above]
    return Law(law.first, below, above, 1 << bits)


@dataclass(frozen=True)
class Prior:
    """Who is counted: the law of the sum, and for each kind of person the law of the sum given each contribution."""

    last: int
    total: Law
    people: Sequence[Sequence[Law]]
    independent: bool
    alone: bool
    """Whether the sum is one person's contribution and nothing else."""

    @property
    def largest(self) -> int:
        return max(len(laws) for laws in self.people) - 1


def _prior(spec: Any, unit: str = "") -> Prior:
    """The population that a problem states; `unit` if it may also say what it counts."""
    kind = _choice(spec.get("kind") if isinstance(spec, dict) else spec, "kind of a population",
                   "binomial iid independent counts others conditionals")  # fmt: skip
    name = f"{kind} population"
    if kind == "others":
        spec = _keys(spec, name, "kind others", f"contributions {unit}")
        return _given_others(_law(spec["others"], "others", 1), spec.get("contributions", 1))
    if kind == "conditionals":
        spec = _keys(spec, name, "kind people total", unit)
        total = _integers(_law(spec["total"], "total"))
        people = []
        for rows in _list(spec["people"], "people", 1):
            people.append([_integers(_law(row, "people")) for row in _list(rows, "people", 2)])
            _must(all(len(law.below) == len(total.below) for law in people[-1]), "Laws must have one length", name)
        return Prior(len(total.below) - 1, total, people, False, False)
    more, crowd = f"conservative {unit}", dict[tuple[Fraction, ...], int]()
    if kind == "binomial":
        spec = _keys(spec, name, "kind n p", more)
        p = _number(spec["p"], "p")
        _must(0 <= p <= 1, "p must lie in [0, 1]", spec["p"])
        crowd[1 - p, p] = _whole(spec["n"], "n", 1, 10**9)
    elif kind == "iid":
        spec = _keys(spec, name, "kind n pmf", more)
        crowd[_law(spec["pmf"], "pmf")] = _whole(spec["n"], "n", 1, 10**9)
    elif kind == "counts":
        spec = _keys(spec, name, "kind counts", f"n smoothing {more}")
        counts = [_whole(count, "counts", 0, 10**300) for count in _list(spec["counts"], "counts", 2)]
        added = _number(spec.get("smoothing", 1), "smoothing")
        total_count = sum(counts) + added * len(counts)
        _must(added >= 0 and total_count > 0, "counts and smoothing must be at least 0, and not all 0", counts)
        _spend(len(counts), total_count.denominator.bit_length() + 1000)
        n = _whole(spec.get("n", sum(counts)), "n", 1, 10**9)
        crowd[tuple((count + added) / total_count for count in counts)] = n
    else:
        spec = _keys(spec, name, "kind people", more)
        for group in _list(spec["people"], "people", 1):
            group = _keys(group, "a group of people", "pmf", "count")
            law = _law(group["pmf"], "pmf")
            crowd[law] = crowd.get(law, 0) + _whole(group.get("count", 1), "count", 1, 10**6)
        _must(sum(crowd.values()) <= 10**6, "people must be at most 1,000,000", sum(crowd.values()))
    return _independent(crowd, _number(spec["conservative"], "conservative") if "conservative" in spec else None)


def _given_others(others: tuple[Fraction, ...], contributions: Any) -> Prior:
    """One kind of person, and the law of everybody else's sum."""
    if isinstance(contributions, list):
        own = _law(contributions, "contributions")
    else:
        largest = _whole(contributions, "contributions", 1, 10_000)
        own = (Fraction(1, largest + 1),) * (largest + 1)
    _must(len(own) * len(others) <= 10**6, "others and contributions may have 1,000,000 combinations", len(own))
    rest = _integers(others)
    secrets = [rest.shifted(w) for w in range(len(own))]
    return Prior(len(others) + len(own) - 2, _times(rest, _integers(own)), [secrets], True, len(others) == 1)


def _independent(crowd: Mapping[tuple[Fraction, ...], int], share: Fraction | None) -> Prior:
    """Independent people: how many follow each law. With a `share` only so many of each are uncertain (at least one);
    the others contribute their mean, rounded to a whole number for all of them together."""
    last = sum((len(law) - 1) * count for law, count in crowd.items())
    known = Fraction(0)
    if share is not None:
        _must(0 < share <= 1, "conservative must lie in (0, 1]", str(share)[:40])
        kept = {law: max(1, math.ceil(share * count)) for law, count in crowd.items()}
        known += sum(w * p * (crowd[law] - kept[law]) for law in crowd for w, p in enumerate(law))
        crowd = kept
    shift, laws = round(known), []
    units = {law: _common(law, "a law") for law in crowd}
    size, bits = 1 + last, sum(count * units[law].bit_length() for law, count in crowd.items())
    memory = size * bits * (1 + len(crowd))
    _must(memory <= MOST_MEMORY, f"Priors are written out in at most {MOST_MEMORY} bits; use optdp verify", memory)
    _spend(size * (1 + len(crowd)), 20 * bits)
    product, unit = [1], 1
    for law, count in crowd.items():
        weights, zeros = list(_integers(law).below), 0
        while weights[zeros] == 0:  # everybody contributes at least so much
            zeros += 1
        laws.append((law, weights[zeros:], zeros))
        shift += zeros * count
        product, unit = _multiplied(product, _power(weights[zeros:], count)), unit * units[law] ** count
    people = []
    for law, weights, zeros in laws:
        others = _exact(_divided(product, weights), unit // units[law])
        people.append([others.shifted(shift - zeros + w) for w in range(len(law))])
    return Prior(last, _exact(product, unit, shift), people, True, sum(crowd.values()) == 1)


def _check_epsilons(spec: Mapping[str, Any]) -> tuple[Fraction, Fraction | None]:
    epsilons = [_number(spec[key], key) for key in ("epsilon", "fallback_epsilon") if key in spec]
    for value in epsilons:
        _must(Fraction(1, 2**40) <= value <= 100, "An epsilon must be from 2^-40 to 100", str(value)[:40])
    fallback = epsilons[1] if len(epsilons) > 1 else None
    _must(fallback is None or fallback > epsilons[0], "fallback_epsilon must be larger than epsilon", spec["epsilon"])
    for key in ("title", "source", "notes"):
        _must(isinstance(spec.get(key, ""), str), f"{key} must be text", spec.get(key))
    _must(isinstance(spec.get("expect", {}), dict), "expect must be a table", spec.get("expect"))
    return epsilons[0], fallback


# ---------------------------------------------------------------------- exponentials


def _exp(x: Fraction) -> tuple[int, int, int]:
    """Integers below and above `e^x 2^bits` for `x >= 0`, and `bits`: a series, squared back up."""
    halvings = max(0, x.numerator.bit_length() - x.denominator.bit_length() + 2)  # now x / 2^halvings < 1/2
    bits = GUARD + 2 * halvings
    small = (x.numerator << bits) // (x.denominator << halvings)
    low = term = 1 << bits
    k = 0
    while term:
        k += 1
        term = term * small // (k << bits)
        low += term
    high = 1 << bits  # the same with every term rounded up; the rest of the series is below its last term
    last, k = 1 << bits, 0
    while last > 1:
        k += 1
        last = -(-last * (small + 1) // (k << bits))
        high += last
    high += last
    for _ in range(halvings):
        low, high = low * low >> bits, (high * high >> bits) + 1
    return low, high, bits


def _within(ratio: Fraction | None, epsilon: Fraction) -> bool:
    """Whether `ratio <= e^epsilon` is proved; None is an infinite ratio."""
    if ratio is None:
        return False
    if ratio <= 1 or epsilon >= ratio.numerator.bit_length():  # 2^bits is above the ratio, and e above 2
        return epsilon >= 0
    if epsilon <= 0:
        return False
    low, _, bits = _exp(epsilon)
    return ratio.numerator << bits <= low * ratio.denominator


def _log(ratio: Fraction | None) -> Fraction | None:
    """At least the logarithm of a ratio of at least 1: `log r <= x - 1 + r e^-x` for every `x`, and Newton's method."""
    if ratio is None or ratio == 1:
        return None if ratio is None else Fraction(0)
    x = Fraction("0.69315") * (ratio.numerator.bit_length() - ratio.denominator.bit_length() + 1)
    while True:
        low, _, bits = _exp(x)
        closer = x - 1 + Fraction(ratio.numerator << bits, low * ratio.denominator)
        closer = Fraction(math.ceil(closer * 2**200), 2**200)
        if closer >= x:
            return x
        x = closer


def _ratio(epsilon: Fraction) -> Fraction:
    """The `q` of geometric noise at `epsilon`: `e^-epsilon` rounded up to a multiple of a power of two."""
    places = 64 + math.ceil(epsilon * Fraction("1.4427"))
    low, high, bits = _exp(epsilon)
    least, most = (-(-(1 << (bits + places)) // value) for value in (high, low))
    _must(least == most, "epsilon must be a number whose exponential can be rounded", str(epsilon)[:40])
    return Fraction(most, 1 << places)


# ---------------------------------------------------------------------- geometric noise


def _loss(q: Fraction) -> int:
    """At least 64 times the binary logarithm of `1/q`, by at most one too much."""
    return (q.denominator**64 // q.numerator**64).bit_length()


class Geometric:
    """`G(k) = (1-q)/(1+q) q^|k|` in enclosures over `2^bits`, which are narrow for `|k|` up to `reach`."""

    def __init__(self, q: Fraction, reach: int) -> None:
        self.p, self.r = q.numerator, q.denominator
        near_one = (self.r // (self.r - self.p)).bit_length()
        self.bits = GUARD + 128 + 2 * near_one + reach * _loss(q) // 64
        _must(self.bits <= MOST_BITS, f"Noise must be enclosed in {MOST_BITS} bits", self.bits)
        self._powers: dict[int, Pair] = {0: (1 << self.bits, 1 << self.bits)}

    def power(self, k: int) -> Pair:
        """`q^k`, by squaring."""
        known = self._powers.get(k)
        if known is None:
            _spend(2, self.bits * math.isqrt(self.bits // 30 + 1))
            low, high = self.power(k // 2)
            low, high = low * low >> self.bits, -(-high * high >> self.bits)
            if k % 2:
                low, high = low * self.p // self.r, -(-high * self.p // self.r)
            known = self._powers[k] = low, high
        return known

    def at(self, k: int) -> Pair:
        """`G(k)`."""
        low, high = self.power(abs(k))
        top, bottom = self.r - self.p, self.r + self.p
        return low * top // bottom, -(-high * top // bottom)

    def inside(self, x: int, low: int, high: int) -> Pair:
        """`c(x)`: the mass of `G(. - x)` on `low..high`."""
        bottom = self.r + self.p
        if low <= x <= high:
            one, two = self.power(high - x + 1), self.power(x - low + 1)
            whole = 1 << self.bits
            return whole + (-(one[1] + two[1]) * self.r // bottom), whole - (one[0] + two[0]) * self.r // bottom
        near, far = (low - x, high - x + 1) if x < low else (x - high, x - low + 1)
        one, two = self.power(near), self.power(far)
        return (one[0] - two[1]) * self.r // bottom, -(-(one[1] - two[0]) * self.r // bottom)

    def beyond(self, d: int, power: int) -> Pair:
        """`sum over k >= d of k^power G(k)`, `d >= 1`, by the closed forms of `sum k q^k` and `sum k^2 q^k`."""
        low, high = self.power(d)
        p, r = self.p, self.r
        if power == 1:
            top, bottom = (d * r - (d - 1) * p) * r, (r + p) * (r - p)
        else:
            top = (d * d * r * r + (1 + 2 * d - 2 * d * d) * p * r + (d - 1) ** 2 * p * p) * r
            bottom = (r + p) * (r - p) ** 2
        return low * top // bottom, -(-high * top // bottom)

    def outside(self, x: int, low: int, high: int, power: int) -> int:
        """At least `2^bits sum over s outside low..high of |s-x|^power G(s-x)`."""
        if low <= x <= high:
            return self.beyond(x - low + 1, power)[1] + self.beyond(high - x + 1, power)[1]
        near, far = (low - x, high - x + 1) if x < low else (x - high, x - low + 1)
        return 2 * self.beyond(1, power)[1] - self.beyond(near, power)[0] + self.beyond(far, power)[1]


def _mean_absolute(q: Fraction) -> Fraction:
    return 2 * q / (1 - q * q)


# ---------------------------------------------------------------------- quotients

Values = Sequence[Pair]


def _largest(one: Values, other: Values) -> Fraction | None:
    """An upper bound of the largest quotient of `one` over `other`; None if it is not proved to be finite."""
    top, bottom = 0, 1
    for (_, a), (b, _) in zip(one, other, strict=True):
        if a:
            if b <= 0:
                return None
            spare = max(0, b.bit_length() - 2 * GUARD)  # of long integers the leading bits decide
            a, b = -(-a >> spare), b >> spare
            if a * bottom > top * b:
                top, bottom = a, b
    return Fraction(top, bottom)


def _both_ways(one: Values, other: Values, scale: Fraction = Fraction(1)) -> Fraction | None:
    """The same in both directions, where `one` must be multiplied by `scale` to compare, and at least 1."""
    up, down = _largest(one, other), _largest(other, one)
    return None if up is None or down is None else max(Fraction(1), up * scale, down / scale)


def _tail_quotient(q: Fraction, steps: int) -> Fraction:
    """`q^-steps`: the quotient of geometric noise for inputs so far apart."""
    _must(steps * q.denominator.bit_length() <= MOST_BITS, f"Powers of q must have {MOST_BITS} bits", steps)
    return 1 / q**steps


def _worst(ratios: Sequence[Fraction | None]) -> Fraction | None:
    known = [ratio for ratio in ratios if ratio is not None]
    return max(known, default=Fraction(1)) if len(known) == len(ratios) else None


# ---------------------------------------------------------------------- one entity


@dataclass(frozen=True)
class Entity:
    """A table with its noise and the largest input."""

    table: Table
    last: int

    @cached_property
    def noise(self) -> Geometric | None:
        table = self.table
        if table.q is None:
            return None
        reach = max(table.low, self.last - table.high, 0) + (self.last if table.outside == "geometric" else 0)
        return Geometric(table.q, reach)

    @cached_property
    def masses(self) -> list[Pair]:
        """`c(x)` of every input, over `2^bits`; 1 without a tail."""
        table, noise = self.table, self.noise
        if noise is None:
            return [(1, 1)] * (self.last + 1)
        _spend(4 * (self.last + 1), noise.bits)
        return [noise.inside(x, table.low, table.high) for x in range(self.last + 1)]

    @cached_property
    def outputs(self) -> list[int]:
        """The outputs of the table that can occur."""
        table = self.table
        if table.outside == "geometric" and len(table.rows) <= self.last:
            return list(range(table.low, table.high + 1))
        return sorted(table.columns)

    def released(self, law: Law) -> list[Pair]:
        """`Pr[s]` for each of `outputs` if the input follows `law`, over one unit that depends on `law.unit` alone."""
        table, noise = self.table, self.noise
        bits = law.unit.bit_length() + (noise.bits if noise else 0) + table.denominator.bit_length()
        _spend(2 * table.entries, bits)
        _spend(2 * len(law.below), law.unit.bit_length() * ((noise.bits if noise else 0) // 30 + 1))
        low, high = [0] * len(table.rows), [0] * len(table.rows)
        alone = [[0, 0], [0, 0]]  # left and right of the table: sum of Pr[x] q^(distance of x to its edge)
        for x, weight in law.items():
            i = table.served(x)
            if i is not None:
                low[i] += weight * self.masses[x][0]
                high[i] += weight * self.masses[x][1]
            elif noise is not None:
                power, side = noise.power(max(table.first - x, x - table.final)), alone[x > table.final]
                side[0] += weight * power[0]
                side[1] += weight * power[1]
        found = []
        for s in self.outputs:
            rows, weights = table.columns.get(s, ((), ()))
            below = sum(map(mul, map(low.__getitem__, rows), weights))
            above = below if noise is None else sum(map(mul, map(high.__getitem__, rows), weights))
            if noise is not None and table.outside == "geometric":  # outputs lie within the inputs that have a row
                for side, distance in zip(alone, (s - table.first, table.final - s), strict=True):
                    value = noise.at(distance)
                    below += side[0] * value[0] * table.denominator >> noise.bits
                    above -= -side[1] * value[1] * table.denominator >> noise.bits
            found.append((below, above))
        return found

    def outer(self, laws: Sequence[Law]) -> list[list[Pair]]:
        """For each law `Pr[s]`, up to a factor, of the outputs outside the table that differ: -1 and `last + 1` stand
        for all beyond them."""
        table, noise = self.table, Geometric(self.table.q or Fraction(1, 2), self.last + 1)
        outputs = [s for s in range(-1, self.last + 2) if s in (-1, self.last + 1) or not table.low <= s <= table.high]
        _spend(2 * len(laws) * (self.last + 1) * len(outputs), noise.bits + laws[0].unit.bit_length())
        return [
            [
                (
                    sum(w * noise.power(abs(s - x))[0] for x, w in law.items()),
                    sum(w * noise.power(abs(s - x))[1] for x, w in law.items()),
                )
                for s in outputs
            ]
            for law in laws
        ]

    def quotients(self, prior: Prior, every: bool) -> Fraction | None:
        """The largest quotient of two adjacent secrets: a step apart, or `every` two."""
        q, ratios = self.table.q, [Fraction(1)]
        for laws in prior.people:
            _spend(len(laws) * (len(laws) if every else 2) * len(self.outputs), 100 * GUARD)
            pairs = [(i, j) for i, j in combinations(range(len(laws)), 2) if every or j == i + 1]
            if q is not None and prior.independent:
                ratios.append(_tail_quotient(q, len(laws) - 1 if every else 1))
            columns = [self.released(law) for law in laws]
            if q is not None and not prior.independent:
                columns = [inside + outside for inside, outside in zip(columns, self.outer(laws), strict=True)]
            for i, j in pairs:
                found = _both_ways(columns[i], columns[j], Fraction(laws[j].unit, laws[i].unit))
                if found is None:
                    return None
                ratios.append(found)
        return max(ratios)

    def ordinary(self, reach: int) -> Fraction | None:
        """The largest quotient of two inputs at most `reach` apart."""
        table, last = self.table, self.last
        # The tails, and inputs that get noise alone.
        worst = Fraction(1) if table.q is None else _tail_quotient(table.q, reach)
        bits = (self.noise.bits if self.noise else 0) + table.denominator.bit_length()
        near = range(max(0, table.first - reach), min(last, table.final + reach) + 1)
        _spend(4 * reach * (table.entries + len(near)), bits)
        rows = [dict(row) for row in table.rows]
        for x in near:
            for y in range(x + 1, min(x + reach, near[-1]) + 1):
                found = self._two_inputs(rows, x, y)
                if found is None:
                    return None
                worst = max(worst, found)
        return worst

    def _two_inputs(self, rows: Sequence[Mapping[int, int]], x: int, y: int) -> Fraction | None:
        """The largest quotient of two inputs within the table."""
        i, j = self.table.served(x), self.table.served(y)
        if i is None and j is None:
            return Fraction(1)
        if i is None or j is None:
            assert self.noise is not None
            alone, given = (x, y) if i is None else (y, x)
            outputs = range(self.table.low, self.table.high + 1)
            _spend(8 * len(outputs), self.noise.bits)
            one = [self.noise.at(s - alone) for s in outputs]
            mass, weights = self.masses[given], rows[i or j or 0]
            two = [(mass[0] * weights.get(s, 0), mass[1] * weights.get(s, 0)) for s in outputs]
            return _both_ways(one, two, Fraction(self.table.denominator))
        if rows[i].keys() != rows[j].keys():
            return None
        top, bottom, under, over = 1, 1, 1, 1  # the largest and the smallest quotient of weights
        if i != j:
            top, bottom, under, over = 0, 1, 1, 0
            for s, a in rows[i].items():
                b = rows[j][s]
                if a * bottom > top * b:
                    top, bottom = a, b
                if a * over < under * b:
                    under, over = a, b
        (a_low, a_high), (b_low, b_high) = self.masses[x], self.masses[y]
        if a_low <= 0 or b_low <= 0:
            return None
        return max(Fraction(top * a_high, bottom * b_low), Fraction(over * b_high, under * a_low))

    def errors(self, power: int) -> tuple[list[int], int]:
        """At least the mean of `|s-x|^power` of every input, as integers over the unit that comes with them."""
        table, noise = self.table, self.noise
        found, unit = [], table.denominator << (noise.bits if noise else 0)
        _spend(table.entries + 9 * self.last, noise.bits if noise else 200)
        for x in range(self.last + 1):
            i = table.served(x)
            if i is None:
                assert noise is not None
                found.append(2 * noise.beyond(1, power)[1] * table.denominator)
                continue
            row = table.rows[i]
            if not table.first <= x <= table.final:
                _spend(len(row), 200)
            inner = sum(weight * abs(s - x) ** power for s, weight in row)
            outer = noise.outside(x, table.low, table.high, power) if noise else 0
            found.append(self.masses[x][1] * inner + outer * table.denominator)
        return found, unit


def _recheck_single(path: str | os.PathLike[str]) -> Findings:
    document = _read(path)
    try:
        return _check_single(document)
    except (Refused, Failed) as error:
        raise type(error)(f"{_name(path)}: {error}") from None


def _check_single(document: Mapping[str, Any]) -> Findings:
    table = _artifact(document)
    kind = document["problem"].get("kind")
    _must(kind != "multi-lte", "A party's part of a plan must be checked with its folder", kind)
    spec = _keys(
        document["problem"], "problem", "kind epsilon population",
        "fallback_epsilon tail never_worse objective adjacency method weights title source notes expect",
    )  # fmt: skip
    _choice(kind, "kind", "single-lte")
    epsilon, fallback = _check_epsilons(spec)
    tail = _choice(spec.get("tail", "geometric"), "tail", "geometric none")
    _choice(spec.get("objective", "mae"), "objective", "mae mse")
    every = _choice(spec.get("adjacency", "unit"), "adjacency", "unit all") == "all"
    method = _choice(spec.get("method", "lp"), "method", "lp shifting geometric")
    wanted = spec.get("never_worse", True)
    _must(type(wanted) is bool, "never_worse must be true or false", wanted)
    listed = spec["population"] if isinstance(spec["population"], list) else [spec["population"]]
    priors = [_prior(item) for item in _list(listed, "population", 1)]
    mix = [
        _number(weight, "weights") for weight in _list(spec.get("weights", [1] + [0] * (len(priors) - 1)), "weights")
    ]
    _must(len(mix) == len(priors) and min(mix) >= 0 and sum(mix) == 1, "weights must be one for each prior", len(mix))
    _must(tail == "none" or all(prior.independent for prior in priors), 'conditionals need tail = "none"', tail)
    plain = len(priors) == 1 and len(priors[0].people) == 1 and fallback is None
    _must(method != "shifting" or plain, "shifting is for one prior, one kind of person, no fallback", len(priors))

    last, largest = max(prior.last for prior in priors), max(prior.largest for prior in priors)
    _must(table.tail is None or table.tail["law"] == "geometric", "The tail of one entity must be geometric", "a share")
    _must(table.first >= 0 and table.final <= last, f"Rows must be for inputs 0..{last}", [table.first, table.final])
    whole = (table.first, table.final) == (0, last)
    _must(table.outside != "error" or whole, f"Every input 0..{last} must have a row", [table.first, table.final])
    if table.outside == "geometric":
        right = table.first <= table.low and table.high <= table.final
        _must(right, "With noise outside, outputs must lie within the inputs", [table.low, table.high])
    entity = Entity(table, last)

    factor, reach = (1, largest) if every else (largest, 1)
    private = _worst([entity.quotients(prior, every) for prior in priors])
    ordinary = entity.ordinary(reach)
    q = _ratio(epsilon / largest)
    cap = _mean_absolute(q)
    first, unit = entity.errors(1)
    second, _ = entity.errors(2)
    worst = Fraction(max(first), unit)
    noise_itself = method == "geometric" or all(prior.alone for prior in priors)
    rounded = noise_itself and (whole or table.outside == "geometric")
    limit = math.floor(cap * unit * (1 + Fraction(rounded, 2**30)))
    exempt = {x for x in range(last + 1) if table.q == q and (table.served(x) is None or table.low == table.high == x)}
    never_worse = all(error <= limit or x in exempt for x, error in enumerate(first))
    means = []
    for errors in (first, second):
        mean = Fraction(0)
        for weight, prior in zip(mix, priors, strict=True):
            if weight:
                _spend(last + 1, (unit.bit_length() // 30 + 1) * prior.total.unit.bit_length())
                mean += weight * Fraction(sum(w * errors[x] for x, w in prior.total.items()), prior.total.unit * unit)
        means.append(mean)

    _demand("epsilon under the prior", private, epsilon, factor)
    if fallback is not None:
        _demand("the ordinary epsilon", ordinary, fallback, factor)
    if wanted and not never_worse:
        raise Failed(
            f"no input may have a larger error than geometric noise, {_decimal(cap)}. Found {_decimal(worst)}."
        )
    claim = document["claim"]
    _claimed_epsilon(claim, "epsilon", private, factor)
    _claimed_epsilon(claim, "ordinary_epsilon", ordinary, factor)
    figures = {"mae": means[0], "mse": means[1], "worst_error": worst, "baseline_mae": cap}
    for name, value in figures.items():
        if name in claim:
            _claimed(claim, name, value)
    if claim.get("never_worse") and not never_worse:
        raise Failed("the claim never_worse does not hold.")
    log, ordinary_log = _log(private), _log(ordinary)
    return Findings(
        "PASS",
        "noise-matrix",
        {
            "epsilon": None if log is None else log * factor,
            "ordinary_epsilon": None if ordinary_log is None else ordinary_log * factor,
            **figures,
            "never_worse": never_worse,
        },
        ("lower_bound",) if claim.get("lower_bound") is not None else (),
    )


# ---------------------------------------------------------------------- claims


def _demand(name: str, ratio: Fraction | None, epsilon: Fraction, factor: Fraction | int) -> None:
    """A quotient must keep what the problem asks for; `factor` steps of it make an epsilon."""
    if not _within(ratio, epsilon / factor):
        raise Failed(f"{name} must be at most {_decimal(epsilon)}. Found {_decimal(_scaled(ratio, factor))}.")


def _scaled(ratio: Fraction | None, factor: Fraction | int) -> Fraction | None:
    log = _log(ratio)
    return None if log is None else log * factor


def _stated(claim: Mapping[str, Any], name: str) -> Fraction:
    text = claim.get(name)
    _must(isinstance(text, str), f"The claim must state {name} as text", text)
    value = _number(text, name)
    _must(abs(value) <= 10**300, f"The claim must state {name} as a number of a usual size", text)
    return value


def _claimed_epsilon(claim: Mapping[str, Any], name: str, ratio: Fraction | None, factor: Fraction | int) -> None:
    if name == "ordinary_epsilon" and claim.get(name) == "infinite":
        return
    limit = _stated(claim, name)
    if not _within(ratio, limit / factor):
        found = _decimal(_scaled(ratio, factor))
        raise Failed(f"the claim {name} <= {claim[name][:40]} does not hold. Found {found}.")


def _claimed(claim: Mapping[str, Any], name: str, found: Fraction) -> None:
    if found > _stated(claim, name):
        raise Failed(f"the claim {name} <= {claim[name][:40]} does not hold. Found {_decimal(found)}.")


def _decimal(value: Fraction | None, digits: int = 15) -> str:
    """At least `value`, with so many significant digits."""
    if value is None:
        return "infinite"
    if value == 0:
        return "0"
    places = digits - (len(str(abs(value.numerator) // value.denominator)) if abs(value) >= 1 else 0)
    while abs(value) * 10**places < 10 ** (digits - 1) and places < 400:
        places += 1
    scaled = -(-value.numerator * 10 ** max(places, 0) // value.denominator)
    text = f"{abs(scaled):0{max(places, 0) + 1}d}"
    if places > 0:
        text = f"{text[:-places]}.{text[-places:]}".rstrip("0").rstrip(".")
    return "-" + text if scaled < 0 else text


# ---------------------------------------------------------------------- several entities


@dataclass(frozen=True)
class Plan:
    """The problem of several entities, and a table for each."""

    tables: Sequence[Table]
    worlds: Sequence[Sequence[Prior]]
    names: Sequence[Sequence[bytes]]
    """For each world and party what tells its prior from another."""
    epsilon: Fraction
    fallback: Fraction | None
    honest: int
    f: Sequence[int]

    @cached_property
    def sensitivity(self) -> int:
        """How far one person can move the sum."""
        return max(abs(f) * prior.largest for f, prior in zip(self.f, self.worlds[0], strict=True))

    @cached_property
    def steps(self) -> list[Fraction]:
        """For each party how many steps of one of its people move the sum as far as anybody can."""
        return [Fraction(self.sensitivity, abs(f)) for f in self.f]


@dataclass(frozen=True)
class Figures:
    """What is recomputed of a plan; quotients are those of one step."""

    quotients: Sequence[Fraction | None]
    ordinary: Sequence[Fraction | None]
    own: Sequence[Fraction]
    mae: Fraction
    mse: Fraction


def _recheck_plan(folder: str | os.PathLike[str]) -> Findings:
    path = os.path.join(folder, "plan.json")
    document = _read(path)
    try:
        _check_head(document, "optdp/plan", "format version plan claim problem provenance parties sha256")
        entries = _list(document["parties"], "parties", 2)
        for i, entry in enumerate(entries):
            right = (
                isinstance(entry, dict) and entry.keys() == {"file", "sha256"} and entry["file"] == f"party-{i}.json"
            )
            _must(right, "parties must list party-0.json, party-1.json, .. with their digests", entry)
    except Refused as error:
        raise Refused(f"{_name(path)}: {error}") from None
    tables, claims = [], []
    for i, entry in enumerate(entries):
        place = os.path.join(folder, f"party-{i}.json")
        member = _read(place)
        try:
            tables.append(_artifact(member))
            claims.append(member["claim"])
            party = claims[i].get("party")
            _must(type(party) is int and party == i, f"The file must be that of party {i}", party)
            _must(claims[i].get("plan") == document["plan"], "The file must be of this plan", claims[i].get("plan"))
            _must(_canonical(member["problem"]) == _canonical(document["problem"]), "The file must be of this plan", i)
            _must(member["sha256"] == entry["sha256"], "The file must be the one that plan.json lists", entry["sha256"])
        except Refused as error:
            raise Refused(f"{_name(place)}: {error}") from None
    try:
        identity = {"problem": document["problem"], "tables": [table.bare for table in tables]}
        right = document["plan"] == hashlib.sha256(_canonical(identity)).hexdigest()
        _must(right, "The identity of the plan must fit its tables", document["plan"])
        return _check_plan(document, tables, claims)
    except (Refused, Failed) as error:
        raise type(error)(f"{_name(folder)}: {error}") from None


def _check_plan(document: Mapping[str, Any], tables: Sequence[Table], claims: Sequence[Mapping[str, Any]]) -> Findings:
    plan = _plan(document["problem"], tables)
    laws = {None if table.tail is None else table.tail["law"] for table in tables}
    _must(laws in ({None}, {"sgdl"}), "Tables must be all finite, or all with shares of noise", laws)
    found = _joint(plan) if laws == {None} else _shared(plan)
    epsilons = [(_log(ratio) or 0) * steps for ratio, steps in zip(found.quotients, plan.steps, strict=True)]
    for i, ordinary in enumerate(found.ordinary):
        if plan.fallback is not None:
            _demand(f"the ordinary epsilon of party {i}", ordinary, plan.fallback, plan.worlds[0][i].largest)
    claim, parties = document["claim"], _list(document["claim"].get("parties"), "The claim's parties")
    _must(len(parties) == len(tables), "The claim must speak of every party", len(parties))
    baseline = _share_mean(Fraction(len(tables), plan.honest), _ratio(plan.epsilon / plan.sensitivity))
    for i, ratio in enumerate(found.quotients):
        _claimed_epsilon(claim, "epsilon", ratio, plan.steps[i])
    figures = {"mae": found.mae, "mse": found.mse, "baseline_mae": baseline}
    for name, value in figures.items():
        _claimed(claim, name, value)
    for i in range(len(tables)):
        for own in (parties[i], claims[i]):
            _must(isinstance(own, dict), f"The claim of party {i} must be a table", own)
            _claimed_epsilon(own, "epsilon", found.quotients[i], plan.steps[i])
            _claimed_epsilon(own, "ordinary_epsilon", found.ordinary[i], plan.worlds[0][i].largest)
            _claimed(own, "mae", found.own[i])
    all_figures: dict[str, Fraction | bool | None] = {"epsilon": max(epsilons), **figures}
    for i, epsilon in enumerate(epsilons):
        all_figures[f"party {i}: epsilon"] = epsilon
        all_figures[f"party {i}: ordinary_epsilon"] = _scaled(found.ordinary[i], plan.worlds[0][i].largest)
        all_figures[f"party {i}: mae"] = found.own[i]
    return Findings("PASS", "plan", all_figures, ("lower_bound",) if claim.get("lower_bound") is not None else ())


def _demand_privacy(plan: Plan, quotients: Sequence[Fraction | None]) -> None:
    for i, ratio in enumerate(quotients):
        _demand(f"epsilon of the people of party {i}", ratio, plan.epsilon, plan.steps[i])


def _plan(problem: Any, tables: Sequence[Table]) -> Plan:
    spec = _keys(
        problem, "problem", "kind epsilon parties",
        "method honest objective fallback_epsilon f divisor contraction also title source notes expect",
    )  # fmt: skip
    _choice(spec["kind"], "kind", "multi-lte")
    epsilon, fallback = _check_epsilons(spec)
    method = _choice(spec.get("method", "joint"), "method", "joint divisible geometric")
    _choice(spec.get("objective", "mae"), "objective", "mae mse")
    _choice(spec.get("contraction", "optimal"), "contraction", "optimal scaled shifts none algorithm-5")
    divisor = _number(spec.get("divisor", 1), "divisor")
    _must(Fraction(1, 10**12) <= divisor <= 10**12, "divisor must lie between 1e-12 and 1e12", spec.get("divisor"))
    count = _whole(len(_list(spec["parties"], "parties")), "the number of parties", 2, 1000)
    honest = _whole(spec.get("honest", count), "honest", 1, count)
    f = [_whole(factor, "f", -1000, 1000) for factor in _list(spec.get("f", [1] * count), "f")]
    _must(len(f) == count and 0 not in f, "f must be one coefficient for each party, not 0", f)
    lists = [spec["parties"]]
    lists += [
        _list(_keys(world, "a world", "parties")["parties"], "parties") for world in _list(spec.get("also", []), "also")
    ]
    _must(
        method == "joint" or (fallback is None and len(lists) == 1), "also and fallback_epsilon are for joint", method
    )
    _must(all(len(world) == count for world in lists), "Every world must have every party", len(lists))
    _must(len(tables) == count, "A plan must have a table for each party", len(tables))
    known: dict[bytes, Prior] = {}
    names, units = [], set()
    for world in lists:
        for party in world:
            name = _canonical(party)
            if name not in known:
                known[name] = _prior(party, "unit")
                unit = party.get("unit", "")
                _must(isinstance(unit, str), "unit must be text", unit)
                units.add(unit)
        names.append([_canonical(party) for party in world])
    _must(len(units) == 1, "All parties must count in one unit", sorted(units))
    worlds = [[known[name] for name in world] for world in names]
    for world in worlds:
        alike = all((a.last, a.largest) == (b.last, b.largest) for a, b in zip(world, worlds[0], strict=True))
        _must(alike, "Parties must have the same inputs and contributions in every world", len(worlds))
    for table, prior in zip(tables, worlds[0], strict=True):
        inputs = [table.first, table.final]
        _must(table.first >= 0 and table.final <= prior.last, f"Rows must be for inputs 0..{prior.last}", inputs)
        whole = inputs == [0, prior.last]
        _must(table.outside != "error" or whole, f"Every input 0..{prior.last} must have a row", inputs)
    return Plan(tables, worlds, names, epsilon, fallback, honest, f)


# ---------------------------------------------------------------------- plans of finite tables


def _joint(plan: Plan) -> Figures:
    _must(len(plan.tables) <= 64, "A joint plan must have at most 64 parties", len(plan.tables))
    entities = [Entity(table, prior.last) for table, prior in zip(plan.tables, plan.worlds[0], strict=True)]
    worst: list[Fraction | None] = [Fraction(1)] * len(entities)
    for world, names in zip(plan.worlds, plan.names, strict=True):
        keys = [(name, entity.table.bare) for name, entity in zip(names, entities, strict=True)]
        kinds = list(dict.fromkeys(keys))  # parties that are alike in everything are looked at once
        members = [keys.index(key) for key in kinds]
        found = _honest_sets(plan, [entities[i] for i in members], [world[i] for i in members],
                             [keys.count(key) for key in kinds])  # fmt: skip
        worst = [_worst([old, found[kinds.index(key)]]) for old, key in zip(worst, keys, strict=True)]
    _demand_privacy(plan, worst)
    ordinary = [entity.ordinary(1) for entity in entities]
    errors, total = [], POINT
    for entity, prior, f in zip(entities, plan.worlds[0], plan.f, strict=True):
        errors.append(_rounded(_error_law(entity, prior.total, f), relative=False))
        total = _rounded(_times(total, errors[-1]), relative=False)
    return Figures(worst, ordinary, [law.moment(1) for law in errors], total.moment(1), total.moment(2))


def _honest_sets(
    plan: Plan, entities: Sequence[Entity], priors: Sequence[Prior], counts: Sequence[int]
) -> list[Fraction | None]:
    """For each kind of party the largest quotient of a step over all sets of `honest` parties."""
    totals, secrets = [], []
    for entity, prior in zip(entities, priors, strict=True):
        totals.append(_report(entity, prior.total))
        secrets.append([[_report(entity, law) for law in laws] for laws in prior.people])
    around: dict[tuple[int, ...], Law] = {(0,) * len(counts): POINT}

    def of(chosen: tuple[int, ...]) -> Law:
        """The law of the sum of so many reports of each kind."""
        if chosen not in around:
            i = next(i for i, k in enumerate(chosen) if k)
            fewer = (*chosen[:i], chosen[i] - 1, *chosen[i + 1 :])
            around[chosen] = _rounded(_times(of(fewer), totals[i]), relative=True)
        return around[chosen]

    worst: list[Fraction | None] = [Fraction(1)] * len(counts)
    for chosen in _choices(counts, plan.honest):
        for i, k in enumerate(chosen):
            if k == 0 or worst[i] is None:
                continue
            rest = of((*chosen[:i], k - 1, *chosen[i + 1 :]))
            for laws in secrets[i]:
                for one, other in pairwise([_times(law, rest) for law in laws]):
                    worst[i] = _worst([worst[i], _law_quotient(one, other)])
    return worst


def _choices(counts: Sequence[int], total: int) -> Iterator[tuple[int, ...]]:
    """Every way to take `total` things, at most `counts[i]` of kind `i`."""
    _spend(1, 10**6)
    if not counts:
        if total == 0:
            yield ()
        return
    for k in range(min(counts[0], total) + 1):
        if total - k <= sum(counts[1:]):
            for rest in _choices(counts[1:], total - k):
                yield (k, *rest)


def _report(entity: Entity, law: Law) -> Law:
    """The law of what a finite table reports."""
    low, high = entity.outputs[0], entity.outputs[-1]
    _spend(high - low, 3000)
    values = dict(zip(entity.outputs, entity.released(law), strict=True))
    weights = [values.get(s, (0, 0))[0] for s in range(low, high + 1)]
    return _rounded(_exact(weights, law.unit * entity.table.denominator, low), relative=True)


def _law_quotient(one: Law, other: Law) -> Fraction | None:
    first = min(one.first, other.first)
    last = max(one.first + len(one.above), other.first + len(other.above))
    _spend(4 * (last - first), one.unit.bit_length() ** 2 // 900)

    def padded(law: Law) -> list[Pair]:
        before, after = law.first - first, last - law.first - len(law.above)
        return [(0, 0)] * before + list(zip(law.below, law.above, strict=True)) + [(0, 0)] * after

    return _both_ways(padded(one), padded(other), Fraction(other.unit, one.unit))


def _error_law(entity: Entity, law: Law, f: int) -> Law:
    """The law of `s - f x` of a finite table."""
    table, found = entity.table, dict[int, int]()
    for x, weight in law.items():
        row = table.rows[table.served(x) or 0]
        _spend(len(row), law.unit.bit_length() + 200)
        for s, inside in row:
            found[s - f * x] = found.get(s - f * x, 0) + weight * inside
    low, high = min(found), max(found)
    _spend(high - low, 3000)
    return _exact([found.get(k, 0) for k in range(low, high + 1)], law.unit * table.denominator, low)


# ---------------------------------------------------------------------- plans of shares of noise


class Shares:
    """`Pr[x]` of SGDL_beta(q) for `x = 0..reach` in enclosures over `2^bits`, narrow relative to their size."""

    def __init__(self, beta: Fraction, q: Fraction, reach: int) -> None:
        n, d, p, r = beta.numerator, beta.denominator, q.numerator, q.denominator
        _must(max(n, d) <= 10**9 and q <= 1 - Fraction(1, 10**9), "q and beta must be of a usual size", str(beta)[:40])
        loss, rise = _loss(q), 8 * math.ceil(beta / (1 - q))
        terms = (GUARD // 2 + 20) * 64 // loss + rise  # b(k)^2 is negligible from here on
        length = max(terms + reach, (GUARD + 20) * 64 // loss + rise) + 2
        self.bits = bits = GUARD + 64 + d.bit_length() + reach * loss // 64
        _must(bits <= MOST_BITS, f"Noise must be enclosed in {MOST_BITS} bits", bits)
        _spend(2 * (length + 2 * terms * (reach + 1)), 2 * bits)
        low, high = [1 << bits], [1 << bits]
        for k in range(length):
            top, bottom = p * (n + k * d), r * d * (k + 1)
            low.append(low[k] * top // bottom)
            high.append(-(-high[k] * top // bottom))

        def ratio(k: int) -> Fraction:
            """No ratio from `b(k)` on is larger."""
            found = max(q, q * (beta + k) / (k + 1))
            _must(found < 1, "noise must fall within what is written out", str(beta)[:40])
            return found

        left = 1 / (1 - ratio(length))
        total_low, total_high = sum(low), sum(high) + math.ceil(high[length] * left)
        left = 1 / (1 - ratio(terms) ** 2)
        self.below: list[int] = []
        self.above: list[int] = []
        for x in range(reach + 1):
            below = sum(map(mul, low[:terms], low[x : x + terms]))
            above = sum(map(mul, high[:terms], high[x : x + terms])) + math.ceil(high[terms] * high[terms + x] * left)
            self.below.append((below << bits) // total_high**2)
            self.above.append(-((-above << bits) // total_low**2))

    def at(self, k: int) -> Pair:
        return self.below[abs(k)], self.above[abs(k)]


def _share_mean(beta: Fraction, q: Fraction) -> Fraction:
    """At least the mean absolute value of SGDL_beta(q)."""
    if beta == 1:
        return _mean_absolute(q)
    law = Shares(beta, q, 1)
    zero, one = law.above[0], law.below[1] if beta < 1 else law.above[1]
    centre = (beta * zero - (1 - beta) * one) / (1 << law.bits)
    return centre * 2 * q / ((1 - q) * (1 - q))


@dataclass(frozen=True)
class Sharer:
    """One entity that contracts its input, adds a share of noise and redraws what falls on the outputs of its table."""

    table: Table
    prior: Prior
    beta: Fraction
    q: Fraction
    f: int
    contraction: Sequence[Row] | None
    contracted_unit: int

    @property
    def has_table(self) -> bool:
        return self.table.low < self.table.high  # what is redrawn from one output is that output

    @property
    def plain(self) -> bool:
        return self.contraction is None and not self.has_table

    def moved(self, x: int) -> Row:
        return [(x, self.contracted_unit)] if self.contraction is None else self.contraction[x]

    def contracted(self, law: Law, without: range = range(0)) -> list[int]:
        """The law of `y` over `law.unit contracted_unit`, but for some inputs."""
        found = [0] * (self.prior.last + 1)
        for x, weight in law.items():
            if x not in without:
                row = self.moved(x)
                _spend(len(row), law.unit.bit_length())
                for y, inside in row:
                    found[y] += weight * inside
        return found

    @cached_property
    def outputs(self) -> range:
        return range(self.table.low, self.table.high + 1) if self.has_table else range(0)

    @cached_property
    def served(self) -> range:
        return range(self.table.first, self.table.final + 1) if self.has_table else range(0)

    @cached_property
    def farthest(self) -> int:
        """How far an output of the table can be from any `f x`."""
        ends = (0, self.f * self.prior.last)
        return max([0, *(abs(s - end) for s in (self.table.low, self.table.high) for end in ends if self.has_table)])

    @cached_property
    def noise(self) -> Shares:
        return Shares(self.beta, self.q, self.farthest)

    @cached_property
    def base(self) -> list[list[Pair]]:
        """For each input that has a row the base kernel on the outputs, over `contracted_unit 2^bits`."""
        _must(len(self.served) * len(self.outputs) <= 5_000_000, "A table may have 5,000,000 cells", len(self.outputs))
        found = []
        for x in self.served:
            row = self.moved(x)
            _spend(2 * len(row) * len(self.outputs), self.noise.bits)
            line = []
            for s in self.outputs:
                values = [(inside, self.noise.at(s - self.f * y)) for y, inside in row]
                line.append((sum(w * value[0] for w, value in values), sum(w * value[1] for w, value in values)))
            found.append(line)
        return found

    @cached_property
    def masses(self) -> list[Pair]:
        """`c(x)` of each input that has a row, over `contracted_unit 2^bits`."""
        return [(sum(value[0] for value in line), sum(value[1] for value in line)) for line in self.base]

    def quotient(self) -> Fraction | None:
        """`Q`: the largest quotient of `f A_w * Geo_q` for a step."""
        size = abs(self.f)
        if self.plain and self.prior.independent:
            return _tail_quotient(self.q, size)
        noise, ratios = Geometric(self.q, size * self.prior.last), [Fraction(1)]
        for laws in self.prior.people:
            sums = []
            for law in laws:
                _spend(6 * (self.prior.last + 1), noise.bits * 3 + law.unit.bit_length())
                sums.append(_geometric_sums(self.contracted(law), noise, size))
            for (one, a), (other, b) in pairwise(zip(laws, sums, strict=True)):
                found = _both_ways(a, b, Fraction(other.unit, one.unit))
                if found is None:
                    return None
                ratios.append(found)
        return max(ratios)

    def spread(self) -> Fraction | None:
        """The largest quotient of a released and a base law over the smallest, both taken with 1."""
        if not self.has_table:
            return Fraction(1)
        most, least = Fraction(1), Fraction(1)
        for law in (self.prior.total, *(law for laws in self.prior.people for law in laws)):
            base = self._around(self.contracted(law))
            unserved = self._around(self.contracted(law, without=self.served))
            weights = [dict(law.items()).get(x, 0) for x in self.served]
            low, high = ([w * mass[side] for w, mass in zip(weights, self.masses, strict=True)] for side in (0, 1))
            _spend(2 * self.table.entries, law.unit.bit_length() + self.noise.bits)
            for s, own, rest in zip(self.outputs, base, unserved, strict=True):
                rows, inside = self.table.columns.get(s, ((), ()))
                below = sum(map(mul, map(low.__getitem__, rows), inside)) + rest[0] * self.table.denominator
                above = sum(map(mul, map(high.__getitem__, rows), inside)) + rest[1] * self.table.denominator
                if below <= 0 or own[0] <= 0:
                    return None
                most = max(most, Fraction(above, own[0] * self.table.denominator))
                least = min(least, Fraction(below, own[1] * self.table.denominator))
        return most / least

    def _around(self, law: Sequence[int]) -> list[Pair]:
        """`sum over y of law(y) SGDL(s - f y)` for each output of the table."""
        points = [(y, weight) for y, weight in enumerate(law) if weight]
        _spend(2 * len(points) * len(self.outputs), self.noise.bits + max(law).bit_length())
        found = []
        for s in self.outputs:
            values = [(weight, self.noise.at(s - self.f * y)) for y, weight in points]
            found.append((sum(w * value[0] for w, value in values), sum(w * value[1] for w, value in values)))
        return found


def _geometric_sums(law: Sequence[int], noise: Geometric, size: int) -> list[Pair]:
    """`sum over z of law(z) q^(size |y-z|)` for each `y`, over `2^bits`."""
    (low, high), bits = noise.power(size), noise.bits
    sums, below, above = [], 0, 0
    for weight in law:
        below, above = (below * low >> bits) + (weight << bits), -(-above * high >> bits) + (weight << bits)
        sums.append((below, above))
    below = above = 0
    for y in range(len(law) - 1, -1, -1):
        sums[y] = sums[y][0] + below, sums[y][1] + above
        below, above = (below + (law[y] << bits)) * low >> bits, -(-(above + (law[y] << bits)) * high >> bits)
    return sums


def _sharer(table: Table, prior: Prior, f: int, honest: int, q: Fraction) -> Sharer:
    """The entity of a table whose tail is a share of noise."""
    tail = table.tail or {}
    beta, factor = _quotient(tail["beta"], "beta"), _whole(tail["factor"], "factor", -1000, 1000)
    unit, rows = _positive(tail["contraction_denominator"], "contraction_denominator"), tail["contraction"]
    _must(beta <= 1 and unit.bit_count() == 1, "beta must be at most 1, denominators powers of two", str(beta)[:40])
    _must(factor == f, f"factor must be the coefficient {f}", factor)
    _must(table.outside == "geometric", 'outside must be "geometric" with a share of noise', table.outside)
    if rows is not None:
        _must(isinstance(rows, list) and len(rows) == prior.last + 1, f"Contract each input 0..{prior.last}", rows)
        for row in rows:
            _check_row(row, 0, prior.last, unit)
    if beta * honest < 1 or table.q != q:
        raise Failed(f"the noise of any {honest} parties must add up to geometric noise of one ratio.")
    return Sharer(table, prior, beta, q, f, rows, unit)


def _shared(plan: Plan) -> Figures:
    q = plan.tables[0].q
    assert q is not None
    keys = [(name, table.bare, f) for name, table, f in zip(plan.names[0], plan.tables, plan.f, strict=True)]
    kinds = list(dict.fromkeys(keys))  # parties that are alike in everything are looked at once
    places, counts = [kinds.index(key) for key in keys], [keys.count(key) for key in kinds]
    sharers = []
    for key in kinds:
        i = keys.index(key)
        sharers.append(_sharer(plan.tables[i], plan.worlds[0][i], plan.f[i], plan.honest, q))
    leaks = [(sharer.quotient(), sharer.spread()) for sharer in sharers]
    quotients: list[Fraction | None] = []
    for i, k in enumerate(places):
        own, spreads = leaks[k][0], [leaks[j][1] for n, j in enumerate(places) if n != i]
        known = sorted((spread for spread in spreads if spread is not None), reverse=True)
        mine = leaks[k][1]
        if own is None or mine is None or len(known) < len(spreads):
            quotients.append(None)
        else:
            quotients.append(math.prod(known[: plan.honest - 1], start=own * mine))
    _demand_privacy(plan, quotients)
    if all(sharer.plain for sharer in sharers):
        return _shares_alone(plan, quotients, [sharers[k] for k in places])
    errors = [Errors.of(sharer) for sharer in sharers]
    mae, mse = _aggregate(errors, counts)
    return Figures(quotients, [None] * len(places), [errors[k].absolute for k in places], mae, mse)


def _shares_alone(plan: Plan, quotients: Sequence[Fraction | None], sharers: Sequence[Sharer]) -> Figures:
    """Shares of noise and nothing else. For `beta <= 1` the law is log-convex on each side (its values are moments of a
    measure on `[0, q]`), so that a step of one changes it by `Pr[0]/Pr[1]` at most."""
    q, ordinary, own = sharers[0].q, [], []
    for sharer in sharers:
        law = Shares(sharer.beta, q, 1)
        ordinary.append(Fraction(law.above[0], law.below[1]) ** abs(sharer.f))
        own.append(_share_mean(sharer.beta, q))
    total = sum((sharer.beta for sharer in sharers), Fraction(0))
    return Figures(quotients, ordinary, own, _share_mean(total, q), 2 * total * q / (1 - q) ** 2)


@dataclass(frozen=True)
class Errors:
    """The error `N = s - f x` of one entity: its law up to a cut, and bounds of what lies beyond it."""

    law: Law
    rare: Fraction
    """`Pr[|N| > cut]`."""
    beyond: Fraction
    """`E[|N|; |N| > cut]`."""
    absolute: Fraction
    square: Fraction
    mean: tuple[Fraction, Fraction]

    @staticmethod
    def of(sharer: Sharer) -> Errors:
        moved: dict[int, int] = {}
        prior, f, q = sharer.prior.total, sharer.f, sharer.q
        for x, weight in prior.items():
            _spend(len(sharer.moved(x)), prior.unit.bit_length())
            for y, inside in sharer.moved(x):
                moved[f * (y - x)] = moved.get(f * (y - x), 0) + weight * inside
        reach = max(map(abs, moved))
        far = max(sharer.farthest, 130 * 64 // _loss(q)) + 1
        cut = reach + far
        noise, m = Shares(sharer.beta, q, cut + reach), sharer.table.denominator
        shift = [moved.get(k, 0) * m for k in range(-reach, reach + 1)]
        sides = []
        for values in (noise.below, noise.above):
            around = _multiplied(shift, [values[abs(e)] for e in range(-cut - reach, cut + reach + 1)])
            sides.append(around[2 * reach : 2 * reach + 2 * cut + 1])
        low, high = sides
        chances = dict(prior.items())
        scale = noise.bits - sharer.noise.bits if sharer.has_table else 0
        for x, line, mass in zip(sharer.served, sharer.base, sharer.masses, strict=True):
            chance, row = chances.get(x, 0) << scale, dict(sharer.table.rows[x - sharer.served.start])
            _spend(4 * len(line) if chance else 0, chance.bit_length() + sharer.noise.bits)
            for s, base in zip(sharer.outputs, line, strict=True) if chance else ():
                weight = row.get(s, 0)
                low[s - f * x + cut] += chance * (mass[0] * weight - m * base[1])
                high[s - f * x + cut] += chance * (mass[1] * weight - m * base[0])
        unit = prior.unit * sharer.contracted_unit * m << noise.bits
        law = _rounded(Law(-cut, [max(value, 0) for value in low], high, unit), relative=False)
        # |N| > cut only if the noise exceeds `far`, and Pr[x+1] <= q Pr[x] there.
        edge, a = 2 * Fraction(noise.above[far], 1 << noise.bits), far + reach
        rare, beyond = edge * q / (1 - q), edge * (a * q / (1 - q) + q / (1 - q) ** 2)
        squares = edge * (a * a * q / (1 - q) + 2 * a * q / (1 - q) ** 2 + q * (1 + q) / (1 - q) ** 3)
        up = sum(k * (w if k > 0 else v) for k, (v, w) in enumerate(zip(law.below, law.above, strict=True), -cut))
        down = sum(k * (v if k > 0 else w) for k, (v, w) in enumerate(zip(law.below, law.above, strict=True), -cut))
        mean = Fraction(down, law.unit) - beyond, Fraction(up, law.unit) + beyond
        return Errors(law, rare, beyond, law.moment(1) + beyond, law.moment(2) + squares, mean)


def _aggregate(errors: Sequence[Errors], counts: Sequence[int]) -> tuple[Fraction, Fraction]:
    """At least the mean absolute and the mean squared error of the sum of so many of each."""
    total = POINT
    for error, count in zip(errors, counts, strict=True):
        power = error.law
        while count:
            if count & 1:
                total = _rounded(_times(total, power), relative=False)
            count >>= 1
            power = _rounded(_times(power, power), relative=False) if count else power
    pairs = list(zip(errors, counts, strict=True))
    every = sum((error.absolute * count for error, count in pairs), Fraction(0))
    cut = sum((count * (error.beyond + error.rare * (every - error.absolute)) for error, count in pairs), Fraction(0))
    square, means = Fraction(0), [Fraction(0), Fraction(0)]
    for error, count in pairs:  # E (sum N)^2 = sum of E N^2 + (sum of means)^2 - sum of (mean)^2
        low, high = error.mean
        least = Fraction(0) if low <= 0 <= high else min(low * low, high * high)
        square += count * (error.square - least)
        means = [means[0] + count * low, means[1] + count * high]
    return total.moment(1) + cut, square + max(mean * mean for mean in means)


# ---------------------------------------------------------------------- command line


def main(arguments: Sequence[str]) -> int:
    """Print the figures and PASS, or the first claim that fails."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: python -m optdp.recheck a.json, or the folder of a plan", file=sys.stderr)
        return 2
    try:
        found = recheck(arguments[0])
    except Failed as error:
        print(f"FAIL {error}", file=sys.stderr)
        return 1
    except Refused as error:
        print(f"REFUSED {error}", file=sys.stderr)
        return 2
    for name, value in found.figures.items():
        print(f"  {name:<26} {str(value).lower() if isinstance(value, bool) else _decimal(value)}")
    for name in found.unchecked:
        print(f"  {name:<26} not checked here; optdp verify does")
    print(f"PASS {_name(arguments[0])}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
