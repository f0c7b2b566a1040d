"""`python -m tests.fuzz --tries 20000 --seed 1`: run drawn command lines, and list the faults of snnbench itself.

A try spoils a copy of one file in two of three cases, draws a command line and runs it in this process. Nothing is
measured, installed or submitted: what would do that is replaced. A fault is the exit code 70, an exception that leaves
`main`, or ten seconds of computing. It is printed once, with the command line and the change of the file.
"""

import argparse
import gc
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import typer
from rich.console import Console

from snnbench import cli
from snnbench.adapter import discovery
from snnbench.adapter import reading as adapters
from snnbench.adapter.declaration import PACKAGE
from snnbench.environments import store
from snnbench.environments.uv_program import EnvironmentFailed
from snnbench.machine import compiler_doctor
from snnbench.run import local
from snnbench.run.slurm import scheduler, submission
from tests import in_process
from tests.fuzz import arguments, world

LONGEST_CPU_S = 10.0
MOST_BYTES = 8 << 30
"""More memory than any command needs here: a size that was drawn may ask for more than the machine has."""
SELDOM = {("site",): 0.005, ("doctor",): 0.02}
"""Commands that take seconds, and how often they are drawn."""
PAGES = ("html", "parquet", "--figures", "--open")


SURROUNDINGS = [
    *(("SNNBENCH_HOME", "a:b"), ("SNNBENCH_HOME", "/dev/null"), ("SNNBENCH_HOME", "~nobody.here"), ("HOME", "")),
    *(("COLUMNS", "x"), ("COLUMNS", "1"), ("TERM", "dumb"), ("LANG", "C"), ("TZ", "x"), ("NO_COLOR", "1")),
    *(("CUDA_VISIBLE_DEVICES", "9,x"), ("SLURM_JOB_NODELIST", "a[1-"), ("SLURM_JOB_ID", "x"), ("OMP_NUM_THREADS", "x")),
    *(("SNNBENCH_DATA", "~nobody"), ("SNNBENCH_SLOTS", "/dev/null/x"), ("UV_TORCH_BACKEND", "x"), ("CC", "'")),
    *(("PYTHONPATH", "absent"), ("PATH", "/absent"), ("XDG_CACHE_HOME", "x"), ("XLA_FLAGS", "\udcff")),
]
"""Environment variables that are not as they should be."""


class Endless(BaseException):
    """A command computed for LONGEST_CPU_S."""


def main() -> int:
    """Print the faults that the tries of the command line find. Returns 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--tries", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
    counts: dict[str, int] = {}
    for what, how in faults(given.tries, given.seed):
        counts[what] = counts.get(what, 0) + 1
        if counts[what] == 1:
            print(f"{what}\n    {how}", flush=True)
    print(f"{given.tries} tries of seed {given.seed}: {sum(counts.values())} faults, {len(counts)} of them different")
    return int(bool(counts))


def faults(tries: int, seed: int) -> Iterator[tuple[str, str]]:
    """(the fault, how to have it again) for each try that finds one."""
    draw = random.Random(seed)
    commands = arguments.commands()
    with tempfile.TemporaryDirectory() as scratch, _nothing_is_run():
        folder = Path(scratch) / "a" / "b"
        folder.mkdir(parents=True)
        world.make(folder)
        kept = Path(scratch) / "kept"
        shutil.copytree(folder, kept, symlinks=True)
        for _ in range(tries):
            if not _is_whole(folder, kept):
                shutil.rmtree(folder)
                shutil.copytree(kept, folder, symlinks=True)
            change = world.spoil(folder, draw) if draw.random() < 0.67 else "nothing"
            words = draw.choice(sorted(commands))
            line = arguments.drawn(words, commands[words], draw)
            slow = max(SELDOM.get(words, 1.0) < 1, any(word in PAGES for word in line))
            if slow and draw.random() > SELDOM.get(words, 0.05):
                continue
            surroundings = dict(draw.choices(SURROUNDINGS, k=draw.choice([0, 0, 1, 2])))
            on_terminal = draw.random() < 0.3
            if what := _fault(line, folder, surroundings, on_terminal):
                there = f"({change}; {surroundings}; {'a terminal' if on_terminal else 'a pipe'})"
                yield what, f"snnbench {' '.join(map(ascii, line))[:400]}    {there}"


def _is_whole(folder: Path, kept: Path) -> bool:
    """Whether no command has changed the sound files."""
    names = ("results/one", "results/sides")
    sizes = [
        [(path.name, path.stat().st_size) for path in sorted((each / name).iterdir())]
        for name in names
        for each in (folder, kept)
        if (each / name).is_dir()
    ]
    return len(sizes) == 4 and sizes[0] == sizes[1] and sizes[2] == sizes[3] and not (folder / "out").exists()


def _fault(line: list[str], folder: Path, surroundings: dict[str, str], on_terminal: bool) -> str:
    """What is wrong with how a command ends; "" if nothing is."""
    environment = {**os.environ, "SNNBENCH_HOME": str(folder / "home"), "UV_OFFLINE": "1"} | surroundings
    try:
        with _limited(), _terminal() if on_terminal else nullcontext():
            done = in_process.run(line, folder, environment)
            if done.returncode == 70:
                done = in_process.run(["--debug", *line], folder, environment)
                return _where(done.stderr)
    except Endless:
        return f"{line[0]} computes for {LONGEST_CPU_S:g} s"
    except BaseException as error:
        return f"{type(error).__name__}: {error} leaves main"
    finally:
        gc.enable()  # a command that ends anyway may have disabled it
    if "Traceback" in done.stderr and "--debug" not in line:
        return f"a traceback: {done.stderr.splitlines()[-1][:200]}"
    return ""


def _where(printed: str) -> str:
    """The last line of a traceback, and the last statement of snnbench in it."""
    places = re.findall(rf'File "{PACKAGE}/(.*)", line (\d+)', printed)
    return f"{':'.join(places[-1]) if places else '?'}: {printed.strip().splitlines()[-1][:200]}"


@contextmanager
def _terminal() -> Iterator[None]:
    """Commands draw for a terminal of 70 columns."""

    def console() -> Console:
        return Console(width=70, force_terminal=True, highlight=False, markup=False, emoji=False)

    with ExitStack() as stack:
        for module in (cli.doctor, cli.list, cli.report, cli.run, cli.screen, cli.show):
            stack.enter_context(mock.patch.object(module, "terminal", console))
        yield


@contextmanager
def _limited() -> Iterator[None]:
    def end(number: int, frame: Any) -> None:
        raise Endless

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST_CPU_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@contextmanager
def _nothing_is_run() -> Iterator[None]:
    """No cell is measured, nothing is installed, and the adapters of snnbench are read once."""

    def failing(*given: Any, **named: Any) -> Any:
        raise EnvironmentFailed("nothing is installed here")

    own = {path: adapters.read(path) for path in sorted(discovery.data_folder("adapters").glob("*.py"))}
    read = adapters.read
    with ExitStack() as stack:
        for module, name, value in (
            (store, "sync", failing),
            (store, "resolve", failing),
            (store, "_answer", cache(store._answer)),
            (local.Executor, "execute", lambda *given: None),
            (local, "execute", lambda *given: None),
            (typer, "launch", lambda address: 0),
            (submission, "require", lambda: (_ for _ in ()).throw(scheduler.SlurmError("no Slurm here"))),
            (compiler_doctor, "cpp_compiler", lambda *given: iter(())),
            (discovery, "read", lambda path: own.get(path) or read(path)),
        ):
            stack.enter_context(mock.patch.object(module, name, value))
        yield


if __name__ == "__main__":
    sys.exit(main())
