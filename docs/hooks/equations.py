"""The equations of a page as MathML: a mkdocs hook. The browser needs no script and no fonts for them."""

import html
import re
from typing import Any

from latex2mathml.converter import convert

EQUATION = re.compile(r'<(div|span) class="arithmatex">\\[\[(](.*?)\\[\])]</\1>', re.DOTALL)
"""An equation as pymdownx.arithmatex writes it: a block in \\[ \\], or a part of a line in \\( \\)."""


def on_page_content(content: str, **_: Any) -> str:
    """Called by mkdocs for each page, with its HTML."""
    return EQUATION.sub(_mathml, content)


def _mathml(equation: re.Match[str]) -> str:
    element, latex = equation.groups()
    mathml = convert(html.unescape(latex).strip(), display="block" if element == "div" else "inline")
    return f'<{element} class="equation">{mathml}</{element}>'
