"""One locally trusted entity: the linear program of its noise matrix, who solves it, and what is proved (A, V)."""

from optdp.kind import Kind, Start

KINDS = (
    Kind(
        "single-lte",
        "the best certified noise matrix for one locally trusted entity",
        problem="optdp.single.problem:SingleLTE",
        solve="optdp.single.solve:solve_single",
        target="optdp.single.solve:check_target",
        linear=True,
        formulate="optdp.single.statements:statements",
        bounded=True,
        measure="optdp.comparison.measure:Single",
        observers="optdp.single.ladder:ladder",
        start=Start(
            release="one number: a count, a sum or an average",
            noise="one party that holds everyone's data",
            sees="that party sees all data; everyone else sees the released number",
            file="optdp.single:single-lte.toml",
        ),
    ),
)
