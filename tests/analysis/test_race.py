"""Tests of a race: who is surely slower, when it ends, and which cells it needs next."""

from typing import Any

import pytest

from snnbench.adapter.contender import Work
from snnbench.analysis import race
from snnbench.analysis.compare import compare
from snnbench.analysis.decision import Thresholds
from snnbench.analysis.rank import rank
from snnbench.plan.config import Protocol
from snnbench.recording.record import Record
from tests.fakes import CASE
from tests.recordings import deviating, failed, record, recording, timed

PROTOCOL = Protocol(
    phases=("inference", "train"),
    trials=12,
    memory_trials=1,
    warmup_passes=1,
    repetitions=3,
    min_repetition_ms=1.0,
    max_phase_seconds=1.0,
    timeout_seconds=9.0,
    seed=0,
    until="certain",
)
WORKS = [Work(CASE, name, "default") for name in "abc"]
QUIET = (1.0, 1.01, 0.99, 1.0, 1.01, 0.99, 1.0, 1.01, 0.99, 1.0, 1.01, 0.99)


def times(factor: float, count: int, noise: tuple[float, ...] = QUIET) -> list[float]:
    return [factor * one for one in noise[:count]]


def trials(name: str, *ms: float, **fields: Any) -> list[Record]:
    return [timed(name, trial, train=one, **fields) for trial, one in enumerate(ms)]


def due(*records: Record, protocol: Protocol = PROTOCOL) -> list[tuple[str, str, int, tuple[str, ...]]]:
    return [(cell.library, cell.measure, cell.trial, cell.phases) for cell in race.due(WORKS, records, protocol)]


@pytest.mark.parametrize(("factor", "is_slower"), [(0.99 * race.FACTOR, False), (1.01 * race.FACTOR, True)])
def test_one_trial_decides_beyond_a_factor_only(factor: float, is_slower: bool) -> None:
    present = race.standing({"a": [1.0], "b": [factor]})
    assert present and present.leader == "a" and ("b" in present.slower) is is_slower is present.is_certain


def test_trials_decide_by_their_own_spread() -> None:
    noise = (1.0, 0.7, 1.5, 0.9)
    quiet = race.standing({"a": times(1, 4), "b": times(1.3, 4, QUIET[::-1])})
    noisy = race.standing({"a": times(1, 4), "b": times(1.3, 4, noise)})
    assert quiet and quiet.slower["b"] > 1.05 and quiet.is_certain
    assert noisy and noisy.unknown == ("b",) and not noisy.is_certain


def test_drift_that_all_share_decides_nothing_and_hides_nothing() -> None:
    drift = (1.0, 1.8, 1.8, 1.0)
    present = race.standing({"a": times(1, 4, drift), "b": times(1.3, 4, drift)})
    assert present and present.is_certain and present.trials == 2


def test_contenders_that_are_as_fast_as_each_other_are_level() -> None:
    still = (1.0,) * 12
    present = race.standing({"a": times(1, 12, still), "b": times(1.001, 12, still)})
    assert present and present.level == ("b",) and present.running == ("a", "b") and present.is_certain


def test_contender_that_left_stays_slower_and_its_few_trials_are_enough() -> None:
    present = race.standing({"a": times(1, 4), "b": times(1.02, 4, QUIET[::-1]), "c": [9.0]})
    assert present and present.trials == 4 and present.slower.keys() == {"c"} and present.unknown == ("b",)


def test_round_that_was_cut_short_makes_nobody_certain_and_goes_on() -> None:
    present = race.standing({"a": times(1, 2), "b": [1.1], "c": [9.0]})
    assert present and (present.trials, present.unknown, present.is_certain) == (1, ("b",), False)
    cut = [*trials("a", 1.0, 1.0), *trials("b", 1.1), *trials("c", 9.0)]
    assert due(*cut) == [("b", "time", 1, ("train",))]


def test_only_contenders_whose_trials_all_did_the_work_take_part() -> None:
    records = [*trials("a", 2.0), deviating("b", train=0.1), *trials("c", 1.0), failed("c", "crash", "died", trial=1)]
    assert race.standings(records, "train")[CASE].running == ("a",)


def test_first_everyone_has_a_trial_of_the_headline() -> None:
    assert due() == [(name, "time", 0, ("train",)) for name in "abc"]
    assert due(*trials("a", 1.0), failed("b", "crash", "died")) == [("c", "time", 0, ("train",))]


def test_then_those_that_may_lead_go_on_and_the_leader_has_all_phases() -> None:
    first = [*trials("a", 1.0), *trials("b", 1.3), *trials("c", 9.0)]
    assert sorted(due(*first)) == [("a", "time", 1, ("train",)), ("b", "time", 1, ("train",))]
    later = [*trials("a", *times(1, 4)), *trials("b", *times(1.3, 4)), *trials("c", 9.0)]
    settled = [one for one in later if one.trial < 2]
    assert due(*settled) == [("a", "time", 2, ()), ("a", "memory", 0, ())]
    assert due(*settled, timed("a", 2, train=1.0, inference=0.3), record("a", "memory")) == []


def test_race_ends_after_the_most_trials() -> None:
    two = PROTOCOL.model_copy(update={"trials": 2})
    records = [*trials("a", 1.0, 1.1), *trials("b", 1.01, 1.0), *trials("c", 9.0)]
    assert {cell[0] for cell in due(*records, protocol=two)} == {"a", "b"}
    assert {cell[3] for cell in due(*records, protocol=two)} == {()}


def raced(*records: Record) -> Any:
    made = recording(*records)
    made.config["config"] = {"protocol": {"until": "certain", "phases": ["inference", "train"]}}
    made.config["baseline"] = "a"
    return made


def test_rank_has_the_leader_first_and_no_rank_for_the_others() -> None:
    records = [*trials("a", 1.0, 1.01), timed("a", 2, train=1.0, inference=0.3), *trials("b", 9.0)]
    headline, other = rank(raced(*records), "", Thresholds()).rankings
    assert [(one.contender, one.rank) for one in headline.entries] == [("a", 1), ("b", None)]
    assert "surely at least 3 times as long as the leader" in headline.entries[1].reason
    assert (other.phase, other.apart) == ("inference", [])


def test_compare_misses_nothing_that_a_race_did_not_need() -> None:
    old = [*trials("a", 1.0, 1.0), timed("a", 2, train=1.0, inference=0.3), *trials("b", 9.0)]
    new = [*trials("a", 9.0), *trials("b", 1.0, 1.0), timed("b", 2, train=1.0, inference=0.3)]
    words = {(one.contender, one.phase): one.word for one in compare(raced(*old), raced(*new), Thresholds()).each}
    assert words.keys() == {("a", "train"), ("b", "train")}
