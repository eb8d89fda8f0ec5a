"""What shuffling buys: bounds of every sort, the best of them, and what no analysis can go below (B, C)."""

from optdp.kind import Kind

KINDS = (
    Kind(
        "amplification",
        "how much privacy shuffling adds: the missing one of epsilon, delta, eps0 and n",
        problem="optdp.amplification.problem:Amplification",
        solve="optdp.amplification.solve:solve_shuffled",
        bounded=True,
        point="optdp.amplification.solve:point",
        files={"randomizer": ("csv",)},
    ),
    Kind(
        "krr-count",
        "what a single count of shuffled randomized response gives away",
        problem="optdp.amplification.problem:KRRCount",
        solve="optdp.amplification.solve:solve_counted",
        bounded=True,
    ),
)
