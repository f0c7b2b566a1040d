"""`snnbench compare`: two recordings of the same work."""

from pathlib import Path
from typing import Annotated

import typer


def compare(
    base: Annotated[Path, typer.Argument(metavar="BASE", help="A recording's folder.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="A later one of the same config.")],
) -> None:
    """Print the ratio new / base of every time and peak: above 1 is slower or larger."""
    from snnbench import compare as comparing
    from snnbench import record

    older, newer = record.read(base), record.read(new)
    for fact in comparing.differing(older, newer):
        typer.echo(f"snnbench: not comparable: {fact}", err=True)
    typer.echo(comparing.markdown(comparing.compare(older, newer)))
