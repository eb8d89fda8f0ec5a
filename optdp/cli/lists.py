"""The commands that list what there is: problems, kinds and backends, the schema of problem files."""

from __future__ import annotations

from rich.table import Table

from optdp.cli.arguments import AsJson
from optdp.cli.printing import out, plain, print_json

PAPERS = {
    "A": "Alborch, Athanasiou, Reisert, Optimizing Differential Privacy in Federated Analytics under Known Input "
    "Distributions",
    "B": "Balle, Bell, Gascón, Nissim, The Privacy Blanket of the Shuffle Model",
    "C": "Biswas, Jung, Palamidessi, Tight Differential Privacy Guarantees for the Shuffle Model with k-Randomized "
    "Response",
    "D": "Athanasiou, Chatzikokolakis, Palamidessi, Enhancing Metric Privacy With a Shuffler",
    "E": "A Shuffling Framework for Local Differential Privacy",
}
"""To which problems, bounds and docstrings refer by a letter; docs/papers.md says more."""


def problems(as_json: AsJson = False) -> None:
    """List the problems that come with optdp: every command that takes a problem takes their names."""
    from optdp import library
    from optdp.loading import load_file

    listed = []
    for name, path in library.problems().items():
        file = load_file(path, allow_outside=True)  # what it names is not read here
        listed.append(
            {"name": name, "kind": file.data["kind"], "title": file.title, "source": file.source, "file": str(path)}
        )
    if as_json:
        print_json({"problems": listed})
        return
    table = Table("name", "what it is", "source", box=None)
    table.columns[0].overflow = "fold"
    for item in listed:
        table.add_row(*(plain(item[name]) for name in ("name", "title", "source")))
    out.print(table)
    for letter, paper in PAPERS.items():
        out.print(f"[dim]Paper {letter}: {paper}[/]")


def kinds(as_json: AsJson = False) -> None:
    """List the kinds of problem, and the backends that can solve them here."""
    from optdp.kinds import KINDS
    from optdp.programs.backends import installed

    names = [backend.name for backend in installed()]
    if as_json:
        print_json({"kinds": {name: kind.purpose for name, kind in KINDS.items()}, "backends": names})
        return
    for name, kind in KINDS.items():
        out.print(f"[bold]{name}[/]  {kind.purpose}")
    out.print(f"backends: {', '.join(names)}")


def schema() -> None:
    """Print the JSON Schema of problem files."""
    from optdp.loading import schema as describe

    print_json(describe())
