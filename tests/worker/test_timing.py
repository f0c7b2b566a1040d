"""Tests of the timed region, on a fake clock that only the work moves, then on a real clock."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from snnbench.worker.timing import Budget, Phase, Renewal, Timing, measure, run_fresh, run_pair, run_repeated
from tests.fakes import CASE, CORRECT, OWN, PHASES, ask, reply_of, request
from tests.recordings import EXACT

pytestmark = pytest.mark.quiet

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

    def prepare_content(self, drawn: bool) -> None:
        self.now += 10**6
        self.events.append("drawn" if drawn else "ordered")

    def settle(self) -> None:
        self.now += 10**6
        self.events.append("settled")

    def load(self) -> None:
        self.now += 10**6
        self.events.append("loaded")

    def touch(self) -> None:
        self.now += 10**6
        self.events.append("touched")

    def keep(self, outputs: Any) -> None:
        self.now += 10**6
        self.answers.append(outputs)
        self.events.append("kept")

    @property
    def renewal(self) -> Renewal:
        return Renewal(self.prepare_content, self.settle, self.load, self.keep, self.touch)

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
        fresh_ns=[100] * 3,
        drawn_ns=[100],
    )


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


@pytest.mark.parametrize("repetitions", [1, 2, 4])
def test_single_pass_repetitions_use_new_content(repetitions: int) -> None:
    """The content is put in place outside the clock."""
    bench = Bench(pass_ns=10 * MS)
    timing, outputs = bench.measure(replace(BUDGET, repetitions=repetitions))
    assert timing.repetitions_ns == [10 * MS] * repetitions and outputs is None
    assert timing.fresh_ns + timing.drawn_ns == timing.repetitions_ns
    assert len(timing.drawn_ns) == (repetitions > 1)
    each = ["settled", "loaded", "wait", "clock", "run", "wait", "clock", "kept"]
    contents = [*["ordered"] * len(timing.fresh_ns), *["drawn"] * len(timing.drawn_ns)]
    assert bench.events[-9 * repetitions :] == [event for content in contents for event in (content, *each)]
    assert [output[1] for output in bench.answers] == [*range(4, 4 + repetitions)], "each answer is kept"


def test_fresh_passes_follow_repetitions_of_several_passes() -> None:
    bench = Bench(pass_ns=6 * MS)
    budget = replace(BUDGET, min_repetition_ns=10 * MS)
    timing, outputs = bench.measure(budget)
    assert (timing.passes, timing.fresh_ns, bench.answers) == (2, [], []) and outputs is not None
    before = len(bench.events)
    run_fresh(bench.phase(), timing, bench.renewal, passes=3, drawn=1, clock=bench.clock)
    each = ["settled", "loaded", "wait", "clock", "run", "wait", "clock", "kept"]
    assert bench.events[before:] == ["ordered", *each, "ordered", *each, "drawn", *each]
    assert (timing.fresh_ns, timing.drawn_ns) == ([6 * MS] * 2, [6 * MS])
    assert timing.repetitions_ns == [12 * MS] * 4, "the repetitions stay unchanged"


def test_pair_is_a_fresh_pass_and_its_last_repeat() -> None:
    bench = Bench(pass_ns=10 * MS)
    timing, _ = bench.measure()
    before, runs = len(timing.drawn_ns), bench.runs
    assert run_pair(bench.phase(), timing, bench.renewal, True, 3, bench.clock) == (10 * MS, 10 * MS)
    assert (len(timing.drawn_ns), bench.runs) == (before + 1, runs + 1 + 3)
    assert timing.repeated_ns == [10 * MS], "both halves are kept"
    honest_once = {bench.runs + 2, bench.runs + 3, bench.runs + 4}

    def run(prepared: Any) -> Any:
        outputs = bench.run(prepared)
        if bench.runs in honest_once - {min(honest_once)}:
            bench.pending_ns = MS
        return outputs

    keeper = replace(bench.phase(), run=run)
    timing.drawn_ns.append(5)
    pair = run_pair(keeper, timing, bench.renewal, False, 3, bench.clock)
    assert pair == (10 * MS, MS), "the first repeat was honest, and the fresh pass is one in another order"


def test_repeated_passes_reuse_the_previous_content() -> None:
    bench = Bench(pass_ns=10 * MS)
    timing, _ = bench.measure()
    bench.events.clear()
    run_repeated(bench.phase(), timing, 2, bench.clock)
    assert bench.events == ["wait", "clock", "run", "wait", "clock"] * 2
    assert timing.repeated_ns == [10 * MS] * 2
    run_repeated(bench.phase(), timing, -1, bench.clock)
    assert len(timing.repeated_ns) == 2, "none more where there are enough"


@pytest.mark.parametrize("pass_ns", [5 * MS - 1, 5 * MS])
def test_both_passes_of_a_pair_start_in_the_same_state(pass_ns: int) -> None:
    bench = Bench(pass_ns=pass_ns)
    timing, _ = bench.measure()
    bench.events.clear()
    run_pair(bench.phase(), timing, bench.renewal, False, 1, bench.clock)
    events = "|".join(bench.events).replace("|clock", "").replace("wait|run|wait", "pass")
    between = "pass|" if pass_ns < 5 * MS else ""
    assert events == f"ordered|settled|{between}loaded|pass|kept|settled|{between}touched|pass"


def test_short_pass_runs_once_more_before_new_content() -> None:
    bench = Bench(pass_ns=5 * MS - 1)
    timing, _ = bench.measure(replace(BUDGET, repetitions=2))
    each = ["wait", "clock", "run", "wait", "clock"]
    first = ["ordered", "settled", *each, "loaded", *each, "kept"]
    assert bench.events[-28:] == [*first, *["drawn", *first[1:]]]
    assert len(timing.repetitions_ns) == 2
    longer = Bench(pass_ns=5 * MS)
    longer.measure(replace(BUDGET, repetitions=2))
    assert longer.events.count("run") == bench.events.count("run") - 2


@pytest.mark.parametrize(("max_phase_ns", "repetitions"), [(1, 3), (349, 3), (500, 5), (10**9, 20)])
def test_phase_ends_early_but_not_before_three_repetitions(max_phase_ns: int, repetitions: int) -> None:
    bench = Bench()
    timing, _ = bench.measure(replace(BUDGET, repetitions=20, max_phase_ns=max_phase_ns))
    assert len(timing.repetitions_ns) == repetitions
    each = ["wait", "clock", "run", "wait", "clock"]
    assert bench.events[-14:] == ["drawn", "settled", *each, "loaded", *each, "kept"]


def test_only_compilations_inside_the_clock_are_counted() -> None:
    bench = Bench(pass_ns=10 * MS)
    compiles_at = {1, 2, 5, 6}  # first call, a warm-up, and the second and third repetition

    def run(prepared: Any) -> Any:
        outputs = bench.run(prepared)
        bench.compiled += bench.runs in compiles_at
        return outputs

    timing, _ = measure(replace(bench.phase(), run=run), BUDGET, bench.renewal, bench.clock)
    assert timing.compilations == 2


def test_compilations_for_new_content_are_not_counted() -> None:
    """Compilations of a fresh pass are counted."""
    bench = Bench(pass_ns=10 * MS)

    def renew(drawn: bool) -> None:
        bench.compiled += 1

    timing = measure(
        bench.phase(), BUDGET, Renewal(renew, bench.settle, bench.load, bench.keep, bench.touch), bench.clock
    )[0]
    assert timing.compilations == 0

    def run(prepared: Any) -> Any:
        bench.compiled += 1
        return bench.run(prepared)

    run_fresh(replace(bench.phase(), run=run), timing, bench.renewal, 2, 1, bench.clock)
    assert timing.compilations == 2


TRUE_MS = 40
ASYNCHRONOUS = (
    CORRECT
    + """
import threading
import time

from snnbench.backends import numpy as driver

BACKEND = "own"


class Device:
    \"\"\"Does one thing after the other, each in %(true_ms)s ms, while nobody waits for it.\"\"\"

    def __init__(self):
        self.free_at = 0.0

    def start(self):
        self.free_at = max(time.perf_counter(), self.free_at) + %(true_ms)s / 1000

    def wait(self):
        while (left := self.free_at - time.perf_counter()) > 0:
            if left > 0.002:
                time.sleep(left - 0.002)


class Session(driver.Session):
    device = Device()

    def inference(self):
        self.device.start()
        return self.input.copy()

    def forward(self):
        return self.inference(), None

    def backward(self, kept):
        self.device.start()
        return kept[0], self.cotangent.copy()

    def train(self):
        outputs = self.forward()
        return outputs[0], self.backward(outputs)

    def synchronise(self, outputs):
        %(synchronise)s

    def answer(self, spikes, gradients):
        spikes, kept = self.network.forward(spikes)
        if gradients is not None:
            gradients = self.network.backward(kept, gradients[1])
        return super().answer(spikes, gradients)


class Backend(driver.Backend):
    def session(self, *build):
        return Session(*build)
"""
)
"""Every pass returns at once, as on an accelerator, and its work ends TRUE_MS later; train takes twice TRUE_MS.

The answer is computed when it is read: a pass contains only the device's own time.
"""


def passes_ms(folder: Path, synchronise: str, **changes: Any) -> dict[str, list[float]]:
    """Milliseconds of a pass in every repetition, for every phase of the asynchronous fake."""
    source = ASYNCHRONOUS % {"true_ms": TRUE_MS, "synchronise": synchronise}
    reply = reply_of(ask(folder, source, request("time", CASE, repetitions=5, **changes)))
    assert reply.outcome == EXACT
    assert set(reply.phases) == set(PHASES)
    return {
        name: [duration_ns / phase["passes"] / MS for duration_ns in phase["repetitions_ns"]]
        for name, phase in reply.phases.items()
    }


def timed_in_full(by_phase: dict[str, list[float]]) -> bool:
    """Whether every phase's fastest repetition takes its true time within 2 %."""
    true = {"inference": TRUE_MS, "forward": TRUE_MS, "backward": TRUE_MS, "train": 2 * TRUE_MS}
    return all(0.98 * true[name] < min(passes) < 1.02 * true[name] for name, passes in by_phase.items())


@pytest.mark.parametrize("min_repetition_ns", [1, 50 * MS], ids=["one pass", "passes in a row"])
def test_asynchronous_work_is_timed_in_full(tmp_path: Path, min_repetition_ns: int) -> None:
    by_phase = passes_ms(tmp_path, "self.device.wait()", min_repetition_ns=min_repetition_ns)
    assert timed_in_full(by_phase), by_phase


def test_without_synchronisation_a_pass_is_faster_than_its_floor(tmp_path: Path) -> None:
    """A product of N = 256 takes a hundred times as long as the start of a pass, and the fake waits for no pass."""
    source = ASYNCHRONOUS % {"true_ms": TRUE_MS, "synchronise": "pass"}
    brief = request("time", CASE.with_(neurons=256), repetitions=5, max_phase_ns=10 * MS)
    outcome = reply_of(ask(tmp_path, source, brief)).outcome
    assert outcome.kind == "below-floor"
    assert all(f"a pass of {name} took" in outcome.reason for name in PHASES), outcome


def test_device_is_kept_busy_before_the_warm_up() -> None:
    timing, _ = Bench(first_ns=5000).measure(replace(BUDGET, busy_ns=950))
    assert (timing.busy_passes, timing.first_call_ns, timing.warmup_ns) == (10, 5000, [100, 100])
    assert timing.repetitions_ns == [100] * 4
    assert Bench().measure()[0].busy_passes == 0


def test_only_a_gpu_is_kept_busy(tmp_path: Path) -> None:
    cuda = altered_device("cuda")
    busy = reply_of(ask(tmp_path, cuda, request("time", CASE.with_(device="cuda"))))
    assert all(phase["busy_passes"] > 1 for phase in busy.phases.values()), busy.outcome
    assert all(len(phase["fresh_ns"]) >= 2 and phase["drawn_ns"] for phase in busy.phases.values())
    idle = reply_of(ask(tmp_path, CORRECT, request("time")))
    assert all(phase["busy_passes"] == 0 for phase in idle.phases.values())


def altered_device(device: str) -> str:
    """The correct fake, with its own backend for this device."""
    return (
        CORRECT
        + OWN.format(methods="    pass")
        + f"""

    def __init__(self, case):
        assert case.device == {device!r}
        super().__init__(replace(case, device="cpu"))
"""
    )
