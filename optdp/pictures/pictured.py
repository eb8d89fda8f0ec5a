"""What has pictures: drawn by `plot`, and shown in a notebook beside its sheet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from optdp.kind import Home, at
from optdp.sheet import Sheet


class Pictured:
    """Base of what has a sheet and pictures."""

    drawing: ClassVar[Home] = ""
    """`self -> {name: picture}`: its pictures, the first the one that is shown."""

    def sheet(self) -> Sheet:
        """What a person is shown."""
        raise NotImplementedError

    @property
    def pictures(self) -> Mapping[str, Callable[[], Any]]:
        """Its pictures by name, each made when it is called."""
        found: Mapping[str, Callable[[], Any]] = at(self.drawing)(self) if self.drawing else {}
        return found

    def plot(self, which: str = "", ax: Any = None) -> Any:
        """Draw one of its pictures with matplotlib, which the extra [plot] brings.

        Parameters
        ----------
        which : str, optional
            Its name, one of `pictures`; by default the first.
        ax : matplotlib axes, optional
            Where to draw; by default on a new figure.

        Returns
        -------
        The axes.
        """
        return at("optdp.pictures.plot:drawn")(self.pictures, which, ax)

    def _repr_html_(self) -> str:
        """A notebook shows this."""
        shown: str = at("optdp.pictures.svg:shown")(f"optdp: {type(self).__name__}", self.sheet().html(), self.pictures)
        return shown
