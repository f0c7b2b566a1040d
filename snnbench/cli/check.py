"""`snnbench check`: it checks recordings against the rules of measurement."""

import typer

from snnbench.cli.options import RecordingsArgument
from snnbench.exits import Exit


def check(recordings: RecordingsArgument) -> None:
    """Check recordings against the rules of measurement; print a line for each breach.

    Nothing in a recording is run or imported.
    """
    from snnbench import checking
    from snnbench.recording import reading
    from snnbench.report import wording

    unsound = False
    for folder in recordings:
        complaints = checking.check(folder)
        for complaint in complaints:
            typer.echo(f"{folder}: {complaint.where}: {complaint.rule}: {complaint.text}")
        recording = reading.read(folder)
        summary = f"{len(complaints)} complaints" if complaints else "keeps the rules of measurement"
        lacking = f"; {missing}" if (missing := wording.missing(recording)) else ""
        facts = recording.machine.get("varying", {})
        lacking += f"; not the same for all cells: {', '.join(facts)}" if facts else ""
        typer.echo(f"{folder}: {len(recording.records)} cells, {summary}{lacking}", err=True)
        unsound = unsound or bool(complaints)
    if unsound:
        raise typer.Exit(Exit.UNSOUND)
