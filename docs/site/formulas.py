"""Formulas that are wider than a phone scroll by themselves: a browser scrolls what is around MathML, not MathML.

A full stop or a comma stays on the line of the formula that it follows.
"""

import re
from typing import Any

LONG = 700  # characters of MathML: some fifteen signs


def on_page_content(html: str, **_: Any) -> str:
    def wrapped(formula: re.Match[str]) -> str:
        if formula[1] == "block":
            return f'<span class="formula">{formula[0]}</span>'
        if len(formula[0]) > LONG:
            return f'<span class="long">{formula[0]}</span>'
        return f'<span class="kept">{formula[0]}</span>' if formula[2] else formula[0]

    return re.sub(r'<math display="(block|inline)".*?</math>([.,;:)]*)', wrapped, html, flags=re.DOTALL)
