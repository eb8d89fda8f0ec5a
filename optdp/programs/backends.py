"""The backends: who solves linear programs. Adding one is a function and a line in `BACKENDS`.

highs          HiGHS; a problem of optdp's is solved by its own engines on it, a linear program by its simplex method
highs-...      a linear program as it stands, by one of HiGHS's methods
glpk-exact     the same in rational numbers: a reference
scipy          through SciPy
the others     through CVXPY; `clarabel`, `CLARABEL` and `cvxpy:clarabel` are the same
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version

from optdp.errors import ProblemError
from optdp.extras import install
from optdp.kind import at
from optdp.programs.program import Answer, LinearProgram, Options
from optdp.programs.residuals import judged

Run = Callable[[LinearProgram, str, Options | None], Answer]
"""`(program, solver, options)`: the solver's own answer. A failure is an answer too; an option that the solver does not
take is a ProblemError. Without options (None) the function's own."""
HIGHS = "optdp.programs.highs:solve_highs"
SCIPY = "optdp.programs.scipy:solve_scipy"
CVXPY = "optdp.programs.cvxpy:solve_cvxpy"
EXACT = "optdp.programs.glpk_exact:solve_glpk_exact"
"""Where the functions are; they are imported when they are used, as solvers take long to load."""


@dataclass(frozen=True)
class Backend:
    """Who solves linear programs, what it can, and what brings it."""

    name: str
    home: str
    """Its function, a `Run`."""
    solver: str
    """What that calls the solver."""
    distribution: str
    """What brings it, as pip names it."""
    licence: str
    extra: str = ""
    """The extra of optdp that installs it; empty: optdp brings it, or, `paid`, its maker does."""
    milp: bool = False
    duals: bool = True
    """Whether it prices the rows, so that its answer can be shown to be optimal."""
    interior: bool = False
    """Whether it ends inside the set of optima rather than at a corner."""
    warm_start: bool = False
    """Whether it goes on from the last answer where a program changes; of our engines alone."""
    exact: bool = False
    """Whether it calculates with rationals: then its optimum is that of the program, to the last bit."""
    lp: bool = True
    paid: bool = False
    """Whether it needs a licence of its maker."""

    @property
    def version(self) -> str | None:
        """That of the distribution; None if it is not installed."""
        try:
            return version(self.distribution)
        except PackageNotFoundError:
            return None

    @property
    def here(self) -> bool:
        """Whether it is installed."""
        return self.version is not None

    @property
    def gpl(self) -> bool:
        return self.licence.startswith("GPL")

    @property
    def install(self) -> str:
        """What to run to have it."""
        return install(self.extra, "" if self.extra else self.distribution)

    def solve(self, program: LinearProgram, options: Options | None = None) -> Answer:
        """The answer, with the status that it deserves by our own measure (`residuals.judged`)."""
        if program.mixed and not self.milp:
            able = ", ".join(other.name for other in installed() if other.milp)
            raise ProblemError(f"{self.name} does not solve programs in whole numbers. These do: {able}.")
        return judged(program, self.run(program, self.solver, options or {}))

    @property
    def run(self) -> Run:
        """The solver's function."""
        found: Run = at(self.home)
        return found


MORE = "solvers"
BACKENDS: tuple[Backend, ...] = (
    Backend("highs", HIGHS, "simplex", "highspy", "MIT", milp=True, warm_start=True),
    Backend("highs-simplex", HIGHS, "simplex", "highspy", "MIT", milp=True),
    Backend("highs-ipm", HIGHS, "ipm", "highspy", "MIT"),
    Backend("highs-hipo", HIGHS, "hipo", "highspy-extras", "MIT", MORE),
    Backend("highs-pdlp", HIGHS, "pdlp", "highspy", "MIT", interior=True),
    Backend("highs-hipdlp", HIGHS, "hipdlp", "highspy", "MIT", interior=True),
    Backend("scipy", SCIPY, "linprog", "scipy", "BSD-3-Clause", milp=True),
    Backend("clarabel", CVXPY, "CLARABEL", "clarabel", "Apache-2.0", interior=True),
    Backend("scs", CVXPY, "SCS", "scs", "MIT", MORE, interior=True),
    Backend("osqp", CVXPY, "OSQP", "osqp", "Apache-2.0", MORE, interior=True),
    Backend("piqp", CVXPY, "PIQP", "piqp", "BSD-2-Clause", MORE, interior=True),
    Backend("qoco", CVXPY, "QOCO", "qoco", "BSD-3-Clause", MORE, interior=True),
    Backend("ecos", CVXPY, "ECOS", "ecos", "GPL-3.0", MORE, interior=True),
    Backend("cvxopt", CVXPY, "CVXOPT", "cvxopt", "GPL-3.0", MORE, interior=True),
    Backend("glpk", CVXPY, "GLPK", "cvxopt", "GPL-3.0", MORE),
    Backend("glpk-exact", EXACT, "exact", "swiglpk", "GPL-3.0", MORE, exact=True),
    Backend("cbc", CVXPY, "CBC", "cylp", "EPL-2.0", MORE, milp=True, duals=False),
    Backend("scip", CVXPY, "SCIP", "pyscipopt", "Apache-2.0", MORE, milp=True),
    Backend("glop", CVXPY, "GLOP", "ortools", "Apache-2.0", MORE),
    Backend("pdlp", CVXPY, "PDLP", "ortools", "Apache-2.0", MORE, interior=True),
    Backend("gurobi", CVXPY, "GUROBI", "gurobipy", "commercial", milp=True, paid=True),
    Backend("mosek", CVXPY, "MOSEK", "Mosek", "commercial", milp=True, paid=True),
    Backend("xpress", CVXPY, "XPRESS", "xpress", "commercial", milp=True, paid=True),
    Backend("copt", CVXPY, "COPT", "coptpy", "commercial", milp=True, paid=True),
    Backend("cplex", CVXPY, "CPLEX", "cplex", "commercial", milp=True, paid=True),
)
"""In the order in which they are listed."""
ALIASES = {"cvxpy:highs": "highs-simplex"}
"""Other names for some; `cvxpy:` before a name changes nothing otherwise."""


def installed() -> list[Backend]:
    """The backends that can be used here."""
    return [backend for backend in BACKENDS if backend.here]


def find(name: str) -> Backend:
    """The backend of that name, in any case and with or without "cvxpy:" before it."""
    asked = name.strip().lower()
    asked = ALIASES.get(asked, asked.removeprefix("cvxpy:"))
    for backend in BACKENDS:
        if backend.name == asked:
            if backend.here:
                return backend
            raise ProblemError(f"The backend {backend.name} is not installed. Install it: {backend.install}.")
    there = ", ".join(backend.name for backend in installed())
    raise ProblemError(f"Unknown backend {name!r}. Installed here: {there}.")


@dataclass(frozen=True)
class Chosen:
    """Who solves the linear programs of a problem, and with which options."""

    backend: Backend
    options: Options = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.own and self.options:
            raise ProblemError(
                "optdp's own engines on HiGHS choose their options. Name a backend that takes options, such as "
                f"highs-simplex. Found {', '.join(self.options)}."
            )

    @property
    def own(self) -> bool:
        """Whether optdp's own engines solve."""
        return self.backend.name == "highs"

    def solve(self, program: LinearProgram) -> Answer:
        return self.backend.solve(program, self.options)

    def price(self, program: LinearProgram, answer: Answer) -> Answer | None:
        """The answer with HiGHS's prices of the rows, for a backend that gives none; None if HiGHS has none either."""
        duals = find("highs").solve(program).duals
        return None if duals is None else judged(program, replace(answer, duals=duals))


chosen: ContextVar[Chosen] = ContextVar("chosen", default=Chosen(BACKENDS[0]))  # noqa: B039  it is frozen
"""Who solves linear programs here."""


@contextmanager
def solving(backend: str, options: Options | None = None) -> Iterator[None]:
    """A context in which a backend solves the linear programs."""
    token = chosen.set(Chosen(find(backend), dict(options or {})))
    try:
        yield
    finally:
        chosen.reset(token)


def answers(program: LinearProgram, *solvers: str) -> Iterator[Answer]:
    """Answers until one does: of HiGHS's `solvers` in turn, or the one answer of another backend that is chosen."""
    who = chosen.get()
    if who.own:
        for solver in solvers:
            yield who.backend.run(program, solver, None)
    else:
        yield who.solve(program)
