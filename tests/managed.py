"""Runs of the real libraries, in the environments that snnbench makes for them."""

import os
from collections.abc import Sequence
from pathlib import Path
from subprocess import CompletedProcess

from snnbench.exits import Exit
from snnbench.recording import reading
from snnbench.recording.record import Record
from tests import in_process

ROOT = Path(__file__).parent.parent


def snnbench(*arguments: str, cwd: Path) -> "CompletedProcess[str]":
    """Run snnbench in this folder, and in this process."""
    return in_process.run(arguments, cwd, {**os.environ, "COLUMNS": "200"})


def recorded(
    config: str,
    folder: Path,
    *settings: str,
    only: str = "threads>0",
    adapters: Sequence[Path] = (),
    failing: bool = False,
) -> list[Record]:
    """The records of a run, which measures every cell, or in which some cell fails."""
    arguments = ["run", "--config", config, "--only", only, "-o", str(folder)]
    arguments += [text for setting in settings for text in ("--set", setting)]
    arguments += [text for path in adapters for text in ("--adapter", str(path))]
    done = snnbench(*arguments, cwd=folder.parent)
    assert done.returncode == (Exit.FAILED_CELLS if failing else 0), done.stderr[-4000:]
    return reading.read(folder).records
