"""A real terminal of a given width, and the text that a command leaves on it."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.cells import cell_len

from tests.sweep import command, surroundings

CONTROL = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|[=>])")
ROWS = 50


@dataclass(frozen=True)
class Screen:
    """What a command wrote to its terminal: raw, and as lines of text without control sequences."""

    raw: str
    columns: int
    status: int

    @property
    def lines(self) -> list[str]:
        """All lines, also those that were drawn over later."""
        return re.split(r"[\r\n]+", CONTROL.sub("", self.raw))

    @property
    def text(self) -> str:
        """All lines as one text."""
        return "\n".join(self.lines)

    def widest(self) -> int:
        """The width of its widest line, in columns of the terminal."""
        return max(map(cell_len, self.lines))


def screen(folder: Path, columns: int, *arguments: str | Path, timeout_s: float = 120.0, **variables: str) -> Screen:
    """Run snnbench in `folder` on a pseudo-terminal of this width, for both of its outputs."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
    environment = {**surroundings(folder), "TERM": "xterm-256color", **variables}
    for name in ("COLUMNS", "LINES", "NO_COLOR"):
        environment.pop(name, None)
    process = subprocess.Popen(
        command(*arguments), cwd=folder, env=environment, stdin=follower, stdout=follower, stderr=follower
    )
    os.close(follower)
    raw = b"".join(_written(leader)).decode()
    os.close(leader)
    return Screen(raw, columns, process.wait(timeout_s))


def _written(leader: int) -> Iterator[bytes]:
    """What is written to the terminal, until no process has it open."""
    while True:
        try:
            yield os.read(leader, 1 << 16)
        except OSError:  # Linux reports the last close of a pseudo-terminal as an error
            return
