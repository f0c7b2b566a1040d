"""Tests of the timed region, on a fake clock that only the work moves."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from snnbench.worker.timing import FIRST_CALL_NS, Budget, Phase, Renewal, Timing, keep_busy, measure

BUDGET = Budget(warmup_passes=2, repetitions=4, min_repetition_ns=1, max_phase_ns=10**12)
MS = 1_000_000


@dataclass
class Bench:
    """A clock, and work that moves it by these nanoseconds; `events` lists all events in order."""

    pass_ns: int = 100
    sync_ns: int = 0
    first_ns: int | None = None
    prepare_ns: int = 1000
    pending_ns: int = 0
    now: int = 0
    compiled: int = 0
    runs: int = 0
    device_clock: bool = False
    events: list[str] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)

    def clock(self) -> int:
        self.events.append("clock")
        return self.now

    def run(self, prepared: Any) -> Any:
        """Start work; the clock moves when the caller waits for the work."""
        slow = self.runs == 0 and self.first_ns is not None
        self.pending_ns += self.first_ns if slow and self.first_ns is not None else self.pass_ns
        self.runs += 1
        self.events.append("run")
        return ("output", self.runs, prepared)

    def wait(self, outputs: Any) -> None:
        self.now += self.pending_ns + self.sync_ns
        self.pending_ns = 0
        self.events.append("wait")

    def prepare(self) -> str:
        self.now += self.prepare_ns
        self.events.append("prepare")
        return f"kept {self.events.count('prepare')}"

    def prepare_content(self, drawn: int) -> None:
        self.now += 10**6
        self.events.append(f"drawn {drawn}" if drawn else "ordered")

    def settle(self) -> None:
        self.now += 10**6
        self.events.append("settled")

    def load(self) -> None:
        self.now += 10**6
        self.events.append("loaded")

    def reload(self) -> None:
        self.now += 10**6
        self.events.append("reloaded")

    def keep(self, outputs: Any) -> None:
        self.now += 10**6
        self.answers.append(outputs)
        self.events.append("kept")

    def compare(self) -> None:
        self.now += 10**6
        self.events.append("compared")

    @property
    def renewal(self) -> Renewal:
        return Renewal(self.prepare_content, self.settle, self.load, self.reload, self.keep, self.compare)

    def phase(self, prepared: bool = False) -> Phase:
        return Phase(
            run=self.run,
            wait=self.wait,
            compilations=lambda: self.compiled,
            mark=lambda: self.now + self.pending_ns if self.device_clock else None,
            elapsed_ns=lambda start, end: end - start,
            prepare=self.prepare if prepared else None,
        )

    def measure(self, budget: Budget = BUDGET, prepared: bool = False) -> tuple[Timing, Any]:
        return measure(self.phase(prepared), budget, self.renewal, self.clock)


def test_first_call_warm_ups_and_repetitions_are_separate() -> None:
    timing, _ = Bench(first_ns=5000).measure()
    assert timing == Timing(
        first_call_ns=5000,
        warmup_ns=[100, 100],
        passes=1,
        repetitions_ns=[100] * 4,
        fresh_ns=[100],
        drawn_ns=[100] * 3,
    )


def test_end_of_the_first_call_is_announced_once() -> None:
    bench = Bench(first_ns=5000)
    announced: list[int] = []
    phase = replace(bench.phase(), called=lambda: announced.append(bench.now))
    started = bench.now
    measure(phase, BUDGET, bench.renewal, bench.clock)
    assert announced == [started + 5000], "before the warm-up"


def test_device_time_excludes_synchronisation() -> None:
    timing, _ = Bench(sync_ns=7, device_clock=True).measure()
    assert timing.device_ns == [100 * timing.passes] * 4
    assert timing.repetitions_ns == [100 * timing.passes + 7] * 4


def test_instructions_of_a_repetition_exclude_preparation() -> None:
    bench = Bench()
    phase = replace(bench.phase(prepared=True), instructions=lambda: bench.events.count("run") * 7 + 1000)
    timing, _ = measure(phase, BUDGET, bench.renewal, bench.clock)
    assert timing.instructions == [7 * timing.passes] * 4
    assert bench.measure()[0].instructions == []


@pytest.mark.parametrize(
    ("min_repetition_ns", "pass_ns", "passes"), [(1, 100, 1), (100, 100, 1), (101, 100, 2), (10 * MS, 300_000, 34)]
)
def test_repetition_lasts_at_least_its_minimum(min_repetition_ns: int, pass_ns: int, passes: int) -> None:
    timing, _ = Bench(pass_ns=pass_ns).measure(replace(BUDGET, min_repetition_ns=min_repetition_ns))
    assert timing.passes == passes
    assert timing.repetitions_ns == [passes * pass_ns] * 4
    assert min(timing.repetitions_ns) >= min_repetition_ns


def test_repetition_lasts_at_least_a_thousand_synchronisations() -> None:
    timing, _ = Bench(pass_ns=100, sync_ns=7).measure()
    assert timing.passes == 66  # 7000 ns, if a pass and its synchronisation take 107
    assert timing.repetitions_ns == [66 * 100 + 7] * 4


@pytest.mark.parametrize(
    ("slow_ms", "pass_ms", "busy_ms"),
    [
        (0, 1, 60),  # the clock is high at once
        (50, 1, 76),  # it has been high for a third of the time
        (1000, 1, 60),  # it does not rise
        (0, 50, 200),  # too few passes to tell
    ],
)
def test_a_card_is_kept_busy_until_passes_no_longer_become_faster(slow_ms: int, pass_ms: int, busy_ms: int) -> None:
    bench = Bench()

    def run(prepared: Any) -> Any:
        bench.pass_ns = (2 if bench.now < slow_ms * MS else 1) * pass_ms * MS
        return bench.run(prepared)

    keep_busy(replace(bench.phase(), run=run), 200 * MS, bench.clock)
    assert bench.now / MS == pytest.approx(busy_ms, abs=5)


@pytest.mark.parametrize(("max_phase_ns", "passes"), [(4 * 100 - 1, 1), (4 * 100, 2), (10**9, 3)])
def test_warm_up_ends_once_it_took_a_quarter_of_the_time_of_a_phase(max_phase_ns: int, passes: int) -> None:
    timing, _ = Bench().measure(replace(BUDGET, warmup_passes=3, max_phase_ns=max_phase_ns))
    assert timing.warmup_ns == [100] * passes


def test_number_of_passes_comes_from_warm_ups_or_first_call() -> None:
    budget = replace(BUDGET, min_repetition_ns=1000)
    assert Bench(first_ns=10**9).measure(budget)[0].passes == 10
    assert Bench(first_ns=500).measure(replace(budget, warmup_passes=0))[0].passes == 2


@pytest.mark.parametrize(("warmups_ns", "passes"), [([400, 100, 250], 10), ([100, 400], 10), ([400, 250], 4)])
def test_fastest_warm_up_determines_the_number_of_passes(warmups_ns: list[int], passes: int) -> None:
    """A slow one would make repetitions shorter than requested."""
    bench = Bench()
    durations = iter([5000, *warmups_ns])

    def run(prepared: Any) -> Any:
        bench.pass_ns = next(durations, 100)
        return bench.run(prepared)

    budget = replace(BUDGET, warmup_passes=len(warmups_ns), min_repetition_ns=1000)
    timing, _ = measure(replace(bench.phase(), run=run), budget, bench.renewal, bench.clock)
    assert (timing.warmup_ns, timing.passes) == (warmups_ns, passes)


def test_passes_are_waited_for_once_inside_the_clock() -> None:
    bench = Bench(pass_ns=400)
    bench.measure(replace(BUDGET, min_repetition_ns=1000, repetitions=3))
    end = bench.events[-6:]
    assert end == ["clock", "run", "run", "run", "wait", "clock"]
    assert bench.events[-7] == "wait", "earlier work must not be timed"


def test_outputs_of_the_very_last_pass_come_back() -> None:
    bench = Bench(pass_ns=400)
    _, outputs = bench.measure(replace(BUDGET, min_repetition_ns=1000))
    assert outputs == ("output", bench.runs, None)


def test_backward_is_prepared_outside_the_clock() -> None:
    bench = Bench()
    timing, outputs = bench.measure(replace(BUDGET, min_repetition_ns=250), prepared=True)
    assert (timing.first_call_ns, timing.warmup_ns, timing.repetitions_ns) == (100, [100, 100], [300] * 4)
    assert bench.events.count("prepare") == bench.events.count("run") == 3 + 4 * 3
    assert bench.events[-10:] == [*["prepare"] * 3, "wait", "clock", *["run"] * 3, "wait", "clock"]
    assert outputs[2] == f"kept {3 + 4 * 3}"


def test_number_of_kept_graphs_is_limited() -> None:
    budget = replace(BUDGET, min_repetition_ns=10**6)
    assert Bench().measure(budget, prepared=True)[0].passes == 64
    assert Bench().measure(budget)[0].passes == 10**4


@pytest.mark.parametrize(("max_phase_ns", "repetitions"), [(1, 3), (349, 3), (500, 5), (10**9, 20)])
def test_phase_ends_early_but_not_before_three_repetitions(max_phase_ns: int, repetitions: int) -> None:
    bench = Bench()
    timing, _ = bench.measure(replace(BUDGET, repetitions=20, max_phase_ns=max_phase_ns))
    assert len(timing.repetitions_ns) == repetitions
    each = ["wait", "clock", "run", "wait", "clock"]
    content = "drawn 1" if repetitions <= 4 else "ordered"
    assert bench.events[-15:] == [content, "settled", *each, "loaded", *each, "kept", "compared"]


def test_only_compilations_inside_the_clock_are_counted() -> None:
    bench = Bench(pass_ns=10 * MS)
    compiles_at = {1, 2, 5, 6}  # first call, a warm-up, and the second and third repetition

    def run(prepared: Any) -> Any:
        outputs = bench.run(prepared)
        bench.compiled += bench.runs in compiles_at
        return outputs

    timing, _ = measure(replace(bench.phase(), run=run), BUDGET, bench.renewal, bench.clock)
    assert timing.compilations == 2


def test_device_is_kept_busy_before_the_warm_up() -> None:
    timing, _ = Bench(first_ns=5000).measure(replace(BUDGET, busy_ns=950))
    assert (timing.busy_passes, timing.first_call_ns, timing.warmup_ns) == (10, 5000, [100, 100])
    assert timing.repetitions_ns == [100] * 4
    assert Bench().measure()[0].busy_passes == 0


ENOUGH = replace(BUDGET, enough_ns=90 * MS)


def test_pass_that_is_too_slow_to_matter_is_measured_once_on_new_content() -> None:
    bench = Bench(first_ns=500 * MS, pass_ns=100 * MS)
    timing, outputs = bench.measure(ENOUGH)
    once = [100 * MS]
    assert timing == Timing(first_call_ns=500 * MS, repetitions_ns=once, fresh_ns=once, enough_ns=90 * MS)
    assert (outputs, bench.runs, bench.answers[-1]) == (None, 2, ("output", 2, None))
    assert [event for event in bench.events if event in ("ordered", "compared")] == ["ordered", "ordered", "compared"]


@pytest.mark.parametrize(("busy_ns", "runs"), [(0, 1), (1, 2)], ids=["CPU", "card"])
def test_first_call_that_is_far_too_slow_is_the_only_pass_on_a_cpu(busy_ns: int, runs: int) -> None:
    bench = Bench(pass_ns=90 * MS + FIRST_CALL_NS + 1)
    found, outputs = bench.measure(replace(ENOUGH, busy_ns=busy_ns))
    once = [bench.pass_ns]
    assert found == Timing(first_call_ns=bench.pass_ns, repetitions_ns=once, fresh_ns=once, enough_ns=90 * MS)
    assert (outputs, bench.runs, bench.events.count("compared")) == (None, runs, 1)


def test_first_call_that_compiles_does_not_decide() -> None:
    bench = Bench(first_ns=5000 * MS, pass_ns=100 * MS)

    def run(prepared: Any) -> Any:
        bench.compiled = 1
        return bench.run(prepared)

    found, _ = measure(replace(bench.phase(), run=run), ENOUGH, bench.renewal, bench.clock)
    assert (found.first_call_ns, found.repetitions_ns) == (5000 * MS, [100 * MS])


def test_slow_first_call_alone_leaves_nothing_out() -> None:
    bench = Bench(first_ns=500 * MS, pass_ns=80 * MS)
    quick, _ = bench.measure(replace(ENOUGH, min_repetition_ns=500 * MS))
    assert (quick.passes, bench.events.count("loaded"), bench.events.count("reloaded")) == (7, 2, 1)
    assert bench.events.index("loaded") < bench.events.index("reloaded"), "repetitions are on content 0"
    assert (quick.warmup_ns, len(quick.repetitions_ns), quick.enough_ns) == ([80 * MS] * 2, 4, 0)
    usual, _ = Bench(first_ns=80 * MS, pass_ns=100 * MS).measure(ENOUGH)
    assert (usual.warmup_ns, len(usual.repetitions_ns), usual.enough_ns) == ([100 * MS] * 2, 4, 0)


def test_second_pass_that_compiles_is_a_warm_up() -> None:
    bench = Bench(first_ns=5000 * MS, pass_ns=100 * MS)

    def run(prepared: Any) -> Any:
        bench.compiled = min(2, bench.compiled + 1)
        return bench.run(prepared)

    timing, _ = measure(replace(bench.phase(), run=run), ENOUGH, bench.renewal, bench.clock)
    assert (len(timing.repetitions_ns), timing.compilations, timing.enough_ns) == (4, 0, 0)
