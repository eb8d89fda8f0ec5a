"""What shuffling buys: bounds of every sort, the best of them, and what no analysis can go below (B, C)."""

from optdp.kind import Kind

KINDS = (
    Kind(
        "amplification",
        "what shuffling buys: the missing one of epsilon, delta, eps0, n",
        problem="optdp.amplification.problem:Amplification",
        solve="optdp.amplification.solve:solve_shuffled",
        bounded=True,
        point="optdp.amplification.solve:point",
        files={"randomizer": ("csv",)},
    ),
    Kind(
        "krr-count",
        "what an observer of one count of shuffled randomized response learns",
        problem="optdp.amplification.problem:KRRCount",
        solve="optdp.amplification.solve:solve_counted",
        bounded=True,
    ),
)
