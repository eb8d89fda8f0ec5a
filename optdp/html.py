"""HTML that is safe by construction: whatever is not already `Html` is escaped when it becomes part of an element."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

EMPTY = frozenset(("link", "meta"))
"""Elements that have no end."""


class Html(str):
    """Text that may stand in a page as it is."""

    __slots__ = ()


Child = str | Iterable[str | None] | None


def el(name: str, /, *children: Child, **attributes: str | int | float | bool | None) -> Html:
    """An element. In names of attributes `class_` is `class`, and `data_key` is `data-key`."""
    head = name + "".join(_attribute(key, value) for key, value in attributes.items())
    return Html(f"<{head}>") if name in EMPTY else Html(f"<{head}>{join(*children)}</{name}>")


def join(*children: Child) -> Html:
    """Children one after the other; lists are opened, None is left out."""
    return Html("".join(_child(child) for child in children))


def _child(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, str):
        return child if isinstance(child, Html) else escape(clean(child))
    return join(*child)


def _attribute(key: str, value: str | int | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(clean(str(value)))}"'


def clean(text: str) -> str:
    """What a page can hold: no control characters, no halves of letters."""
    kept = "".join(sign if sign.isprintable() or sign in "\n\t" else "\N{REPLACEMENT CHARACTER}" for sign in text)
    return kept.encode("utf-8", "replace").decode("utf-8")
