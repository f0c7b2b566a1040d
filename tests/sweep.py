"""A small config of fake contenders, and the command line to run it as a user does."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests import in_process
from tests.fakes import CORRECT, write

CONFIG = """
name = "tiny"
analysis = "Fakes, to see what becomes of their cells."
baseline = "{baseline}"

[protocol]
phases = ["inference", "forward", "backward", "train"]
trials = {trials}
memory_trials = {memory_trials}
warmup_passes = 1
repetitions = 3
min_repetition_ms = 0.01
max_phase_seconds = 1.0
timeout_seconds = {timeout_seconds}
memory_limit_gib = 1.0
seed = 0
remeasure = {remeasure}

[case]
neurons = {neurons}
batch = 5
time_steps = 12
layers = 1
device = "cpu"
dtype = "float32"
precision = "ieee"
threads = 1
beta = 0.91
threshold = 1.0
surrogate = "fast_sigmoid"
slope = 1.0
input_kind = "spikes"
input_rate = 0.2
input_gradient = true
seed = 7

[[sweep]]
name = "all"
profile = "subtract"
libraries = {libraries}
"""
SETTINGS = {"trials": 2, "memory_trials": 1, "timeout_seconds": 20.0, "neurons": 24, "remeasure": 0}
TIMEOUT_S = 300.0
"""A limit for a run that hangs. A run may wait for the CPUs as long as the run of another test measures."""


def write_config(folder: Path, libraries: Sequence[str], **settings: Any) -> Path:
    """A config in which these libraries run one case; the first of them is the baseline."""
    path = folder / "tiny.toml"
    values = {**SETTINGS, "baseline": libraries[0], "libraries": json.dumps(list(libraries)), **settings}
    path.write_text(CONFIG.format(**values))
    return path


def command(*arguments: str | Path) -> list[str]:
    """The command line of snnbench itself."""
    return [sys.executable, "-m", "snnbench", *map(str, arguments)]


def surroundings(folder: Path) -> dict[str, str]:
    """Environment variables that make snnbench keep its files in `folder` and use no network."""
    return {**os.environ, "SNNBENCH_HOME": str(folder / "home"), "UV_OFFLINE": "1", "COLUMNS": "200"}


def snnbench(folder: Path, *arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    """Run snnbench in `folder`, where its results go, and in this process."""
    return in_process.run(arguments, folder, surroundings(folder))


def process(folder: Path, *arguments: str | Path, **options: Any) -> "subprocess.CompletedProcess[str]":
    """Run snnbench in `folder` in a process of its own."""
    captured = {} if {"stdout", "stderr"} & set(options) else {"capture_output": True}
    return subprocess.run(
        command(*arguments), cwd=folder, env=surroundings(folder), text=True, timeout=TIMEOUT_S, **captured, **options
    )


def run_arguments(config: Path, adapters: Sequence[Path], *more: str | Path) -> list[str | Path]:
    """`run` with this config and these adapter files, in this interpreter."""
    files = [part for adapter in adapters for part in ("--adapter", adapter)]
    return ["run", "--config", config, "--env", "current", *files, *more]


def recordings(folder: Path) -> list[Path]:
    """The recordings in this folder."""
    return sorted((folder / "results").glob("*"))


def lines(recording: Path) -> list[dict[str, Any]]:
    """The lines of a recording's file of records."""
    return [json.loads(line) for line in (recording / "records.jsonl").read_text().splitlines()]


class Workspace:
    """A folder with fake adapters `good` and `other`, a config for them, and methods to run commands in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.adapters = [write(folder, CORRECT, name) for name in ("good", "other")]
        self.config = write_config(folder, ["good", "other"])

    def run(self, *more: str | Path) -> "subprocess.CompletedProcess[str]":
        """`snnbench run` of the config."""
        return snnbench(self.folder, *run_arguments(self.config, self.adapters, *more))

    def __call__(self, *arguments: str | Path) -> "subprocess.CompletedProcess[str]":
        """Any other command."""
        return snnbench(self.folder, *arguments)

    def ask(self, *arguments: str | Path) -> str:
        """The output of a command that must succeed."""
        done = self(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout


def toml(document: dict[str, Any]) -> str:
    """The document as a TOML file; TOML has no null, so such keys are left out."""
    return "".join(f"{json.dumps(key)} = {_toml(value)}\n" for key, value in document.items() if value is not None)


def _toml(value: Any) -> str:
    match value:
        case dict():
            pairs = (f"{json.dumps(key)} = {_toml(each)}" for key, each in value.items() if each is not None)
            return f"{{{', '.join(pairs)}}}"
        case list() | tuple():
            return f"[{', '.join(_toml(each) for each in value if each is not None)}]"
        case float():
            return repr(value)
    return json.dumps(value)
