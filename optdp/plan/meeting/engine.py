"""MPyC, loaded so that it changes nothing else in the process."""

from __future__ import annotations

import functools
import importlib
import logging
import os
import random
import sys
from typing import Any

from optdp.errors import ProblemError
from optdp.extras import install


@functools.cache
def load_mpyc() -> Any:
    """MPyC's module `runtime`: a copy of our own, so that its global state is nobody else's.

    When imported as usual, MPyC reads the command line, sends its log to stdout, may change the event loop policy and
    makes a global runtime. It does none of this where it thinks that its documentation is being built. NumPy is of no
    use here, and MPyC 0.11 calls a part of it that is to be removed.
    """

    def take_out() -> dict[str, Any]:
        names = [name for name, module in sys.modules.items() if name.split(".")[0] == "mpyc" and module is not None]
        return {name: sys.modules.pop(name) for name in names}

    settings = {"READTHEDOCS": "True", "MPYC_NONUMPY": "1"}
    argv, before, root = sys.argv, {name: os.environ.get(name) for name in settings}, logging.getLogger()
    quiet = logging.NullHandler()  # while the root logger has a handler, nobody adds another one to it
    others = take_out()
    try:
        os.environ.update(settings)
        sys.argv = argv[:1]
        root.addHandler(quiet)
        runtime = importlib.import_module("mpyc.runtime")
        stand_in: Any = sys.modules["mpyc.gmpy"]
        if hasattr(stand_in, "random"):  # where gmpy2 is missing, primes are tested with draws from the one of all
            stand_in.random = random.SystemRandom()
        return runtime
    except ImportError:
        raise ProblemError(f"aggregate needs MPyC: {install('mpc')}.") from None
    finally:
        root.removeHandler(quiet)
        sys.argv = argv
        for name, value in before.items():
            os.environ.pop(name)
            os.environ.update({name: value} if value is not None else {})
        take_out()
        sys.modules.update(others)
