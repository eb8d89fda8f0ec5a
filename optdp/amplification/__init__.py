"""What shuffling buys: bounds of every sort, the best of them, and what no analysis can go below (B, C)."""

from optdp.kind import Kind, Start

KINDS = (
    Kind(
        "amplification",
        "how much privacy shuffling adds: the missing one of epsilon, delta, eps0 and n",
        problem="optdp.amplification.problem:Amplification",
        solve="optdp.amplification.solve:solve_shuffled",
        bounded=True,
        point="optdp.amplification.solve:point",
        files={"randomizer": ("csv",)},
        start=Start(
            release="nothing yet: I want to know how much privacy shuffling adds",
            noise="each person adds noise, then a shuffler removes the names",
            sees="the observer sees all shuffled answers",
            file="optdp.amplification:amplification.toml",
        ),
    ),
    Kind(
        "krr-count",
        "what a single count of shuffled randomized response reveals",
        problem="optdp.amplification.problem:KRRCount",
        solve="optdp.amplification.solve:solve_counted",
        bounded=True,
        start=Start(
            release="nothing yet: I want to know how much privacy shuffling adds",
            noise="each person adds noise, then a shuffler removes the names",
            sees="the observer sees how often one answer was given",
            file="optdp.amplification:krr-count.toml",
        ),
    ),
)
