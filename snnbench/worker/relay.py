"""A relay of workers: they prepare together, and measure times one after the other.

To load a library, to take the exam and to draw content takes as long as to measure a small cell, and uses one core. So
several workers prepare at once, and no time is measured meanwhile. The leader measures first, once all others are
ready. A waiting worker sleeps and uses no CPU. If a worker dies, its pipe closes, and the others go on. The harness
holds a gate to each follower. It opens the gate when it has recorded all workers before, and says from which time on a
pass is too slow to matter by then. A gate that closes in place of this means that the harness died, so the follower
ends. A worker that measures memory does not wait, because memory does not depend on neighbours; it counts as ready when
it ends.

On a card every worker waits. Those that time a phase prepare before; until its turn such a process holds a context of
the card, and sleeps. The others load their libraries only: a worker that measures memory, every worker where a card
takes one process at a time, and workers whose contexts would take too much of it.
"""

import os
import select
import struct
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from snnbench.worker.messages import Request

READY = b"r"
OPEN = struct.Struct("<Q")
"""The message that opens a gate: the request's `enough_ns` at that time."""


@dataclass(frozen=True, slots=True)
class Leader:
    """The worker that measures first: it reads from a pipe of each follower.

    `patience_s` is how long it waits for all of them, because a library may hang. `uses_card` says whether it may use
    its card before.
    """

    readers: Sequence[int]
    patience_s: float
    uses_card: bool = False

    def wait(self, request: Request) -> Request:
        """Return the request once every follower is ready or gone."""
        ends = time.monotonic() + self.patience_s
        for reader in self.readers:
            select.select([reader], [], [], max(0.0, ends - time.monotonic()))
        return request


@dataclass(frozen=True, slots=True)
class Follower:
    """A worker that measures later: it writes to the leader, and waits for OPEN from its gate.

    `uses_card` says whether it may use its card before.
    """

    gate: int
    ready: int
    uses_card: bool = False

    def wait(self, request: Request) -> Request:
        """Report that this worker is ready. Return the request as it is once the gate is open.

        Raises SystemExit if the harness died.
        """
        with suppress(OSError):
            os.write(self.ready, READY)
        if not (message := os.read(self.gate, OPEN.size)):
            sys.exit("the harness is gone")
        (enough_ns,) = OPEN.unpack(message)
        return replace(request, enough_ns=enough_ns)


Relay = Leader | Follower
