"""Probes: a little fixed work that belongs to no library, timed before the first phase of a process and after its last.

The work is the same for every case and library: a loop of the interpreter, calls of the framework one after the other,
a copy and a matrix product; on a GPU also one call with a wait. If a probe takes longer than on another day, the
machine is slower for that kind of work, or the framework is another one.
"""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from snnbench.backends import Run
from snnbench.measures.probes.levels import CALLS, COPY, INTERPRETER, LAUNCH, PRODUCT
from snnbench.worker import clocks, floor, timing
from snnbench.worker.measure import Measure, Work
from snnbench.worker.peaks import PATTERN_ROWS

STEPS = 20_000
"""Steps of the interpreter's loop: about a millisecond."""
CALLS_IN_A_ROW = 200
PRODUCT_SIZE = {"cpu": 192, "cuda": 2048}
"""Rows and columns of the product's operands, by kind of device."""
COPIED_BYTES = {"cpu": 4 << 20, "cuda": 64 << 20}
REPETITIONS = 5
"""Repetitions of each probe in one look."""


class Probes(Measure):
    """The probes of one process; each look times every probe."""

    IS_ALWAYS = True

    def __init__(self, work: Work, clock: timing.Clock = time.perf_counter_ns) -> None:
        super().__init__(work)
        self._backend, self._session, self._clock = work.backend, work.session, clock
        self._kind = "cuda" if work.request.case.device.startswith("cuda") else "cpu"
        self._looks: dict[str, list[list[int]]] = {}
        self._clocks_mhz: list[dict[str, int]] = []
        self._spent_ns = 0

    def begin(self) -> None:
        """Look before the first phase."""
        self.look()

    def end(self) -> None:
        """Look after the last phase."""
        self.look()

    def look(self) -> None:
        """Time every probe. The operands exist only during this call. A card is busy when this begins."""
        started = self._clock()
        runs = self._runs()
        if not self._looks:
            for run, _ in runs.values():
                self._session.synchronise(run())
        self.work.settle()
        for name, (run, passes) in runs.items():
            phase = timing.Phase(
                run=lambda _, run=run: run(),  # type: ignore[misc]
                wait=self._session.synchronise,
                compilations=self._backend.compilations,
                mark=self._session.mark,
                elapsed_ns=self._session.elapsed_ns,
            )
            taken = [timing.repeat(phase, passes, self._clock).wall_ns for _ in range(REPETITIONS)]
            self._looks.setdefault(name, []).append(taken)
        if self._kind == "cuda":
            self._clocks_mhz.append(clocks.mhz())
        self._spent_ns += self._clock() - started

    def of_record(self) -> dict[str, Any]:
        """The nanoseconds of every repetition, by probe and look."""
        return {"probes": {name: {"looks_ns": looks} for name, looks in self._looks.items()}}

    def settings(self, phases: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """How long all looks took, and the card's clocks right after each look, if there is a card."""
        return {"probes_ms": self._spent_ns // 1_000_000} | (
            {"clocks_mhz": self._clocks_mhz} if self._clocks_mhz else {}
        )

    def _runs(self) -> dict[str, tuple[Run, int]]:
        """Each probe, and its passes per repetition. The probes that keep threads awake come last."""
        side = PRODUCT_SIZE[self._kind]
        random = np.random.Generator(np.random.Philox(0))
        rows = random.standard_normal((PATTERN_ROWS, side), np.float32)  # the device repeats them
        runs = self._backend.peaks(rows, rows, rows, COPIED_BYTES[self._kind], side)
        probes: dict[str, tuple[Run, int]] = {
            INTERPRETER: (loop, 1),
            CALLS: (runs[floor.CALL], CALLS_IN_A_ROW),
            COPY: (runs[floor.COPY], 1),
            PRODUCT: (runs["current"], 1),
        }
        return probes | ({LAUNCH: (runs[floor.CALL], 1)} if self._kind == "cuda" else {})


def loop() -> None:
    """Work for the interpreter alone, with nothing to wait for afterwards."""
    total = 0
    for number in range(STEPS):
        total += number & 7


MEASURE = Probes
