"""A relay of two workers: they load their libraries and take the exam together, and measure one after the other.

To load a library and to take the exam is as long as to measure a small cell, and uses one core. Nothing is measured
meanwhile. A waiting worker sleeps and uses no CPU. If a worker dies, its pipe closes, and the other one goes on. The
harness holds the pipe to the second open until it has recorded the first.
"""

import os
import select
from contextlib import suppress

READY = b"r"


class Relay:
    """One worker's end of two pipes. `first` says whether it measures first.

    `patience_s` is how long the first waits for the second, whose library may hang.
    """

    def __init__(self, reader: int, writer: int, first: bool, patience_s: float) -> None:
        self._reader, self._writer, self._first, self._patience_s = reader, writer, first, patience_s

    def wait(self) -> None:
        """Report that this worker is ready. Return once the other is ready, or for the second, once it is recorded."""
        with suppress(OSError):
            os.write(self._writer, READY)
        if self._first:
            select.select([self._reader], [], [], self._patience_s)
            return
        while os.read(self._reader, 1):
            pass
