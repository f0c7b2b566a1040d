"""Timing: `synchronise; t0; k passes; synchronise; t1`, and all that stays outside of it.

k passes make a repetition, so that clock resolution and the cost of a synchronisation do not matter. The first call,
the warm-up passes and the repetitions are separate, and all are kept raw.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from snnbench.proof.fresh import DRAWN
from snnbench.worker.instructions import Count, uncounted

Clock = Callable[[], int]

CLOCK: Clock = time.perf_counter_ns
"""The clock, bound before an adapter is loaded."""
EMPTY_SYNCHRONISATIONS = 1000
"""A repetition lasts at least as long as so many synchronisations with nothing to wait for."""
FEWEST_REPETITIONS = 3
"""Done even if the phase's time is up."""
WARM_UP_SHARE = 4
"""The warm-up ends early once it took one part in so many of the most time of a phase: long passes warm up in one."""
SETTLED_NS, FEWEST_SETTLED, SETTLED_SHARE = 60_000_000, 6, 0.99
"""The clock of a card has risen if, after so long and so many passes, the last third is not faster than this share."""
SHORT_NS = 5_000_000
"""A shorter pass runs once more before a fresh pass: sleeping threads and cold caches would dominate its time."""
FIRST_CALL_NS = 1_000_000_000
"""What a first call on a CPU may take beyond other passes, if it compiles nothing."""
MOST_KEPT = 64
"""The most passes in a repetition of the backward phase: all their graphs must exist before the clock starts."""


@dataclass(frozen=True, slots=True)
class Phase:
    """How to run one phase: `prepare()` outside the clock, then `run(prepared)` timed; `wait(outputs)`.

    `arrive()` puts in place what the preparation must not know. `compilations()` counts the compilations so far in this
    process. `mark()` is a point in the device's own time, or None if the device has no clock, and
    `elapsed_ns(start, end)` the time between two marks. `instructions()` is the number of instructions retired so far,
    or None. `turn()` lets another process measure the same phase, before each repetition and after the last. `called()`
    is called after the first call, in which a framework may compile, unless it is the only pass.
    """

    run: Callable[[Any], Any]
    wait: Callable[[Any], None]
    compilations: Callable[[], int]
    mark: Callable[[], Any]
    elapsed_ns: Callable[[Any, Any], int]
    prepare: Callable[[], Any] | None = None
    arrive: Callable[[], None] = lambda: None
    instructions: Count = uncounted
    turn: Callable[[], None] = lambda: None
    called: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class Budget:
    """How much to measure: counts of passes and repetitions, lengths in nanoseconds.

    Passes run for `busy_ns` before the warm-up, because a device lowers its clock while it idles. A pass that takes
    longer than `enough_ns`, if it is not 0, is too slow to matter.
    """

    warmup_passes: int
    repetitions: int
    min_repetition_ns: int
    max_phase_ns: int
    busy_ns: int = 0
    enough_ns: int = 0


@dataclass(slots=True)
class Timing:
    """Raw durations of one phase. A repetition is `passes` passes; divide by that for the time of one pass.

    `device_ns` are the same repetitions by the device's clock, if it has one, and exclude the host's overhead: never
    compare them with a framework without such a clock. `fresh_ns` are single passes on content in another order of the
    batch; `drawn_ns` are single passes on content drawn anew. If a repetition is a single pass, the repetitions are
    among both. `repeated_ns` are passes on repeated content beside those, or further repetitions. If drawn passes take
    longer, they are the repetitions, and `contested_ns` are those before, of `contested_passes` passes each. If a time
    is below the floor, it is contested by repetitions between looks at the peaks. `instructions` are the instructions
    retired in each repetition, if they are counted. If a pass takes longer than `enough_ns`, there is no warm-up, and
    one repetition on content in another order, which may be the first call.
    """

    first_call_ns: int = 0
    busy_passes: int = 0
    warmup_ns: list[int] = field(default_factory=list)
    passes: int = 1
    repetitions_ns: list[int] = field(default_factory=list)
    device_ns: list[int] = field(default_factory=list)
    fresh_ns: list[int] = field(default_factory=list)
    drawn_ns: list[int] = field(default_factory=list)
    repeated_ns: list[int] = field(default_factory=list)
    contested_ns: list[int] = field(default_factory=list)
    contested_passes: int = 0
    instructions: list[int] = field(default_factory=list)
    compilations: int = 0
    enough_ns: int = 0


@dataclass(frozen=True, slots=True)
class Renewal:
    """Steps of a phase around content that it never saw, outside the clock.

    `prepare(drawn)` draws so many contents anew; with 0 it puts content 0 in another order. `settle()` waits until that
    work is idle. `load()` puts the next content in place, and `reload()` content 0. `keep(outputs)` copies the answer
    of one of the passes, which `compare()` compares.
    """

    prepare: Callable[[int], None]
    settle: Callable[[], Any]
    load: Callable[[], None]
    reload: Callable[[], None]
    keep: Callable[[Any], None]
    compare: Callable[[], None]


def measure(phase: Phase, budget: Budget, renewal: Renewal, clock: Clock = CLOCK) -> tuple[Timing, Any]:
    """Time one phase; return the durations and the outputs of the last repetition.

    If a repetition is a single pass, each repetition is on new content: DRAWN of them on content drawn anew, after the
    first. The outputs then go to the renewal only.
    """
    timing = Timing()
    if budget.enough_ns:
        if _is_too_slow(phase, timing, budget, renewal, clock):
            return timing, None
        renewal.reload()
    else:
        timing.first_call_ns = repeat(phase, 1, clock).wall_ns
        phase.called()
    timing.busy_passes = keep_busy(phase, budget.busy_ns, clock)
    while len(timing.warmup_ns) < budget.warmup_passes and not is_warm_up_over(timing.warmup_ns, budget.max_phase_ns):
        timing.warmup_ns.append(repeat(phase, 1, clock).wall_ns)
    timing.passes = passes_needed(phase, min(timing.warmup_ns or [timing.first_call_ns]), budget, clock)
    single = timing.passes == 1
    for number in range(budget.repetitions):
        spent = sum(timing.repetitions_ns)
        is_spent = number + 1 >= FEWEST_REPETITIONS and spent + 2 * (spent // number) > budget.max_phase_ns
        last = number == budget.repetitions - 1 or is_spent
        phase.turn()
        is_drawn = 0 < number <= DRAWN
        if single:
            _renewed(phase, min(timing.warmup_ns or [timing.first_call_ns]), renewal, int(is_drawn), clock)
        repetition = _counted(phase, timing, timing.passes, clock)
        _add(timing, repetition)
        if single:
            (timing.drawn_ns if is_drawn else timing.fresh_ns).append(repetition.wall_ns)
            renewal.keep(repetition.outputs)
            renewal.compare()
        if last:
            break
    phase.turn()
    return timing, None if single else repetition.outputs


def is_warm_up_over(warmup_ns: Sequence[int], max_phase_ns: int) -> bool:
    """Whether these passes warmed a phase up, also if more were planned."""
    return WARM_UP_SHARE * sum(warmup_ns) > max_phase_ns


def _is_too_slow(phase: Phase, timing: Timing, budget: Budget, renewal: Renewal, clock: Clock) -> bool:
    """Whether the first call, or the pass after it, is too slow to matter. It is then the only repetition.

    Both are on content in another order. On a card a first call may compile kernels that nobody counts, so the second
    pass decides. A second pass that is fast enough is the first warm-up pass.
    """
    first_most_ns = math.inf if budget.busy_ns else budget.enough_ns + FIRST_CALL_NS
    for most_ns in (first_most_ns, budget.enough_ns):
        _renewed(phase, SHORT_NS, renewal, 0, clock)
        compiled = phase.compilations()
        repetition = repeat(phase, 1, clock)
        renewal.keep(repetition.outputs)
        is_first = not timing.first_call_ns
        timing.first_call_ns = timing.first_call_ns or repetition.wall_ns
        if repetition.wall_ns > most_ns and phase.compilations() == compiled:
            renewal.compare()
            timing.enough_ns = budget.enough_ns
            timing.fresh_ns.append(repetition.wall_ns)
            _add(timing, repetition)
            return True
        if is_first:
            phase.called()
        else:
            timing.warmup_ns.append(repetition.wall_ns)
        if repetition.wall_ns <= budget.enough_ns:
            break
    return False


def run_ordered(phase: Phase, timing: Timing, renewal: Renewal, clock: Clock = CLOCK) -> "Repetition":
    """Time one more single pass, on content 0 in another order."""
    _renewed(phase, min(timing.repetitions_ns) / timing.passes, renewal, 0, clock)
    repetition = _counted(phase, timing, 1, clock)
    timing.fresh_ns.append(repetition.wall_ns)
    renewal.keep(repetition.outputs)
    renewal.compare()
    return repetition


def run_drawn(phase: Phase, timing: Timing, renewal: Renewal, passes: int, clock: Clock = CLOCK) -> list["Repetition"]:
    """Time `passes` more single passes in a row, each on content drawn anew; the renewal keeps one answer.

    The content is put in place between the passes, outside the clock. Outputs go after each pass, as in a repetition:
    memory that they hold would make the next pass take new memory, which is slow.
    """
    renewal.prepare(passes)
    _ready(phase, min(timing.repetitions_ns) / timing.passes, renewal, clock)
    series = []
    for _ in range(passes):
        renewal.load()
        repetition = _counted(phase, timing, 1, clock)
        renewal.keep(repetition.outputs)
        repetition.outputs = None
        series.append(repetition)
    timing.drawn_ns += [each.wall_ns for each in series]
    renewal.compare()
    return series


def run_repeated(
    phase: Phase, timing: Timing, renewal: Renewal, passes: int, clock: Clock = CLOCK
) -> list["Repetition"]:
    """Time `passes` more single passes in a row, as `run_drawn`, but on content 0."""
    _ready(phase, min(timing.repetitions_ns) / timing.passes, renewal, clock)
    series = []
    for _ in range(passes):
        renewal.reload()
        repetition = _counted(phase, timing, 1, clock)
        repetition.outputs = None
        series.append(repetition)
    timing.repeated_ns += [each.wall_ns for each in series]
    return series


def run_as_reported(phase: Phase, timing: Timing, renewal: Renewal, clock: Clock = CLOCK) -> "Repetition":
    """Time one more repetition in the way of those before; several passes are on content 0."""
    if timing.passes == 1:
        repetition = run_ordered(phase, timing, renewal, clock)
    else:
        renewal.reload()
        _ready(phase, min(timing.repetitions_ns) / timing.passes, renewal, clock)
        repetition = _counted(phase, timing, timing.passes, clock)
    timing.repeated_ns.append(repetition.wall_ns)
    return repetition


def contest(timing: Timing, repetitions: Sequence["Repetition"], passes: int) -> None:
    """Make these repetitions, of so many passes, those that are reported."""
    if not timing.contested_ns:
        timing.contested_ns, timing.contested_passes = timing.repetitions_ns, timing.passes
    timing.passes, timing.repetitions_ns, timing.device_ns, timing.instructions = passes, [], [], []
    for each in repetitions:
        _add(timing, each)


def _add(timing: Timing, repetition: "Repetition") -> None:
    timing.repetitions_ns.append(repetition.wall_ns)
    if repetition.device_ns is not None:
        timing.device_ns.append(repetition.device_ns)
    if repetition.instructions is not None:
        timing.instructions.append(repetition.instructions)


def _renewed(phase: Phase, pass_ns: float, renewal: Renewal, drawn: int, clock: Clock) -> None:
    """Put new content in place."""
    renewal.prepare(drawn)
    _ready(phase, pass_ns, renewal, clock)
    renewal.load()


def _ready(phase: Phase, pass_ns: float, renewal: Renewal, clock: Clock) -> None:
    """Let the process idle; a short pass then runs once more, on the present content."""
    renewal.settle()
    if pass_ns < SHORT_NS:
        repeat(phase, 1, clock)


def synchronisation_ns(phase: Phase, clock: Clock) -> float:
    """The time of a synchronisation with nothing to wait for."""
    started = clock()
    for _ in range(EMPTY_SYNCHRONISATIONS // 10):
        phase.wait(None)
    return (clock() - started) / (EMPTY_SYNCHRONISATIONS // 10)


def _counted(phase: Phase, timing: Timing, passes: int, clock: Clock) -> "Repetition":
    """Time a repetition, and count the compilations in it."""
    compiled = phase.compilations()
    repetition = repeat(phase, passes, clock)
    timing.compilations += phase.compilations() - compiled
    return repetition


def keep_busy(phase: Phase, busy_ns: int, clock: Clock) -> int:
    """Run passes for `busy_ns`, or until they no longer become faster; return how many.

    Their times are not kept: the device's clock rises meanwhile.
    """
    started = clock()
    ends, passes = [started], list[int]()
    while ends[-1] - started < busy_ns and not _is_settled(ends, passes):
        passes.append(repeat(phase, 1, clock).wall_ns)
        ends.append(clock())
    return len(passes)


def _is_settled(ends: Sequence[int], passes: Sequence[int]) -> bool:
    """Whether passes that ended at these times, after the first one, became no faster in their last third."""
    spent = ends[-1] - ends[0]
    if spent < SETTLED_NS or len(passes) < FEWEST_SETTLED:
        return False
    last = sum(end > ends[-1] - spent // 3 for end in ends[1:])
    return min(passes[-last:]) > SETTLED_SHARE * min(passes[:-last], default=0)


def passes_needed(phase: Phase, pass_ns: int, budget: Budget, clock: Clock) -> int:
    """How many passes of `pass_ns` make a repetition of the required length."""
    wanted_ns = max(budget.min_repetition_ns, round(EMPTY_SYNCHRONISATIONS * synchronisation_ns(phase, clock)))
    passes = max(1, -(-wanted_ns // max(1, pass_ns)))
    return min(passes, MOST_KEPT) if phase.prepare else passes


@dataclass(slots=True)
class Repetition:
    """One repetition: its time by both clocks, the instructions if they are counted, the outputs of its last pass."""

    wall_ns: int
    device_ns: int | None
    instructions: int | None
    outputs: Any

    @property
    def ns(self) -> int:
        """The device's time if it has a clock, or else the host's."""
        return self.wall_ns if self.device_ns is None else self.device_ns


def repeat(phase: Phase, passes: int, clock: Clock) -> Repetition:
    """Time `passes` passes; the outputs are those of the last pass."""
    prepared = [phase.prepare() for _ in range(passes)] if phase.prepare else [None] * passes
    phase.arrive()
    phase.wait(prepared)
    outputs = None
    retired = phase.instructions()
    start = phase.mark()
    started = clock()
    for item in prepared:
        outputs = phase.run(item)
    end = phase.mark()
    phase.wait(outputs)
    wall_ns = clock() - started
    retired_now = phase.instructions()
    instructions = None if retired is None or retired_now is None else retired_now - retired
    return Repetition(wall_ns, None if start is None else phase.elapsed_ns(start, end), instructions, outputs)
