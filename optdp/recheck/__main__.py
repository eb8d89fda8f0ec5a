"""The command line: `python -m optdp.recheck a.json`, or the folder of a plan."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from . import recheck
from .claims import as_decimal
from .verdict import Failed, Refused, printable


def main(arguments: Sequence[str]) -> int:
    """Print the figures and PASS, or the first claim that fails."""
    names = [argument for argument in arguments if argument != "--allow-outside"]
    if len(names) != 1 or names[0].startswith("-"):
        print("usage: python -m optdp.recheck [--allow-outside] a.json, or the folder of a plan", file=sys.stderr)
        return 2
    try:
        found = recheck(names[0], allow_outside=len(names) < len(arguments))
    except Failed as error:
        print(f"FAIL {error}", file=sys.stderr)
        return 1
    except Refused as error:
        print(f"REFUSED {error}", file=sys.stderr)
        return 2
    for name, value in found.figures.items():
        print(f"  {name:<26} {str(value).lower() if isinstance(value, bool) else as_decimal(value)}")
    for name in found.unchecked:
        print(f"  {name:<26} not checked here; optdp verify does")
    print(f"PASS {printable(names[0])}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
