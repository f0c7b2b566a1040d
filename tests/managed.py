"""Runs of the real libraries, in the environments that snnbench makes for them."""

import os
from pathlib import Path
from subprocess import CompletedProcess

from snnbench.recording import reading
from snnbench.recording.record import Record
from tests import in_process

ROOT = Path(__file__).parent.parent


def snnbench(*arguments: str, cwd: Path) -> "CompletedProcess[str]":
    """Run snnbench in this folder, and in this process."""
    return in_process.run(arguments, cwd, {**os.environ, "COLUMNS": "200"})


def recorded(
    config: str, folder: Path, *settings: str, only: str = "threads>0", adapter: Path | None = None
) -> list[Record]:
    changes = [text for setting in settings for text in ("--set", setting)]
    changes += ["--adapter", str(adapter)] if adapter else []
    done = snnbench("run", "--config", config, "--only", only, "-o", str(folder), *changes, cwd=folder.parent)
    assert done.returncode == 0, done.stderr[-4000:]
    return reading.read(folder).records
