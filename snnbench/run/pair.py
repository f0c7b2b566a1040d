"""The pipes between two workers that wait for each other."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal


@dataclass(slots=True)
class Ends:
    """The pipe ends of one of two workers that wait for each other, and whether it works first.

    By `way` "turns" they take turns at each repetition (worker/turns.py), by "relay" the second follows the first
    (worker/relay.py).
    """

    way: Literal["turns", "relay"]
    reader: int
    writer: int
    first: bool
    open: bool = True

    @property
    def options(self) -> tuple[str, str]:
        """For the worker's command line."""
        return f"--{self.way}", f"{self.reader},{self.writer},{'first' if self.first else 'second'}"

    def close(self) -> None:
        """Close this process's copies of the ends, so that the other worker notices when its partner ends."""
        if self.open:
            self.open = False
            os.close(self.reader)
            os.close(self.writer)


@contextmanager
def pipes(way: Literal["turns", "relay"]) -> Iterator[tuple[Ends, Ends]]:
    """The pipe ends for two workers."""
    to_second, to_first = os.pipe(), os.pipe()
    workers = Ends(way, to_first[0], to_second[1], True), Ends(way, to_second[0], to_first[1], False)
    try:
        yield workers
    finally:
        for ends in workers:
            ends.close()
