"""Docstrings say `name : what it is`, on one line, which is read as a type: put it where it is read as text."""

import re
from typing import Any

import griffe

SECTION = re.compile(r"(?<=\n)(Parameters|Attributes)\n-{3,}\n(.*?)(?=\n\n|\Z)", re.DOTALL)


class Described(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = SECTION.sub(
                lambda found: re.sub(r"^(\w[\w, ]*) : (.+)$", r"\1\n    \2", found[0], flags=re.MULTILINE),
                obj.docstring.value,
            )
