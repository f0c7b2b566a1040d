"""Peaks: how fast this machine is at the parts of a case that nobody can leave out, by the framework that is timed.

The matrix products at the case's own shapes and precision, a copy, and an empty call are timed in the process that
times the phases, before the first of them and after the last; and between them, as long as looking takes no more than a
tenth of their time. So a machine that changes its speed meanwhile does so for both.

The copy moves as many bytes as the phases must at the least, up to a size beyond every cache: what fits into a cache is
copied there, or its floor would be none.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snnbench.backends import Backend, Run, Session
from snnbench.worker import floor, timing
from snnbench.worker.floor import CALL, COPY, Peak
from snnbench.workloads.case import Case

REPETITIONS = 5
"""Of each peak in one look, at most; one at the least."""
REPETITION_NS = 2_000_000
"""Short, so that many fit between two disturbances: the fastest one counts."""
LOOK_NS = 100_000_000
"""After which no further repetition of a peak begins."""
SHARE = 10
"""Looks that may be left out begin only while all of them took less than one part in so many of the phases' time."""
SECOND_LOOKS = 10
"""Where a time seems to be below the floor, for it may be that others disturbed every look so far."""
SECOND_LOOKS_NS = 5_000_000_000
"""After which no further one of these begins."""
LARGEST_COPY_BYTES = 256 << 20
CALL_FLOPS = 2
PATTERN_ROWS = 64
"""Rows of random values; operands repeat them, for making all of one may take longer than multiplying it."""


class Peaks:
    """The peaks that the floors of some phases need, of one case on one backend."""

    def __init__(
        self,
        backend: Backend,
        session: Session,
        case: Case,
        phases: Sequence[str],
        clock: timing.Clock = time.perf_counter_ns,
        busy_ns: int = 0,
        settle: Callable[[], None] = lambda: None,
    ) -> None:
        self.backend, self.session, self.case, self.clock = backend, session, case, clock
        self.busy_ns, self.settle = busy_ns, settle
        self.copied_bytes = copied_bytes(case, phases)
        self.found = {name: Peak(floor.product_flops(case)) for name in floor.needed(case, phases)}
        self.found |= {COPY: Peak(2 * self.copied_bytes), CALL: Peak(CALL_FLOPS)}
        self.spent_ns = 0
        self._started = clock()

    def look(self) -> None:
        """Measure every peak some more. What that needs exists only meanwhile: nothing here refers to itself."""
        started = self.clock()
        runs = self.backend.peaks(*operands(self.case), self.copied_bytes)
        busy = self._phase(runs[next(iter(self.found))])
        timing.keep_busy(busy, self.busy_ns, self.clock)  # the operands took the host seconds, and the card idled
        for name, peak in self.found.items():
            self._look_at(peak, runs[name])
        self.spent_ns += self.clock() - started

    def look_if_cheap(self) -> None:
        """Look, where looking has taken little of the time so far."""
        if SHARE * self.spent_ns <= self.clock() - self._started:
            self.look()

    def look_until(self, settled: Callable[[], bool]) -> None:
        """Look, and then again and again as long as it is not settled, within bounds."""
        self.look()
        started = self.clock()
        for _ in range(SECOND_LOOKS):
            if settled() or self.clock() - started >= SECOND_LOOKS_NS:
                break
            self.look()

    def as_dict(self) -> dict[str, Any]:
        """For a reply: every raw duration."""
        return {name: asdict(peak) for name, peak in self.found.items()}

    def _phase(self, run: Run) -> timing.Phase:
        return timing.Phase(
            run=lambda _: run(),
            wait=self.session.synchronise,
            compilations=self.backend.compilations,
            mark=self.session.mark,
            elapsed_ns=self.session.elapsed_ns,
        )

    def _look_at(self, peak: Peak, run: Run) -> None:
        phase = self._phase(run)
        self.settle()  # or a pass that ran on a settled process would be faster than any product
        ends = self.clock() + LOOK_NS
        before = len(peak.repetitions_ns)
        if not peak.passes:
            peak.first_call_ns = timing.repeat(phase, 1, self.clock).wall_ns
            one_ns = timing.repeat(phase, 1, self.clock).wall_ns
            budget = timing.Budget(0, REPETITIONS, REPETITION_NS, LOOK_NS)
            peak.passes = timing.passes_needed(phase, one_ns, budget, self.clock)
            if peak.passes == 1:  # where one takes seconds, it is not thrown away
                peak.repetitions_ns.append(one_ns)
        while (done := len(peak.repetitions_ns) - before) < REPETITIONS and (not done or self.clock() < ends):
            peak.repetitions_ns.append(timing.repeat(phase, peak.passes, self.clock).wall_ns)


def copied_bytes(case: Case, phases: Sequence[str]) -> int:
    """Bytes of the buffer that is copied, so that as many are read and written as these phases do at the least."""
    half = max((floor.least_bytes(case, phase) for phase in phases), default=0) // 2
    return min(half, LARGEST_COPY_BYTES)


def operands(case: Case) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Input [M, N], cotangent [M, N] and weight [N, N], as random as the case's own: devices draw less for zeros."""
    generator = np.random.Generator(np.random.Philox(case.seed))
    pattern = (PATTERN_ROWS, case.neurons)
    rows = (case.time_steps * case.batch, case.neurons)
    entering = (generator.random(pattern, np.float32) < case.input_rate).astype(np.float32)
    normal = generator.standard_normal(pattern, np.float32)
    if case.input_kind == "gaussian":
        entering *= generator.standard_normal(pattern, np.float32)
    return np.resize(entering, rows), np.resize(normal, rows), np.resize(normal, (case.neurons, case.neurons))
