"""Shipped recordings, and copies of them with one change in a record or a file."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from snnbench.recording.reading import RECORDS

RESULTS = Path(__file__).parents[1] / "results"
OLDER = Path(__file__).parent / "older"
"""Recordings of older schemas, which newer ones replaced."""
QUICK = "2026-11-27_quick_epyc-2cpu"
"""The recording that README and docs show."""
TIMED = "2026-11-21_quick_epyc-2cpu_4"
"""The same work in schema 3, which has fewer fields, for the checks of each schema."""
OTHER_NEURONS = "2026-11-25_library-defaults_epyc-2cpu"
Document = dict[str, Any]


def shipped(name: str) -> Path:
    """The folder of a recording, in results/ or among the older ones."""
    return RESULTS / name if (RESULTS / name).is_dir() else OLDER / name


def copied(tmp_path: Path, name: str = TIMED) -> Path:
    return Path(shutil.copytree(shipped(name), tmp_path / name))


def edited(folder: Path, name: str, change: Callable[[Document], Any]) -> None:
    path = folder / name
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def edited_record(folder: Path, measure: str, change: Callable[[Document], Any]) -> None:
    """Change the first record of this kind of measurement."""
    lines = [json.loads(line) for line in (folder / RECORDS).read_text().splitlines()]
    change(next(line for line in lines if line["measure"] == measure))
    (folder / RECORDS).write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def spot(record: Document) -> Document:
    return record["checks"]["spot-train"]  # type: ignore[no-any-return]


def keep_lines(folder: Path, keep: Callable[[Document], bool]) -> None:
    """Leave only some of the lines."""
    lines = (folder / RECORDS).read_text().splitlines(keepends=True)
    (folder / RECORDS).write_text("".join(line for line in lines if keep(json.loads(line))))
