"""Lookup of recordings in a folder, and of a recorded cell by the beginning of its name."""

from collections.abc import Callable, Sequence
from pathlib import Path

from snnbench.exits import Exit, UserError
from snnbench.recording import reading
from snnbench.recording.reading import Recording
from snnbench.recording.record import Record, RecordingError

SHORTEST_NAME = 4


class UnknownCell(UserError):
    """No cell has this name, or several have; the message lists them."""

    code = Exit.USAGE


Say = Callable[[str], None]


def find(name: str, folders: Sequence[Path], say: Say = lambda line: None) -> tuple[Recording, Record]:
    """The cell with this beginning of a name, and its recording; `say` gets a line on each recording that is left out.

    Raises UnknownCell.
    """
    if len(name) < SHORTEST_NAME:
        raise UnknownCell(f"{name!r}: give at least {SHORTEST_NAME} characters of a cell's name")
    recordings = readable(folders, say)
    matches = [(recording, one) for recording in recordings for one in recording.records if one.cell.startswith(name)]
    if not matches:
        names = ", ".join(str(folder) for folder in folders) or "no recording"
        raise UnknownCell(f"no cell {name} in {names}; records.jsonl has the names, and --in says where to look")
    if len({one.cell for _, one in matches}) > 1:
        several = ", ".join(f"{one.cell} ({one.label})" for _, one in matches[:5])
        raise UnknownCell(f"{name}: {len(matches)} cells begin so: {several}; give more of the name")
    return matches[-1]


def readable(folders: Sequence[Path], say: Say) -> list[Recording]:
    """The recordings in these folders. One that cannot be read is left out, with a line, unless it is the only one.

    Raises RecordingError.
    """
    recordings = []
    for folder in folders:
        try:
            recordings.append(reading.read(folder))
        except RecordingError as error:
            if len(folders) == 1:
                raise
            say(f"left out: {error}")
    return recordings


def of_contender(name: str, folders: Sequence[Path], say: Say) -> list[tuple[Recording, Record]]:
    """The cells of a library or of a `library/variant`, each with its recording; [] if nothing has this name."""
    return [
        (recording, one)
        for recording in readable(folders, say)
        for one in recording.records
        if name in (one.library, f"{one.library}/{one.variant}")
    ]


def folders(where: Path) -> list[Path]:
    """The recordings in a folder, or the folder itself if it is one. Raises RecordingError without any."""
    candidates = [where] if (where / reading.RECORDS).is_file() else inside(where)
    if not candidates:
        raise RecordingError(f"{where}: no recording here; --in DIR names one, or a folder of them")
    return candidates


def inside(where: Path, name: str = reading.RECORDS) -> list[Path]:
    """The folders in a folder with a file of this name, each once: a link to another of them is left out."""
    there = sorted((path.parent for path in where.glob(f"*/{name}")), key=lambda path: (path.is_symlink(), path))
    return sorted({path.resolve(): path for path in reversed(there)}.values())
