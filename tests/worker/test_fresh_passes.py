"""Tests of passes on new content, on a fake clock that only the work moves, and of what follows if they are slower."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from snnbench.proof.fresh import DRAWN, HALF
from snnbench.worker import timing as clockwork
from snnbench.worker.timed_phase import TimedPhase
from snnbench.worker.timing import (
    Repetition,
    Timing,
    contest,
    measure,
    run_as_reported,
    run_drawn,
    run_ordered,
    run_repeated,
)
from tests.worker.test_timing import BUDGET, MS, Bench

PASS = ["wait", "clock", "run", "wait", "clock"]


@pytest.mark.parametrize("repetitions", [1, 2, 4, 6])
def test_single_pass_repetitions_use_new_content(repetitions: int) -> None:
    """The content is put in place outside the clock."""
    bench = Bench(pass_ns=10 * MS)
    timing, outputs = bench.measure(replace(BUDGET, repetitions=repetitions))
    assert timing.repetitions_ns == [10 * MS] * repetitions and outputs is None
    contents = ["ordered", "drawn 1", "drawn 1", "drawn 1", "ordered", "ordered"][:repetitions]
    counts = len(timing.fresh_ns), len(timing.drawn_ns)
    assert counts == (contents.count("ordered"), contents.count("drawn 1"))
    each = ["settled", "loaded", *PASS, "kept", "compared"]
    assert bench.events[-10 * repetitions :] == [event for content in contents for event in (content, *each)]
    assert [output[1] for output in bench.answers] == [*range(4, 4 + repetitions)], "each answer is kept"


def test_new_content_follows_repetitions_of_several_passes() -> None:
    bench = Bench(pass_ns=6 * MS)
    timing, outputs = bench.measure(replace(BUDGET, min_repetition_ns=10 * MS))
    assert (timing.passes, timing.fresh_ns, bench.answers) == (2, [], []) and outputs is not None
    before = len(bench.events)
    for _ in range(2):
        run_ordered(bench.phase(), timing, bench.renewal, bench.clock)
    assert bench.events[before:] == ["ordered", "settled", "loaded", *PASS, "kept", "compared"] * 2
    before = len(bench.events)
    series = run_drawn(bench.phase(), timing, bench.renewal, 3, bench.clock)
    assert bench.events[before:] == ["drawn 3", "settled", *["loaded", *PASS, "kept"] * 3, "compared"], "in a row"
    assert [each.outputs for each in series] == [None] * 3, "they hold no memory while the next pass runs"
    assert (timing.fresh_ns, timing.drawn_ns) == ([6 * MS] * 2, [6 * MS] * 3)
    before = len(bench.events)
    series = run_repeated(bench.phase(), timing, bench.renewal, 3, bench.clock)
    assert [each.outputs for each in series] == [None] * 3
    assert bench.events[before:] == ["settled", *["reloaded", *PASS] * 3], "in the same way, on content 0"
    assert timing.repeated_ns == [6 * MS] * 3
    assert timing.repetitions_ns == [12 * MS] * 4, "the repetitions stay unchanged"


@pytest.mark.parametrize(("pass_ns", "passes"), [(10 * MS, 1), (4 * MS, 3)])
def test_further_repetition_is_as_those_before(pass_ns: int, passes: int) -> None:
    bench = Bench(pass_ns=pass_ns)
    timing, _ = bench.measure(replace(BUDGET, min_repetition_ns=10 * MS))
    bench.events.clear()
    assert run_as_reported(bench.phase(), timing, bench.renewal, bench.clock).wall_ns == passes * pass_ns
    assert timing.repeated_ns == [passes * pass_ns]
    on_new_content = ["ordered", "settled", "loaded", *PASS, "kept", "compared"]
    in_a_row = ["reloaded", "settled", *PASS, "wait", "clock", *["run"] * 3, "wait", "clock"]
    assert bench.events == (on_new_content if passes == 1 else in_a_row)


def test_short_pass_runs_once_more_before_new_content() -> None:
    bench = Bench(pass_ns=5 * MS - 1)
    timing, _ = bench.measure(replace(BUDGET, repetitions=2))
    first = ["ordered", "settled", *PASS, "loaded", *PASS, "kept", "compared"]
    assert bench.events[-30:] == [*first, *["drawn 1", *first[1:]]]
    assert len(timing.repetitions_ns) == 2
    longer = Bench(pass_ns=5 * MS)
    longer.measure(replace(BUDGET, repetitions=2))
    assert longer.events.count("run") == bench.events.count("run") - 2


@pytest.mark.parametrize("run", [run_drawn, run_repeated])
def test_shortest_repetition_says_that_a_pass_is_short(run: Any) -> None:
    bench = Bench(pass_ns=10 * MS)
    timing, _ = bench.measure()
    timing.repetitions_ns, before = [4 * MS, 40 * MS], bench.runs
    run(bench.phase(), timing, bench.renewal, 3, bench.clock)
    assert bench.runs - before == 1 + 3


def test_what_a_preparation_must_not_know_arrives_after_it() -> None:
    bench = Bench(pass_ns=10 * MS)
    phase = replace(bench.phase(prepared=True), arrive=lambda: bench.events.append("arrived"))
    measure(phase, replace(BUDGET, repetitions=1), bench.renewal, bench.clock)
    assert bench.events[-10:] == ["loaded", "prepare", "arrived", *PASS, "kept", "compared"]


def test_compilations_for_new_content_are_not_counted() -> None:
    """Compilations of a pass on it are counted."""
    bench = Bench(pass_ns=10 * MS)

    def renew(drawn: int) -> None:
        bench.compiled += 1

    timing = measure(bench.phase(), BUDGET, replace(bench.renewal, prepare=renew), bench.clock)[0]
    assert timing.compilations == 0

    def run(prepared: Any) -> Any:
        bench.compiled += 1
        return bench.run(prepared)

    run_drawn(replace(bench.phase(), run=run), timing, bench.renewal, 2, bench.clock)
    assert timing.compilations == 2


def test_contested_time_is_that_of_drawn_passes() -> None:
    timing = Timing(passes=5, repetitions_ns=[10], device_ns=[9], instructions=[100])
    contest(timing, [Repetition(7, 6, 50, None), Repetition(8, 7, 51, None)], 1)
    assert (timing.passes, timing.repetitions_ns, timing.device_ns, timing.instructions) == (
        1,
        [7, 8],
        [6, 7],
        [50, 51],
    )
    contest(timing, [Repetition(9, 8, 52, None)], 2)
    assert (timing.passes, timing.repetitions_ns) == (2, [9])
    assert (timing.contested_ns, timing.contested_passes) == ([10], 5), "the first"


@pytest.mark.parametrize(
    ("passes", "drawn_ms", "again_ms", "series_of_pairs", "ending"),
    [
        (2, {1: 12.0}, 0, None, "reported"),  # a fifth and 0.1 ms are allowed
        (2, {1: 13.0, 2: 12.0}, 0, None, "reported"),  # in a row they are as fast
        (2, {1: 13.0, 2: [13.0] * 5 + [12.0]}, 10.0, 2, "reported"),  # the machine was slow for a while
        (2, {1: 13.0, 2: 13.0}, 10.0, 2, "contested"),
        (1, {1: 13.0}, 10.0, 1, "contested"),
        (2, {1: 20.0, 2: 20.0}, 10.0, 2, "kept"),
        (1, {1: 20.0}, 10.0, 1, "kept"),
        (1, {1: 20.0}, 20.0, 1, "contested"),  # it is slow on repeated content, too, since it is looked at
    ],
)
def test_drawn_passes_confirm_or_contest_or_convict(
    monkeypatch: pytest.MonkeyPatch,
    passes: int,
    drawn_ms: dict[int, Any],
    again_ms: float,
    series_of_pairs: int | None,
    ending: str,
) -> None:
    """The reported time of a pass is 10 ms."""
    phase = TimedPhase.__new__(TimedPhase)
    phase.name, phase._on_cpu, phase._drawn_ns = "train", True, []
    phase._phase = phase._renewal = None
    phase._timing = Timing(passes=passes, repetitions_ns=[10 * passes * MS] * 7)
    runs: list[int] = []

    def run_drawn(phase: Any, timing: Timing, renewal: Any, count: int) -> list[Repetition]:
        runs.append(count)
        each_ms = drawn_ms.get(count, drawn_ms[min(drawn_ms)])
        each_ms = each_ms[runs.count(count) - 1] if isinstance(each_ms, list) else each_ms
        return [Repetition(round(each_ms * MS), None, None, None)] * count

    monkeypatch.setattr(clockwork, "synchronisation_ns", lambda *_: 0)
    monkeypatch.setattr(clockwork, "run_drawn", run_drawn)
    again = Repetition(round(again_ms * MS), None, None, None)
    monkeypatch.setattr(clockwork, "run_repeated", lambda phase, timing, renewal, series: [again] * series)
    monkeypatch.setattr(clockwork, "run_as_reported", lambda *_: again)
    reason = phase.not_the_work()
    assert bool(reason) is (ending == "kept") and bool(phase._timing.contested_ns) is (ending == "contested")
    assert runs[:DRAWN] == [1] * DRAWN
    if ending == "kept":
        assert reason is not None and "takes 2 times as long on content drawn anew" in reason
        assert len(runs) == DRAWN * (1 + (passes > 1)) + HALF
    if ending == "contested":
        assert phase._timing.passes == 1 and set(phase._timing.repetitions_ns) == {round(drawn_ms[1] * MS)}
    if series_of_pairs:
        assert runs[-1] == series_of_pairs


@pytest.mark.parametrize(("repetitions", "passes", "more"), [(3, 1, 0), (4, 1, 1), (3, 2, 1)])
def test_repetitions_on_drawn_content_need_no_further_pass(
    monkeypatch: pytest.MonkeyPatch, repetitions: int, passes: int, more: int
) -> None:
    """If most of them are on drawn content, so is their median, or it is longer."""
    phase = TimedPhase.__new__(TimedPhase)
    phase.name, phase._on_cpu, phase._drawn_ns = "train", True, [10.0 * MS] * 2
    phase._phase = phase._renewal = None
    phase._timing = Timing(passes=passes, repetitions_ns=[10 * passes * MS] * repetitions)
    runs: list[int] = []

    def run_drawn(phase: Any, timing: Timing, renewal: Any, count: int) -> list[Repetition]:
        runs.append(count)
        return [Repetition(10 * MS, None, None, None)] * count

    monkeypatch.setattr(clockwork, "synchronisation_ns", lambda *_: 0)
    monkeypatch.setattr(clockwork, "run_drawn", run_drawn)
    assert phase.not_the_work() is None
    assert len(runs) == more


def test_time_below_the_floor_is_measured_again_between_looks_at_the_peaks(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(pass_ns=4 * MS)
    monkeypatch.setattr(clockwork, "run_as_reported", partial(run_as_reported, clock=bench.clock))
    phase = TimedPhase.__new__(TimedPhase)
    phase._phase, phase._renewal = bench.phase(), bench.renewal
    compared: list[Any] = []
    phase.proof = SimpleNamespace(keep_last=compared.append)  # type: ignore[assignment]
    phase._timing, _ = bench.measure(replace(BUDGET, min_repetition_ns=10 * MS))
    before, bench.pass_ns = phase._timing.repetitions_ns, 6 * MS
    bench.events.clear()
    phase.time_again(lambda: bench.events.append("looked"))
    assert phase._timing.repetitions_ns == phase._timing.repeated_ns == [18 * MS] * len(before)
    assert (phase._timing.contested_ns, phase._timing.contested_passes, phase._timing.passes) == (before, 3, 3)
    assert [event for event in bench.events if event in ("looked", "settled")] == ["looked", "settled"] * len(before)
    assert len(compared) == len(before) and None not in compared, "each answer is compared"
