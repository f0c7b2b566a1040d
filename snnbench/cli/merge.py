"""`snnbench merge`: it joins the recordings of shards."""

from pathlib import Path
from typing import Annotated

import typer

from snnbench.cli.options import RecordingsArgument, recording_folder


def merge(
    recordings: RecordingsArgument,
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="DIR", callback=recording_folder, help="The folder of the merged recording."
        ),
    ],
) -> None:
    """Join the recordings of a run's shards, in any order, and again when more of them are there.

    Recordings of different runs are refused, and the difference is named: config, protocol, machine model or adapter.
    DIR is new or holds an earlier merge; no other recording is rewritten.
    """
    from snnbench.recording import merge as merging
    from snnbench.recording import reading
    from snnbench.report.answer import coverage
    from snnbench.run.progress import say

    merged = merging.merge([reading.read(folder) for folder in recordings], output)
    lacking = merging.missing(merged.config)
    say(f"{output}: {coverage(merged)}" + (f"; still missing: {', '.join(lacking)}" if lacking else ""))
    if differing := merged.machine.get("varying"):
        say(f"{output}: the machines differ in {', '.join(differing)}; the values are in {reading.MACHINE}")
