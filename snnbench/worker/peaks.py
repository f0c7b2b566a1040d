"""Peaks: the machine's speed, in the timed framework, at the parts of a case that every library must do.

The process that times the phases also times the matrix products at the case's shapes and precision, a copy, and an
empty call. It does so before the first phase and after the last. Between phases it does so while all looks take at most
a tenth of the time so far. So a change of the machine's speed meets both.

The copy moves the least bytes of the smallest phase, up to a size beyond every cache. So bytes that fit into a cache
are copied within the cache; a slower copy would make the floor too high.

If a time seems below the floor, further looks follow. Every second one of them runs on one thread, where the framework
can: while others use the CPUs, the threads of a short product wait for each other, and every look with all threads is
slow. The fastest repetition counts, so a further look can only lower the floor.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

from snnbench import workloads
from snnbench.backends import Run
from snnbench.cases.case import Case
from snnbench.worker import floor, timing
from snnbench.worker.floor import CALL, COPY, Peak
from snnbench.worker.measure import Work

REPETITIONS = 5
"""The most repetitions of each peak in one look; the least is one."""
REPETITION_NS = 2_000_000
"""Short, so that many fit between two disturbances: the fastest one counts."""
LOOK_NS = 100_000_000
"""After this time no further repetition of a peak begins in one look."""
SHARE = 10
"""An optional look begins only if all looks so far took at most one part in so many of the time so far."""
SECOND_LOOKS = 10
"""The most further looks if a time seems below the floor: others may have disturbed every look so far."""
SECOND_LOOKS_NS = 5_000_000_000
"""After this time no further look of these begins."""
ONE_THREAD_NS = 20_000_000
"""A pass that takes longer is not run on one thread: it computes for longer than its threads wait for each other."""
LARGEST_COPY_BYTES = 256 << 20
CALL_FLOPS = 2
PATTERN_ROWS = 64
"""Rows of random values, which operands repeat: drawing a whole operand may take longer than multiplying it."""


class Peaks:
    """The peaks that the floors of some phases need, of one case on one backend."""

    def __init__(self, work: Work, phases: Sequence[str], clock: timing.Clock = time.perf_counter_ns) -> None:
        self.backend, self.session, self.case, self.clock = work.backend, work.session, work.request.case, clock
        self.busy_ns, self.settle = work.busy_ns, work.settle
        case = self.case
        self.copied_bytes = copied_bytes(case, phases)
        own = {COPY: 2 * self.copied_bytes, CALL: CALL_FLOPS}
        flops = workloads.of(case).product_flops
        self.by_name = {
            name: Peak(own[name] if name in own else flops(case, name)) for name in floor.needed(case, phases)
        }
        self.spent_ns = 0
        self._started = clock()

    def look(self) -> None:
        """Measure every peak some more."""
        self._look(self.by_name)

    def _look(self, names: Iterable[str]) -> None:
        """Measure these peaks. The operands exist only during this call: no reference cycle holds them."""
        started = self.clock()
        runs: dict[str, Run] = {}
        workload = workloads.of(self.case)
        for before, operands in workload.operands(self.case, PATTERN_ROWS).items():
            made = self.backend.peaks(*operands, self.copied_bytes, workload.product_rows(self.case, before))
            runs |= {name if name in (COPY, CALL) else f"{before}{name}": run for name, run in made.items()}
        if kinds := workload.convolutions(self.case):
            runs |= self.backend.convolutions(kinds, self.case.time_steps * self.case.batch)
        busy = self._phase(runs[next(iter(self.by_name))])
        timing.keep_busy(busy, self.busy_ns, self.clock)  # the operands took the host seconds, and the card idled
        for name in names:
            self._look_at(self.by_name[name], runs[name])
        self.spent_ns += self.clock() - started

    def look_if_cheap(self) -> None:
        """Look, if all looks took little of the time so far."""
        if SHARE * self.spent_ns <= self.clock() - self._started:
            self.look()

    def look_until(self, settled: Callable[[], bool]) -> None:
        """Look once, and then again until `settled()`, within bounds."""
        self.look()
        started = self.clock()
        for number in range(SECOND_LOOKS):
            if settled() or self.clock() - started >= SECOND_LOOKS_NS:
                break
            alone = None if number % 2 else self.backend.on_one_thread()
            if alone is None:
                self.look()
            else:
                with alone:
                    self._look([name for name, peak in self.by_name.items() if peak.fastest_ns <= ONE_THREAD_NS])

    def as_dict(self) -> dict[str, Any]:
        """For a reply: every raw duration."""
        return {name: asdict(peak) for name, peak in self.by_name.items()}

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
        self.settle()  # otherwise a pass in a settled process would be faster than any product
        ends = self.clock() + LOOK_NS
        before = len(peak.repetitions_ns)
        if not peak.passes:
            compiled = phase.compilations()
            one_ns = peak.first_call_ns = timing.repeat(phase, 1, self.clock).wall_ns
            if one_ns < LOOK_NS or phase.compilations() > compiled:
                one_ns = timing.repeat(phase, 1, self.clock).wall_ns
            budget = timing.Budget(0, REPETITIONS, REPETITION_NS, LOOK_NS)
            peak.passes = timing.passes_needed(phase, one_ns, budget, self.clock)
            if peak.passes == 1:  # a pass that takes seconds is not thrown away
                peak.repetitions_ns.append(one_ns)
        while (done := len(peak.repetitions_ns) - before) < REPETITIONS and (not done or self.clock() < ends):
            peak.repetitions_ns.append(timing.repeat(phase, peak.passes, self.clock).wall_ns)


def copied_bytes(case: Case, phases: Sequence[str]) -> int:
    """Bytes of the copied buffer: reading and writing it moves the least bytes of the smallest phase, up to a limit."""
    half = min((floor.least_bytes(case, phase) for phase in phases), default=0) // 2
    return min(half, LARGEST_COPY_BYTES)
