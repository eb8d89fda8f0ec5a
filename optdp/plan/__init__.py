"""Several locally trusted entities of whom only the sum is seen: plans, and the secure sum that runs them (A, VI)."""

from optdp.kind import Kind

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
    ),
)
