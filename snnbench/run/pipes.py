"""The pipes between workers that wait for each other."""

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field

from snnbench.worker.relay import OPEN


@dataclass(slots=True)
class Ends:
    """The pipe ends of one worker: its option on the worker's command line, and their descriptors.

    `uses_card` says whether the worker may use its card before its turn.
    """

    option: str
    descriptors: tuple[int, ...]
    uses_card: bool = False
    open: bool = True

    @property
    def options(self) -> tuple[str, ...]:
        """For the worker's command line."""
        given = (self.option, ",".join(map(str, self.descriptors)))
        return (*given, "--uses-card") if self.uses_card else given

    def close(self) -> None:
        """Close this process's copies of the ends, so that the other workers notice when their partner ends."""
        if self.open:
            self.open = False
            for descriptor in self.descriptors:
                os.close(descriptor)


@contextmanager
def turns() -> Iterator[tuple[Ends, Ends]]:
    """The ends of two workers that take turns at each repetition (worker/turns.py); the first one begins."""
    to_second, to_first = os.pipe(), os.pipe()
    with ExitStack() as stack:
        first = Ends("--begins", (to_first[0], to_second[1]))
        second = Ends("--joins", (to_second[0], to_first[1]))
        for ends in (first, second):
            stack.callback(ends.close)
        yield first, second


@dataclass(slots=True)
class Relay:
    """The ends of workers that measure one after the other (worker/relay.py), and the gates of all but the leader."""

    ends: Sequence[Ends]
    _gates: dict[int, int] = field(default_factory=dict)

    def open_gate(self, number: int, enough_ns: int) -> None:
        """Let the worker of this number measure. The leader needs no gate."""
        if number in self._gates:
            with suppress(BrokenPipeError):  # this worker has ended
                os.write(self._gates[number], OPEN.pack(enough_ns))

    def close(self) -> None:
        """Close all descriptors that are left. A worker whose gate is not open ends."""
        for ends in self.ends:
            ends.close()
        while self._gates:
            os.close(self._gates.popitem()[1])


@contextmanager
def relay(count: int, leader: int, on_card: Collection[int] = ()) -> Iterator[Relay]:
    """The pipes of `count` workers. The worker of the number `leader` waits until all others are ready.

    Those `on_card` may use the card before their turn.
    """
    gates: dict[int, int] = {}
    readers: list[int] = []
    ends: dict[int, Ends] = {}
    for number in set(range(count)) - {leader}:
        (gate, gates[number]), (reader, ready) = os.pipe(), os.pipe()
        ends[number] = Ends("--follows", (gate, ready), number in on_card)
        readers.append(reader)
    ends[leader] = Ends("--leads", tuple(readers), leader in on_card)
    pipes = Relay([ends[number] for number in range(count)], gates)
    try:
        yield pipes
    finally:
        pipes.close()
