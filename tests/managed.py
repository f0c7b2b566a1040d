"""Runs of the real libraries, in the environments that snnbench makes for them."""

import os
import subprocess
import sys
from pathlib import Path

from snnbench.recording import reading
from snnbench.recording.record import Record

ROOT = Path(__file__).parent.parent


def snnbench(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "snnbench", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env={**os.environ, "COLUMNS": "200"})


def recorded(
    config: str, folder: Path, *settings: str, only: str = "threads>0", adapter: Path | None = None
) -> list[Record]:
    changes = [text for setting in settings for text in ("--set", setting)]
    changes += ["--adapter", str(adapter)] if adapter else []
    done = snnbench("run", "--config", config, "--only", only, "-o", str(folder), *changes, cwd=folder.parent)
    assert done.returncode == 0, done.stderr[-4000:]
    return reading.read(folder).records
