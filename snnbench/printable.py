"""Text that is safe on a terminal, whatever a library or a machine put into it."""

import re
from typing import Any

UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
"""What moves a cursor, ends a line where none should end, turns the reading direction, or is no character at all."""


def printable(text: str) -> str:
    """Text without what could do something to a terminal."""
    return UNPRINTABLE.sub("�", text)


def cleaned(value: Any) -> Any:
    """A document all of whose strings are printable."""
    match value:
        case str():
            return printable(value)
        case list():
            return [cleaned(item) for item in value]
        case dict():
            return {cleaned(key): cleaned(item) for key, item in value.items()}
    return value
