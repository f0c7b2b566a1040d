"""Tests of the timing of fresh and of repeated passes, on a fake clock that only the work moves."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from snnbench.proof.fresh import HALF
from snnbench.worker import timing as clockwork
from snnbench.worker.timed_phase import TimedPhase
from snnbench.worker.timing import (
    Renewal,
    Timing,
    measure,
    run_fresh,
    run_pair,
    run_repeated,
    run_repeated_as_fresh,
)
from tests.worker.test_timing import BUDGET, MS, Bench


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


@pytest.mark.parametrize(("prepared_ns", "pairs"), [(11 * MS, 0), (3 * MS, HALF)])
def test_pairs_run_only_if_prepared_passes_are_faster(
    monkeypatch: pytest.MonkeyPatch, prepared_ns: int, pairs: int
) -> None:
    """Fresh passes of 13 ms beside passes in a row of 10 ms: the preparation explains that, or a kept answer does."""
    phase = TimedPhase.__new__(TimedPhase)
    phase.name, phase.proof = "train", SimpleNamespace(reading_ns=[], looks=0)
    phase._phase = phase._renewal = None
    phase._timing = Timing(passes=2, repetitions_ns=[20 * MS] * 3, fresh_ns=[13 * MS] * 5, drawn_ns=[13 * MS] * 3)
    monkeypatch.setattr(clockwork, "synchronisation_ns", lambda *_: 0)
    monkeypatch.setattr(clockwork, "run_fresh", lambda *_: None)
    monkeypatch.setattr(clockwork, "run_repeated_as_fresh", lambda *_: phase._timing.repeated_ns.append(prepared_ns))
    run: list[int] = []
    monkeypatch.setattr(clockwork, "run_pair", lambda *_: (run.append(1), (13 * MS, prepared_ns))[1])
    reason = phase.not_the_work()
    assert len(run) == pairs and bool(reason) is (pairs > 0)


@pytest.mark.parametrize("pass_ns", [5 * MS - 1, 5 * MS])
def test_both_passes_of_a_pair_start_in_the_same_state(pass_ns: int) -> None:
    bench = Bench(pass_ns=pass_ns)
    timing, _ = bench.measure()
    bench.events.clear()
    run_pair(bench.phase(), timing, bench.renewal, False, 1, bench.clock)
    events = "|".join(bench.events).replace("|clock", "").replace("wait|run|wait", "pass")
    between = "pass|" if pass_ns < 5 * MS else ""
    assert events == f"ordered|settled|{between}loaded|pass|kept|settled|{between}touched|pass"


def test_repeated_pass_is_prepared_as_a_fresh_pass() -> None:
    bench = Bench(pass_ns=5 * MS - 1)
    timing, _ = bench.measure()
    bench.events.clear()
    run_repeated_as_fresh(bench.phase(), timing, bench.renewal, 2, bench.clock)
    events = "|".join(bench.events).replace("|clock", "").replace("wait|run|wait", "pass")
    assert events == "|".join(["settled|pass|touched|pass"] * 2)
    assert timing.repeated_ns == [5 * MS - 1] * 2


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
