"""The problem file of a metric shuffle: how it is checked, and the problem that it becomes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, StrictInt, StrictStr

from optdp.file_models import Documented, Exact, Sweep
from optdp.shuffle.metric import MetricShuffle


class MetricShuffleFile(Documented):
    """A shuffled sum with metric privacy: give epsilon and the noise is found, or the noise and epsilon is found."""

    kind: Literal["metric-shuffle"]
    mechanism: StrictStr = Field(description="rr, geo, sgdl, hybrid, geo-local or geo-central.")
    n: StrictInt | None = Field(None, description="People. Left out with mae given, the least number is found.")
    k: StrictInt = Field(description="Values are 0..k.")
    delta: Exact
    epsilon: Exact | None = Field(None, description="Wanted at every distance up to max_distance, per unit.")
    max_distance: StrictInt = 1
    shuffler: StrictStr = Field("honest", description="honest, or compromised: what one message alone gives away.")
    p: Exact | None = Field(None, description="rr: a bit is random with this probability.")
    eps_geo: Exact | None = Field(None, description="The noise's q is e^-eps_geo.")
    beta: Exact | None = Field(None, description="hybrid: each person's share is SGDL(beta, q).")
    c: StrictInt | None = Field(None, description="The padding, instead of the best one.")
    local_epsilon: Exact | None = Field(None, description="hybrid: what one message may give away, per unit.")
    mae: Exact | None = Field(None, description="The wanted mean absolute error of the query.")
    query: StrictStr = "sum"
    quantum: StrictInt = Field(1, description="One bit of a message stands for so much (D, appendix G).")
    dimensions: StrictInt = 1
    sweep: Sweep | None = None

    def build(self) -> MetricShuffle:
        given = {name: getattr(self, name) for name in type(self).model_fields}
        for name in ("kind", "title", "source", "notes", "expect", "sweep"):
            del given[name]
        return MetricShuffle(**given)
