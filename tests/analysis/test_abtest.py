"""Tests of A/B tests on recordings made by hand: looks, the word of each cell, and the rate of false words."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from snnbench.adapter.contender import Work
from snnbench.analysis.abtest import Rule, compare_sides, settled, taken, trials_needed, undecided
from snnbench.analysis.comparability import Incomparable
from snnbench.analysis.comparisons import Comparison
from snnbench.analysis.decision import Thresholds
from snnbench.analysis.difference import Difference
from snnbench.recording.reading import Recording
from snnbench.recording.record import Record, RecordingError
from tests.fakes import CASE
from tests.recordings import failed, recording, skipped, timed, weighed

QUIET = (1.00, 1.01, 0.99, 1.02, 0.98, 1.00, 1.01, 0.99, 1.02, 0.98, 1.00, 1.01)


def side(name: str, train_ms: Iterable[float], **fields: Any) -> list[Record]:
    """A trial for each of these times, of one side."""
    return [timed("a", number, train=ms, side=name, **fields) for number, ms in enumerate(train_ms)]


def of_sides(*records: Record, most: int = 12, stops_early: bool = True) -> Recording:
    """A recording of two sides."""
    named = [replace(one, cell=f"{one.cell}{one.side}") for one in records]
    whole = recording(*named, trials=most)
    sides = {"base": ["lib==1"], "new": []}
    return replace(whole, config=whole.config | {"sides": sides, "stops_early": stops_early})


def both(new: Sequence[float], base: Sequence[float] = QUIET, **fields: Any) -> list[Record]:
    """Trials of both sides."""
    return side("base", base[: len(new)], **fields) + side("new", new, **fields)


def only(whole: Recording, **more: Any) -> Comparison:
    """The only cell of a test."""
    (cell,) = compare_sides(whole, Rule(**more)).each
    return cell


@pytest.mark.parametrize(
    ("factor", "word"), [(1.2, "slower"), (1 / 1.2, "faster"), (1.0, "same"), (1.045, "inconclusive")]
)
def test_word_and_ratio_are_new_over_base(factor: float, word: str) -> None:
    noise = (1.00, 0.99, 1.01, 1.00, 1.01, 0.99, 1.00, 0.99, 1.01, 1.00, 1.01, 0.99)
    cell = only(of_sides(*both([factor * ms * by for ms, by in zip(QUIET, noise, strict=True)])))
    assert (cell.contender, cell.phase, cell.metric, cell.word) == ("a", "train", "time", word)
    assert cell.ratio == pytest.approx(factor, rel=0.01)


def test_repetitions_are_compared_with_their_neighbours() -> None:
    """The machine gets twice as slow in the middle of a phase; in every second trial, one repetition later for new.

    Then the median of base is a slow repetition, and that of new a fast one.
    """
    records = []
    for trial in range(12):
        for side, factor in (("base", 1.0), ("new", 1.1)):
            record = timed("a", trial, train=1.0, side=side)
            fast = 3 + trial % 2 * (side == "new")
            step = [1.0] * fast + [2.0] * (7 - fast)
            noise = 1.001 if (trial + (side == "new")) % 2 else 0.999
            record.phases["train"]["repetitions_ns"] = [round(2e6 * factor * noise * slow) for slow in step]
            records.append(record)
    cell = only(of_sides(*records, stops_early=False))
    assert cell.word == "slower" and cell.ratio == pytest.approx(1.1, rel=0.003)


def test_comparison_is_titled_by_the_changes_of_its_sides() -> None:
    comparison = compare_sides(of_sides(*both(QUIET)))
    assert (comparison.base, comparison.new) == ("lib==1", "as pinned")


def test_recording_without_sides_is_refused() -> None:
    with pytest.raises(RecordingError, match="holds no two sides; name two recordings"):
        compare_sides(recording(timed("a", train=1.0)))


def test_first_look_with_a_word_decides() -> None:
    """Later trials, made for another work, change no word."""
    slow = [1.3 * ms * (1.001 if number % 2 else 0.999) for number, ms in enumerate(QUIET)]
    early = [cell.word for cell in settled(of_sides(*both(slow[:4])), Rule())]
    assert early == ["slower"]
    late = slow[:4] + [ms / 1.3 for ms in slow[4:]]
    assert [cell.word for cell in settled(of_sides(*both(late)), Rule())] == ["slower"]


def test_work_is_open_until_every_time_has_a_word() -> None:
    whole = of_sides(*both((1.0, 1.3, 0.8, 1.1)))
    assert undecided(whole, Rule()) == {Work(CASE, "a", "default")}
    slow = [1.3 * ms * (1.001 if number % 2 else 0.999) for number, ms in enumerate(QUIET[:4])]
    assert undecided(of_sides(*both(slow)), Rule()) == set()


def test_look_needs_its_trials() -> None:
    assert [look.trials for look in taken(of_sides(*both(QUIET[:8])), 0.05)] == [4, 6, 8]
    assert [look.trials for look in taken(of_sides(*both(QUIET[:3])), 0.05)] == [4]
    assert [look.trials for look in taken(of_sides(*both(QUIET), stops_early=False), 0.05)] == [12]


def test_look_judges_the_first_trials_only() -> None:
    """A run that continues repeats its earlier looks, and must get the same answers."""
    noise = [ms * (1.001 if number % 2 else 0.999) for number, ms in enumerate(QUIET)]
    unclear = [1.0, 1.3, 0.8, 1.1, *noise[4:]]
    whole = of_sides(*both(unclear))
    assert undecided(whole, Rule(), 4) == {Work(CASE, "a", "default")}
    assert [look.trials for look in taken(whole, 0.05, 6)] == [4, 6]


def test_unselected_phases_keep_no_work_open() -> None:
    noise = [ms * (1.001 if number % 2 else 0.999) for number, ms in enumerate(QUIET[:4])]
    records = [
        timed("a", number, train=ms, forward=other, side=name)
        for name, times in (("base", QUIET), ("new", noise))
        for number, (ms, other) in enumerate(zip(times, (1.0, 1.5, 0.6, 1.1), strict=False))
    ]
    odd = [replace(one, phases=one.phases | {"forward": one.phases["train"]}) for one in records if one.side == "base"]
    whole = of_sides(*odd, *(one for one in records if one.side == "new"))
    assert undecided(whole, Rule()) == {Work(CASE, "a", "default")}
    assert undecided(whole, Rule(phases=("train",))) == set()


def test_skipped_work_is_settled_with_its_reason() -> None:
    skips = [skipped("a", "unsupported", "no such reset", side=name) for name in ("base", "new")]
    assert undecided(of_sides(*skips), Rule()) == set()
    with pytest.raises(Incomparable, match="nothing to compare: unsupported: no such reset"):
        compare_sides(of_sides(*skips))


def test_recording_is_decided_by_its_own_thresholds() -> None:
    slow = [1.04 * ms * (1.001 if number % 2 else 0.999) for number, ms in enumerate(QUIET)]
    whole = of_sides(*both(slow))
    assert only(whole).word == "same" and compare_sides(whole).each[0].word == "same"
    decides = {"time_floor": 0.01, "alpha": 0.1, "phases": ["train"], "allowed": ["contended"]}
    stricter = replace(whole, config=whole.config | {"decides": decides})
    comparison = compare_sides(stricter)
    assert comparison.each[0].word == "slower"
    assert (comparison.thresholds, len(comparison.allowed)) == (Thresholds(time_floor=0.01, alpha=0.1), 1)


def test_case_of_one_side_is_missing_in_the_other() -> None:
    larger = CASE.with_(neurons=96)
    records = [*both(QUIET[:4]), *side("base", QUIET[:4], case=larger)]
    words = {(cell.case, cell.phase): (cell.word, cell.reason) for cell in settled(of_sides(*records), Rule())}
    assert words[CASE, "train"][0] == "same"
    assert words[larger, "train"] == ("missing", "in new: not there")


def test_failed_side_settles_the_work() -> None:
    crashed = [failed("a", "crash", "died", trial=number, side="new") for number in range(4)]
    whole = of_sides(*side("base", QUIET[:4]), *crashed)
    assert [(cell.word, cell.reason) for cell in settled(whole, Rule())] == [("failed", "in new: failed: crash: died")]
    assert undecided(whole, Rule()) == set()


def test_incorrect_trial_fails_the_whole_side() -> None:
    wrong = failed("a", "incorrect", "spikes differ", trial=4, side="new")
    (cell,) = settled(of_sides(*both(QUIET[:4]), wrong), Rule())
    assert cell.word == "failed" and "incorrect" in cell.reason


def test_memory_peaks_are_compared_too() -> None:
    weights = [weighed("a", device_mib=mib, side=name) for name, mib in (("base", 4), ("new", 5))]
    noise = [ms * (1.001 if number % 2 else 0.999) for number, ms in enumerate(QUIET)]
    words = {cell.metric: cell.word for cell in settled(of_sides(*both(noise), *weights), Rule())}
    assert words == {"time": "same", "device_peak": "slower", "host_peak": "inconclusive"}


@pytest.mark.parametrize(
    ("low", "high", "count", "needed"),
    [
        (0.97, 1.04, 12, 13),  # an interval within the floor: one more
        (1.0 / 1.1, 1.1, 10, 39),  # log 1.1 must shrink to log 1.05
        (1.08 / 1.2, 1.08 * 1.2, 10, 57),  # log 1.2 must shrink to log 1.08
        (1.02 / 1.1, 1.02 * 1.1, 10, 109),  # log 1.1 must shrink to log 1.05 - log 1.02
        (1 / 1.08 / 1.2, 1 / 1.08 * 1.2, 10, 57),  # the same downwards
        (1.04 / 1.5, 1.04 * 1.5, 10, None),
    ],
)
def test_trials_needed_for_a_word(low: float, high: float, count: int, needed: int | None) -> None:
    assert trials_needed(Difference(1.0, low, high, 0.2), count, 0.05) == needed


def test_inconclusive_cell_gives_the_trials_needed() -> None:
    cell = only(of_sides(*both([1.0, 1.2, 0.9, 1.1, 0.95, 1.12, 0.9, 1.15, 0.92, 1.1, 1.0, 0.98])))
    assert cell.word == "inconclusive"
    assert "trials a side would tell" in cell.reason and "run more trials" not in cell.reason
