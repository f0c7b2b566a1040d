"""A contender's process and its turns, as contenders.py sees them."""

import json
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from benchmarks import contender_process
from benchmarks.contender_process import FLOOR
from snnbench.adapter import contender
from snnbench.adapter.discovery import discover
from snnbench.cases.case import Case
from snnbench.environments import store
from snnbench.files import home
from snnbench.run.process import environment


@dataclass(slots=True)
class Process:
    """A contender's process. It is started for the first case, and anew if it has ended."""

    name: str
    command: list[str]
    environment: dict[str, str]
    popen: "subprocess.Popen[str] | None" = None

    def prepare(self, work: Case) -> Any:
        """Make it build and check the network of a case; the answer has a `note` or a `problem`."""
        line = json.dumps(work.as_dict())
        if self.popen and "ended" not in (answer := self.ask(line)):
            return answer
        self.end()
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self.popen = subprocess.Popen(self.command, env=self.environment, text=True, **pipes)
        answer = self.ask(line)
        if "ended" in answer:
            self.end()
        return answer

    def ask(self, line: str = "") -> Any:
        """The answer to a line: to an empty one, the nanoseconds of a pass. It has `ended` if the process has."""
        assert self.popen and self.popen.stdin and self.popen.stdout
        with suppress(BrokenPipeError):
            self.popen.stdin.write(f"{line}\n")
            self.popen.stdin.flush()
        if reply := self.popen.stdout.readline():
            return json.loads(reply)
        return {"ended": True, "problem": f"ended with status {self.popen.wait()}"}

    def end(self) -> None:
        """End the process."""
        if self.popen:
            self.popen.kill()
            self.popen.wait()
            self.popen = None


@dataclass(slots=True)
class Turn:
    """A contender in a case, and the nanoseconds of its pass in each round that it took part in."""

    process: Process
    note: str
    durations_ns: list[float] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The contender's name."""
        return self.process.name


def every_process(base: str, patterns: Sequence[str], threads: int) -> list[Process]:
    """A process for the floor, for `base`, and for every contender that the patterns name; none is started yet."""
    known = discover()
    wanted, wrong = contender.find_all([full(pattern) for pattern in patterns], known)
    if wrong:
        raise SystemExit(str(wrong[0]))
    pairs = dict.fromkeys([contender.find(base, known)[0], *wanted])
    processes = []
    for library, variant in [("", FLOOR), *pairs]:
        adapter = known[library or base.split("/")[0]]
        if library and "cpu" not in adapter.variants[variant].devices:
            continue
        planned = store.plan(adapter, variant if library else adapter.default, cuda=False)
        python = store.sync(planned, lambda line: None).python
        request = {"path": str(adapter.path), "variant": variant, "threads": threads}
        command = [str(python), "-P", contender_process.__file__, json.dumps(request)]
        name = contender.label(library, variant) if library else FLOOR
        processes.append(Process(name, command, environment(threads, home())))
    return processes


def full(pattern: str) -> str:
    """A pattern of all variants if only a library is named."""
    return pattern if "/" in pattern else f"{pattern}/*"
