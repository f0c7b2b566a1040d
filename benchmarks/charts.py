"""The documents' charts on a card, in a quarter of an hour: the config `chart` in parts, the most valuable one first.

    python -m benchmarks card --minutes 14 [--into FOLDER] [OPTIONS of snnbench run]

Every part is a recording of its own in the folder, and is whole before the next one begins. All are packed into
FOLDER.tgz after each part, so whenever the card goes, what was measured is there. Environments should exist before:
`snnbench env sync --config chart`, or `--env current` where libraries are installed.
"""

import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from snnbench.exits import Exit

CONFIG = Path(__file__).parent.parent / "configs" / "chart.toml"
NO_JAX = "library!=jax-scan,library!=spyx"
LAYER = "workload=linear_lif,library!=lava-dl,variant!=cupy,variant!=old-torch"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the charts: its cells by `--only`, and the processes that measure memory, for each contender."""

    only: str
    memory_trials: int = 0


PARTS = {
    "layer-512": Part(f"{LAYER},neurons=512"),
    "layer-4096": Part(f"{LAYER},neurons=4096", memory_trials=1),
    "layer-16384": Part(f"{LAYER},{NO_JAX},neurons=16384"),
    "figure-5": Part("workload=lif"),
    "cupy": Part("library=spikingjelly/cupy|spikingjelly/old-torch"),
    "lava-dl": Part("library=lava-dl"),
    "jax-16384": Part("library=jax-scan|spyx,neurons=16384"),
}
"""The parts in order, by the name of their recordings. `lava-dl` begins with a compilation by nvcc. XLA takes a minute
for each contender of the last part, which 14 minutes may not hold (benchmarks/simulated_card.toml).

Memory is measured at one size: at 512 neurons a workspace of cuBLAS may be larger than all arrays.
"""
LEAST_S = 20.0
"""No part begins with less time left."""
PATIENCE_S = 5.0
"""A part ends by its own budget; after so much more it is interrupted, and its records are kept."""
END_S = 10.0

Run = Callable[[Sequence[str], float], int]
"""Runs a command for at most so many seconds, and returns its status."""


def run_for(command: Sequence[str], most_s: float) -> int:
    """Run a command, and interrupt it after so many seconds. Returns its status."""
    process = subprocess.Popen(command)
    try:
        return process.wait(most_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
    try:
        return process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def measure(
    minutes: float,
    into: Path,
    options: Sequence[str] = (),
    run: Run = run_for,
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Measure the parts for which there is time. Returns a status: 2 if the options are wrong."""
    ends = clock() + 60 * minutes
    for name, part in PARTS.items():
        if (left_s := ends - clock()) < LEAST_S:
            print(f"{name} and what follows it are left out: {left_s:.0f} s are left", flush=True)
            break
        command = [sys.executable, "-m", "snnbench", "run", "--config", str(CONFIG), "--only", part.only]
        command += ["--set", f"protocol.memory_trials={part.memory_trials}"]
        command += ["--budget", f"{left_s:.0f}s", "--output", str(into / name), *options]
        status = run(command, left_s + PATIENCE_S)
        if status == Exit.USAGE:
            return status
        pack(into)
    return 0


def pack(folder: Path) -> None:
    """Pack a folder into FOLDER.tgz."""
    if folder.exists():
        with tarfile.open(folder.with_name(f"{folder.name}.tgz"), "w:gz") as archive:
            archive.add(folder, folder.name)
