"""Printable text: text from a library or a machine, made safe for a terminal and for a spreadsheet."""

import re
from typing import Any

UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
"""Characters that move the cursor, end a line or reverse the reading direction, and lone surrogates."""

FORMULA = re.compile(r"[=+@\t\r]|-(?![-0-9.e]*$)")


def printable(text: str) -> str:
    """The text, with a replacement character for each unprintable one."""
    return UNPRINTABLE.sub("�", text)


def cleaned(value: Any) -> Any:
    """The document, with all strings printable."""
    match value:
        case str():
            return printable(value)
        case list():
            return [cleaned(item) for item in value]
        case dict():
            return {cleaned(key): cleaned(item) for key, item in value.items()}
    return value


def uncalculated(value: Any) -> Any:
    """A value for a spreadsheet: a text that it would take for a formula gets an apostrophe, as people write one."""
    return f"'{value}" if isinstance(value, str) and FORMULA.match(value) else value
