"""A contender's process and its turns, as contenders.py sees them."""

import json
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from snnbench.cases.case import Case


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
