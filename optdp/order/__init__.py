"""Order-private shuffling: who is grouped with whom, the reference order, and the Mallows shuffle around it (E)."""

from optdp.kind import Kind, Start

KINDS = (
    Kind(
        "order-shuffle",
        "a shuffle within groups that keeps local trends, and the best order for it",
        problem="optdp.order.problem:OrderShuffle",
        solve="optdp.order.solve:solve_order",
        target="optdp.order.solve:check_target",
        formulate="optdp.order.statement:statements",
        measure="optdp.comparison.orders:Order",
        read="optdp.order.format:read_order",
        verify="optdp.order.format:verify_order",
        files={"groups": ("points", "graph", "data", "file"), "study": ("data",), "values": ("data",)},
        start=Start(
            release="the answers themselves, shuffled within groups",
            noise="nobody: answers are exchanged within groups",
            sees="everyone sees the shuffled answers, and from which part of the data they come",
            file="optdp.order:order-shuffle.toml",
        ),
    ),
)
