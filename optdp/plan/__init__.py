"""Several locally trusted entities of whom only the sum is seen: plans, and the secure sum that runs them (A, VI)."""

from optdp.kind import Kind, Start

KINDS = (
    Kind(
        "multi-lte",
        "the best certified plan for several entities that publish only their sum",
        problem="optdp.plan.problem:MultiLTE",
        solve="optdp.plan.solve:solve_plan",
        target="optdp.plan.format:check_target",
        linear=True,
        formulate="optdp.plan.statements:statements",
        bounded=True,
        measure="optdp.comparison.measure:Plan",
        start=Start(
            release="one number: a count, a sum or an average",
            noise="several parties, each of which holds the data of its own people",
            sees="each party sees its own people's data; everyone else sees the sum of the reports",
            file="optdp.plan:multi-lte.toml",
        ),
    ),
)
