"""`snnbench close`: it ends a recording whose missing cells will not be measured."""

from pathlib import Path
from typing import Annotated

import typer


def close(
    recording: Annotated[Path, typer.Argument(metavar="RECORDING", help="A recording that is not finished.")],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why cells are missing, in one line.")],
) -> None:
    """End an unfinished recording where it stands. Every report then says how many cells are missing, and why.

    Nothing is measured and no record changes. The run's own command still continues the recording.
    """
    from snnbench.recording import closing
    from snnbench.report.wording import missing
    from snnbench.run.progress import say

    closed = closing.close(recording, reason)
    say(f"{recording}: closed; {missing(closed)}")
