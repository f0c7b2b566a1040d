"""Turns of two workers that measure the two sides of a pair: one works while the other waits.

A machine changes its speed within seconds, so two processes one after the other meet different speeds. Here each worker
does one repetition of a phase and hands over, so that a change of speed meets both. A waiting worker sleeps and uses no
CPU. If the other worker ends, hangs or dies, this one goes on alone.
"""

import os
import select
import struct
import time
from collections.abc import Callable

MESSAGE = struct.Struct("=dq")
"""CPU seconds of the sender so far, and its step."""


class Turns:
    """One worker's end of two pipes. `partner_s` is the CPU seconds that the other worker used so far.

    `patience_s` is how long this worker waits for the other in all, before it goes on alone. `step` counts the phases.
    """

    def __init__(
        self,
        reader: int,
        writer: int,
        patience_s: float,
        cpu: Callable[[], float] = time.process_time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reader, self._writer, self._left_s, self._cpu, self._clock = reader, writer, patience_s, cpu, clock
        self.step = self._partner_step = 0
        self.partner_s = 0.0
        self.alone = False
        self.taken = 0

    def wait(self) -> None:
        """Wait for a turn."""
        started = self._clock()
        poller = select.poll()
        poller.register(self._reader, select.POLLIN | select.POLLHUP)
        ready = poller.poll(max(0.0, self._left_s) * 1000)
        self._left_s -= self._clock() - started
        data = os.read(self._reader, MESSAGE.size) if ready else b""
        if len(data) == MESSAGE.size:
            self.partner_s, self._partner_step = MESSAGE.unpack(data)
            self.taken += 1
        else:
            self.alone = True

    def pass_on(self, step: int) -> None:
        """Hand over, and wait for a turn at which the other worker has reached this `step`."""
        while not self.alone:
            try:
                os.write(self._writer, MESSAGE.pack(self._cpu(), step))
            except OSError:
                self.alone = True
                return
            self.wait()
            if self._partner_step >= step:
                return
