"""The output of a command: drawn where a person reads standard output, Markdown where a program does."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from snnbench.cli.options import emit

if TYPE_CHECKING:
    from rich.console import Console

    from snnbench.report.section import Report

TABLE = "table"
"""The format that a terminal draws. In a pipe or a file it is Markdown."""


def terminal() -> "Console | None":
    """A console on standard output if that is a terminal; None if it is a pipe or a file."""
    if not sys.stdout.isatty():
        return None
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


def show(report: "Callable[[bool], Report]", form: str = TABLE, output: Path | None = None) -> None:
    """Draw `report(True)`, the brief one, in a terminal; elsewhere print or write `report(False)` as Markdown."""
    if form == TABLE and output is None and (console := terminal()):
        from snnbench.report.terminal import drawing

        drawing.show(console, report(True))
    else:
        from snnbench.report.text.markdown import markdown

        emit(markdown(report(False)), output)
