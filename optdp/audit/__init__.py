"""Audit: draw from a sampler that can only be called, and try to refute what its artifact claims.

For two secrets `w`, `w'` and a set `S` of outputs the claim is `Pr[S|w] <= e^eps Pr[S|w']`. Every draw takes one of the
secrets of a person by chance, an input from the law of the sum given that secret, and an output from the sampler. Of
the draws that fall into `S`, and whose secret is one of the two, each is of `w` with probability `Pr[S|w] / (Pr[S|w] +
Pr[S|w'])`: an exact binomial test of that share refutes the claim, or proves a lower bound of epsilon. All tests
together err with probability at most FAMILY if the claim is true (docs/audit.md has the proof).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optdp.artifact import Opened, OpenedMatrix, OpenedParty, OpenedPlan, OpenedShuffle, open_artifact
from optdp.audit import hypotheses
from optdp.audit.clients import Client, client_trial
from optdp.audit.experiment import Trial, trials
from optdp.audit.hypotheses import Misfit, Proved, Tally
from optdp.audit.plans import Table, party_trial, plan_trials, seeded_sum, summed
from optdp.errors import ProblemError
from optdp.mechanism.added_noise import table_only
from optdp.mechanism.columns import many
from optdp.mechanism.matrix import NoiseMatrix
from optdp.mechanism.seeded_maps import SeededMaps
from optdp.numbers.draws import uniform_below
from optdp.numbers.exact import check_whole, shown, to_fraction
from optdp.numbers.source import Source
from optdp.single.problem import SingleLTE

FAMILY = 1e-6
"""The probability, at most, that anything at all is said against a sampler that keeps its artifact's promise."""
MOST_DRAWS = 40_000_000
"""Inputs that are drawn in all, of all parties; more might not fit into memory."""

REFUTED, OTHER_LAW, NOT_REFUTED = "refuted", "does not follow its table", "not refuted"
NO_CLAIM = "no difference from its table found"
MEANING = {
    REFUTED: "the sampler reveals more than its artifact claims",
    OTHER_LAW: "the claim is not refuted, but the sampler does not draw from its table: do not use it",
    NOT_REFUTED: "no test found a difference; that is no proof of privacy: `verify` proves the table, not the sampler",
    NO_CLAIM: "one party's report is private only inside the secure sum of its plan: audit the plan's folder as well",
}

Integers = NDArray[np.int64]
Sampler = Callable[[Integers], Integers]


@dataclass(frozen=True)
class Audit:
    """What was found."""

    proved: tuple[Proved, ...]
    """For each claim the event that proves most."""
    misfit: Misfit | None
    draws: int
    tests: int
    secure: bool
    sha256: str
    seconds: float

    @property
    def verdict(self) -> str:
        """One of "refuted", "does not follow its table", "not refuted"; "no difference ..." if nothing is claimed."""
        if any(found.refuted for found in self.proved):
            return REFUTED
        return OTHER_LAW if self.misfit is not None else NOT_REFUTED if self.proved else NO_CLAIM

    @property
    def failed(self) -> bool:
        """Whether the sampler must not be used."""
        return self.verdict in (REFUTED, OTHER_LAW)

    @property
    def epsilon_proved(self) -> float:
        """A lower bound of the sampler's epsilon under the prior."""
        return max((found.bound for found in self.proved if found.claim != "ordinary epsilon"), default=0.0)

    def summary(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {
            "verdict": self.verdict,
            "meaning": MEANING[self.verdict],
            "claims": [
                {
                    "claim": found.claim,
                    "claimed": float(found.claimed),
                    "proved_at_least": found.bound if math.isfinite(found.bound) else None,
                    "refuted": found.refuted,
                    "event": found.event,
                    "outputs": found.outputs[:100],
                    "more_likely": {"case": found.one, "hits": found.hits[0]},
                    "less_likely": {"case": found.other, "hits": found.hits[1]},
                    "event_chosen_from": "draws" if found.chosen else "artifact",
                }
                for found in self.proved
            ],
            "follows_its_table": self.misfit is None,
            "misfit": None
            if self.misfit is None
            else {
                "case": self.misfit.arm,
                "event": self.misfit.event,
                "outputs": self.misfit.outputs[:100],
                "hits": self.misfit.hits,
                "draws": self.misfit.draws,
                "expected_share": self.misfit.expected,
            },
            "draws": self.draws,
            "tests": self.tests,
            "family_error": FAMILY,
            "secure_randomness": self.secure,
            "sha256": self.sha256,
            "seconds": round(self.seconds, 3),
        }


def audit(
    artifact: str | Path | Opened,
    samples: int = 1_000_000,
    sampler: Sampler | Sequence[Sampler] | None = None,
    seed: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> Audit:
    """Try to refute the claims of `artifact`, which are verified first, with `samples` draws for each secret.

    `sampler` takes an array of inputs and returns an array of independent outputs, one for each; of a plan's folder a
    list with one for each party, unless the release is drawn inside, from one table of the total. By default it is
    optdp's own. Of a shuffle protocol a client is audited: inputs are the whole numbers that its law takes. A `seed`
    makes the audit repeatable, for tests: whoever knows it could pass an audit on purpose.
    """
    check_whole(samples, "samples", 100, MOST_DRAWS)
    begin, source, say = time.perf_counter(), Source(seed), progress or (lambda _: None)
    say("verifying the artifact")
    found = open_artifact(artifact, OpenedMatrix, OpenedPlan, OpenedParty, OpenedShuffle)
    if isinstance(found, OpenedShuffle):
        if isinstance(sampler, Sequence):
            raise ProblemError("sampler must be a single one for a shuffle protocol: its client.")
        made, client = [client_trial(found.deployed)], sampler or Client(found.deployed, source)
        return examine(made, client, samples, source, found.sha256, say, begin)
    made, tables = _tested(found)
    folder = isinstance(found, OpenedPlan) and found.plan.problem.method != "inside"
    seeded = [table for table in tables if isinstance(table, SeededMaps)]
    if seeded and folder and sampler is not None:
        raise ProblemError(
            "The samplers of a plan with a common word draw nothing: run their self tests. Audit the plan without them."
        )
    if sampler is None:
        samplers = [_own(table, source) for table in tables]
    elif folder != isinstance(sampler, Sequence) or (isinstance(sampler, Sequence) and len(sampler) != len(tables)):
        raise ProblemError(f"sampler must be one for each party of a plan ({len(tables)}), else a single one.")
    else:
        samplers = list(sampler) if isinstance(sampler, Sequence) else [sampler]
    whole = summed(samplers) if folder else samplers[0]
    whole = seeded_sum(seeded, source) if seeded and folder else whole
    return examine(made, whole, samples, source, found.sha256, say, begin, columns=len(samplers))


def _tested(found: Opened) -> tuple[list[Trial], Sequence[Table]]:
    """What is tested of a verified artifact or plan, or of one party's file; the tables."""
    match found:
        case OpenedPlan():
            plan = found.plan
            if plan.problem.method == "inside":
                return _whole(plan.problem.merged, plan.tables[0], plan.claim["parties"])
            return plan_trials(plan.problem, plan.tables, plan.claim), plan.tables
        case OpenedParty():
            member = found.member
            if member.problem.method == "inside":
                raise ProblemError("A release that is drawn inside is audited by the plan. Give its folder.")
            return [party_trial(member.problem, member.party, member.table)], [member.table]
        case OpenedMatrix():
            stated = found.claim["ordinary_epsilon"]
            ordinary = None if stated == "infinite" else to_fraction(stated, "ordinary_epsilon")
            matrix = table_only(found.matrix, "An audit")
            claimed = to_fraction(found.claim["epsilon"], "epsilon")
            return trials(found.problem, matrix, claimed, ordinary), [matrix]
    raise AssertionError


def _whole(problem: SingleLTE, table: Table, claims: Sequence[Any]) -> tuple[list[Trial], Sequence[Table]]:
    """The table of the total of a plan whose release is drawn inside, as that of one entity."""
    assert isinstance(table, NoiseMatrix)  # which such a plan has
    worst = [one["ordinary_epsilon"] for one in claims]
    ordinary = None if "infinite" in worst else max(to_fraction(one, "ordinary_epsilon") for one in worst)
    claimed = max(to_fraction(one["epsilon"], "epsilon") for one in claims)
    return trials(problem, table, claimed, ordinary), [table]


def _own(table: Table, source: Source) -> Sampler:
    return lambda inputs: many(table.drawing, inputs, source)


def examine(
    made: Sequence[Trial],
    sampler: Sampler,
    samples: int,
    source: Source,
    sha256: str,
    say: Callable[[str], None],
    begin: float,
    columns: int = 1,
) -> Audit:
    """Draw for every trial, and test everything that is claimed of it."""
    arms = sum(len(trial.arms) for trial in made)
    total = samples * arms
    if total * columns > MOST_DRAWS:
        raise ProblemError(
            f"An audit may draw {MOST_DRAWS:,} inputs. Found {total * columns:,}. "
            f"Use --samples {MOST_DRAWS // (arms * columns)} or fewer."
        )
    say(f"drawing {total:,} outputs")
    labels, inputs = _inputs(made, samples, source)
    outputs = _checked(sampler(inputs), inputs)
    del inputs
    say("testing")
    counts, start = [], 0
    for trial, label in zip(made, labels, strict=True):
        counts.append(Tally.of(trial, label, outputs[start : start + len(label)]))
        start += len(label)
    number = sum(hypotheses.paid(trial) for trial in made)
    alpha = FAMILY / number
    proved = hypotheses.proved(made, counts, alpha)
    misfit = hypotheses.misfit(made, counts, alpha)
    return Audit(proved, misfit, total, number, source.secure, sha256, time.perf_counter() - begin)


# ---------------------------------------------------------------------- draws


def _inputs(made: Sequence[Trial], samples: int, source: Source) -> tuple[list[NDArray[np.uint16]], Any]:
    """For each trial which arm each draw belongs to, by chance, and the inputs of all draws of all trials."""
    labels, inputs = [], []
    for trial in made:
        label = uniform_below(source, len(trial.arms), samples * len(trial.arms))
        drawn: Any = None
        for i, arm in enumerate(trial.arms):
            places = np.flatnonzero(label == i)
            values = arm.inputs(source, len(places))
            drawn = np.empty((len(label), *values.shape[1:]), dtype=np.int64) if drawn is None else drawn
            drawn[places] = values
        labels.append(label.astype(np.uint16))
        inputs.append(drawn)
    return labels, np.concatenate(inputs)


def _checked(outputs: Any, inputs: Integers) -> Integers:
    found = np.asarray(outputs)
    if found.shape != (len(inputs),) or found.dtype.kind not in "iu":
        raise ProblemError(
            f"A sampler must return {len(inputs):,} integers, one for each input. Found an array of "
            f"{shown(found.dtype.name)} with shape {shown(found.shape)}."
        )
    if found.dtype.kind == "u" and len(found) and found.max() > np.iinfo(np.int64).max:
        raise ProblemError("A sampler must return integers of 64 bits with a sign. Found a larger one.")
    return found.astype(np.int64)
