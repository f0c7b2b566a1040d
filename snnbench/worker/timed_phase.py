"""One timed phase: its durations, the proof of its answers, and why its time may not be that of the work."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from statistics import median
from typing import Any

from snnbench.proof import fresh
from snnbench.proof.fresh import Contents
from snnbench.proof.passes import pieces
from snnbench.proof.phase_proof import PhaseProof
from snnbench.proof.spot_checks import SpotChecks
from snnbench.worker import contention, timing, unfinished_work
from snnbench.worker.durations import trial_median
from snnbench.worker.instructions import Count, uncounted
from snnbench.worker.measure import Measure, Timed, Work
from snnbench.worker.turns import Turns

WARM_NS = 50_000_000
"""After the other process's turn, a shorter pass needs an untimed pass that wakes threads and fills caches."""
LONG_S = 0.5
"""During a proof between repetitions that takes longer, no contention is counted."""
BUSY_NS = 200_000_000
"""How long a card is kept busy before any timing: an idle card has a low clock for tens of milliseconds."""
BUSY_AGAIN_NS = 20_000_000
"""The same before a fresh pass, while the host has made and checked content: a card keeps its clock for that long."""


class TimedPhase:
    """The phase `name` of a session; `proof` holds the findings on its answers.

    With `turns` another process measures the same phase.
    """

    def __init__(
        self,
        name: str,
        work: Work,
        checks: SpotChecks,
        contents: Contents,
        instructions: Count = uncounted,
        turns: Turns | None = None,
    ) -> None:
        request, session = work.request, work.session
        self.name, self._request, self._session = name, request, session
        piece = pieces(session)[name]
        self._on_cpu = not request.case.device.startswith("cuda")
        self._busy_ns = work.busy_ns
        self._phase = timing.Phase(
            run=piece.run,
            wait=session.synchronise,
            compilations=work.backend.compilations,
            mark=session.mark,
            elapsed_ns=session.elapsed_ns,
            prepare=piece.prepare,
            arrive=self._arrive,
            instructions=instructions,
            turn=self._turn,
            called=self._begin,
        )
        self._turns, self._warm_ns = turns, 0
        self._began = self._usage()
        self._ended: contention.Usage | None = None
        drawn = partial(checks.check_drawn, phase=name)
        self.proof = PhaseProof(session, piece, checks.check(0, name), drawn, contents, self._on_cpu)
        # In another order of the batch products may round differently, and a sample may take an unpredictable path.
        always = int(request.case.is_judged_by_layer)

        def prepare(drawn: int) -> None:
            with self._aside():
                self.proof.prepare(drawn or always)

        def compare() -> None:
            with self._aside():
                self.proof.compare()

        self._renewal = timing.Renewal(
            prepare, self._settle, self.proof.load, self.proof.reload, self.proof.keep, compare
        )
        self._drawn_ns: list[float] = []
        self._timing = timing.Timing()
        self._foreign: dict[str, Any] = {}
        self._further: dict[str, Any] = {}

    def durations(self) -> dict[str, Any]:
        """The raw durations."""
        return asdict(self._timing)

    def as_dict(self) -> dict[str, Any]:
        """The raw durations, the contention during them, and what was measured on further passes."""
        return self.durations() | {"contention": self._foreign} | self._further

    def measure_further(self, measures: Iterable[Measure]) -> None:
        """Let each measure run more passes."""
        timed = Timed(self.name, self._phase, self._timing, self._busy_ns, self._turns is not None)
        for measure in measures:
            self._further |= measure.after(timed)

    def measure(self) -> None:
        """Time the phase, and compare its answers to old and new content."""
        request, proof = self._request, self.proof
        budget = timing.Budget(
            request.warmup_passes,
            request.repetitions,
            request.min_repetition_ns,
            request.max_phase_ns,
            self._busy_ns,
            request.enough_ns,
        )
        self._session.load(0, 0)
        self._timing, outputs = timing.measure(self._phase, budget, self._renewal)
        self._foreign = contention.between(self._began, self._ended or self._usage())
        self._drawn_ns = [float(each) for each in self._timing.drawn_ns]
        if outputs is not None:
            proof.keep_last(outputs)
            for _ in range(fresh.ORDERED):
                timing.run_ordered(self._phase, self._timing, self._renewal)
        elif proof.spot is None:
            self._session.load(0, 0)
            proof.keep_last(timing.repeat(self._phase, 1, timing.CLOCK).outputs)

    def _usage(self) -> contention.Usage:
        """CPU usage so far. A partner that takes turns with this process does not count as another process."""
        # Other cells may run on other cards meanwhile, with CPUs of their own.
        cpus = self._request.cpus if self._on_cpu else ()
        partner_s = self._turns.partner_s if self._turns else 0.0
        usage = contention.usage(cpus=cpus, partner_s=partner_s)
        others_s = self._session.others_s()
        return usage.with_ranks(*others_s) if others_s else usage

    def _begin(self) -> None:
        """Count contention from here on: a compiler in the first call has processes of its own."""
        self._began = self._usage()

    @contextmanager
    def _aside(self) -> Iterator[None]:
        """Count no contention during a long proof: its compilers have processes of their own."""
        before = self._usage()
        yield
        after = self._usage()
        if after.wall_s - before.wall_s >= LONG_S:
            self._began = self._began.after_all(before, after)

    def _turn(self) -> None:
        """Let the other process work while this one idles; then a pass wakes threads and fills caches again."""
        if self._turns is None:
            return
        if self._turns.alone:
            self._ended = None  # the partner has gone, so contention counts to the end of the phase
            return
        self._ended = self._usage()  # now, while the partner has reported all its CPU time
        if self._on_cpu:
            unfinished_work.settle()
        self._turns.pass_on(self._turns.step)
        if self._warm_ns < WARM_NS:
            self._warm_ns = timing.repeat(self._phase, 1, timing.CLOCK).wall_ns

    def not_the_work(self) -> str | None:
        """Why the time is not that of the work, or None.

        If passes on drawn content take longer and no answer is kept, their time is reported. A pass that is too slow to
        matter gains nothing by kept answers.
        """
        measured = self._timing
        if measured.enough_ns:
            return None
        reported_ns = trial_median(measured.repetitions_ns, measured.passes)
        waiting_ns = timing.synchronisation_ns(self._phase, timing.CLOCK)

        def is_slow(series: int) -> bool:
            return fresh.are_slow(self._drawn_ns, reported_ns, series, waiting_ns)

        series = fresh.series_of(reported_ns, measured.passes)
        while True:
            while not fresh.are_enough(len(self._drawn_ns), len(measured.repetitions_ns), measured.passes):
                self._run_drawn(series)
            if not is_slow(series):
                return None
            if series > 1 or measured.passes == 1 or not self._on_cpu:
                break
            series, self._drawn_ns = min(measured.passes, fresh.SECOND_SERIES), []
        pairs: list[fresh.Pair] = []
        drawn: list[timing.Repetition] = []
        while fresh.undecided(pairs):
            passes = self._run_drawn(series)
            if not is_slow(series):
                return None
            drawn += passes
            pairs.append((median(each.ns for each in passes), self._run_repeated(series)))
        if fresh.are_kept(pairs):
            return (
                f"a pass of {self.name} takes {fresh.slowdown(pairs):.3g} times as long on content drawn anew as on "
                "content that repeats: answers are kept"
            )
        timing.contest(measured, drawn, 1)
        return None

    def time_again(self, look: Callable[[], None]) -> None:
        """Make as many further repetitions, each right after a look at the peaks, the repetitions.

        The machine may have been faster before, in all of them, than in all looks. Each answer is compared.
        """
        further = []
        for _ in self._timing.repetitions_ns:
            look()
            repetition = timing.run_as_reported(self._phase, self._timing, self._renewal)
            if self._timing.passes > 1:
                self.proof.keep_last(repetition.outputs)
            repetition.outputs = None
            further.append(repetition)
        timing.contest(self._timing, further, self._timing.passes)

    def _run_drawn(self, series: int) -> list[timing.Repetition]:
        """Run a series of passes on drawn content. Returns those that count."""
        passes = timing.run_drawn(self._phase, self._timing, self._renewal, series)[fresh.waking(series) :]
        self._drawn_ns.append(fresh.of_series([each.ns for each in passes]))
        return passes

    def _run_repeated(self, series: int) -> float:
        """The median nanoseconds of passes on repeated content, or of one that is reported, whose content is new."""
        if self._timing.passes == 1:
            return timing.run_as_reported(self._phase, self._timing, self._renewal).ns
        passes = timing.run_repeated(self._phase, self._timing, self._renewal, series)[fresh.waking(series) :]
        return median(each.ns for each in passes)

    def _arrive(self) -> None:
        self.proof.arrive()

    def _settle(self) -> None:
        """Wait until the CPU idles, or keep a card busy: its clock may fall while the host makes and checks content."""
        if self._on_cpu:
            unfinished_work.settle()
        else:
            timing.keep_busy(self._phase, BUSY_AGAIN_NS, timing.CLOCK)
