"""The terminal of a command: a console if a person reads standard output there, nothing if a program does."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def terminal() -> "Console | None":
    """A console on standard output if that is a terminal; None if it is a pipe or a file."""
    if not sys.stdout.isatty():
        return None
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)
