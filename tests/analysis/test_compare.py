"""Tests of comparisons of recordings made by hand: a word for every cell, and the ratio if the work is the same."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from snnbench.analysis.bootstrap import Interval
from snnbench.analysis.comparability import Incomparable
from snnbench.analysis.compare import compare
from snnbench.analysis.comparisons import Comparison
from snnbench.analysis.decision import Thresholds
from snnbench.cases.outcome import Outcome
from snnbench.recording.reading import read
from snnbench.recording.record import Record
from tests.fakes import CASE
from tests.recordings import deviating, failed, recording, skipped, timed, trials, weighed
from tests.shipped import OLDER, RESULTS

LARGE = CASE.with_(neurons=96)
BASE = (0.98, 0.99, 1.0, 1.01, 1.02)


def cells(base: list[Record], new: list[Record], **more: Any) -> list[Comparison]:
    """All cells of a comparison."""
    return compare(recording(*base, name="old"), recording(*new, name="new"), Thresholds(), **more).each


def only(base: list[Record], new: list[Record]) -> Comparison:
    """The only cell of a comparison."""
    (cell,) = cells(base, new)
    return cell


@pytest.mark.parametrize(
    ("factor", "word"), [(1.2, "slower"), (1 / 1.2, "faster"), (1.0, "same"), (1.01, "same"), (1.04, "inconclusive")]
)
def test_word_and_ratio_are_new_over_base(factor: float, word: str) -> None:
    cell = only(trials("a", BASE), trials("a", [factor * ms for ms in BASE]))
    assert (cell.contender, cell.phase, cell.metric, cell.word) == ("a", "train", "time", word)
    assert cell.ratio == pytest.approx(factor)
    assert cell.difference is not None and cell.difference.p is not None and cell.q is not None


def test_ratio_is_of_the_medians() -> None:
    cell = only(trials("a", (1.0, 2.0, 9.0)), trials("a", (3.0, 3.0, 1.0)))
    assert (cell.ratio, cell.word) == (1.5, "inconclusive")


def test_one_outlier_makes_no_change() -> None:
    assert only(trials("a", BASE), trials("a", [*BASE[:4], 40.0])).word == "inconclusive"


def test_every_time_and_peak_is_a_cell() -> None:
    records = [
        timed("a", train=1.0, forward=1.0),
        weighed("a", device_mib=4),
        timed("b", train=1.0),
        timed("a", case=LARGE, train=1.0),
    ]
    compared = cells(records, records)
    assert {(cell.case, cell.contender, cell.phase, cell.metric) for cell in compared} == {
        (CASE, "a", "train", "time"),
        (CASE, "a", "forward", "time"),
        (CASE, "a", "train", "host_peak"),
        (CASE, "a", "train", "device_peak"),
        (CASE, "b", "train", "time"),
        (LARGE, "a", "train", "time"),
    }
    assert {cell.ratio for cell in compared} == {1.0}


def test_phases_select_times_but_failures_are_always_listed() -> None:
    records = [timed("a", train=1.0, forward=1.0), failed("b", "crash", "x")]
    compared = cells(records, records, phases=["forward"])
    assert {(cell.contender, cell.phase) for cell in compared} == {("a", "forward"), ("b", "")}


@pytest.mark.parametrize(
    ("base", "new", "word", "reason"),
    [
        ([timed("a", train=1.0)], [], "missing", "in new: not there"),
        ([], [timed("a", train=1.0)], "missing", "in base: not there"),
        (
            [timed("a", train=1.0)],
            [skipped("a", "unsupported", "no such reset")],
            "missing",
            "in new: skipped: unsupported: no such reset",
        ),
        ([timed("a", train=1.0)], [failed("a", "crash", "x")], "failed", "in new: failed: crash: x"),
        ([failed("a", "crash", "x")], [timed("a", train=1.0)], "failed", "in base: failed: crash: x"),
        (
            [timed("a", train=1.0)],
            [timed("a", train=1.0), failed("a", "incorrect", "x", trial=1)],
            "failed",
            "in new: failed: incorrect: x",
        ),
        (
            [failed("a", "crash", "x")],
            [failed("a", "crash", "y")],
            "failed",
            "in base: failed: crash: x; in new: failed: crash: y",
        ),
        (
            [timed("a", train=1.0)],
            [deviating("a", train=1.0)],
            "incomparable",
            "deviates from the case's work in new only",
        ),
        (
            [deviating("a", train=1.0)],
            [timed("a", train=1.0)],
            "incomparable",
            "deviates from the case's work in base only",
        ),
    ],
)
def test_cell_without_ratio_has_word_and_reason(base: list[Record], new: list[Record], word: str, reason: str) -> None:
    other = [timed("other", train=1.0)]
    (cell,) = (cell for cell in cells([*other, *base], [*other, *new]) if cell.contender == "a")
    assert (cell.ratio, cell.word, cell.reason) == (None, word, reason)


def test_failed_trial_is_listed_beside_the_others() -> None:
    compared = cells(trials("a", BASE), [*trials("a", BASE[:4]), failed("a", "crash", "died", trial=4)])
    assert [(cell.word, cell.phase, cell.reason) for cell in compared] == [
        ("failed", "", "in new: failed: crash: died"),
        ("same", "train", ""),
    ]


def test_case_of_one_recording_only_is_missing() -> None:
    compared = cells([timed("a", train=1.0), timed("a", case=LARGE, train=1.0)], [timed("a", train=1.0)])
    assert {(cell.case, cell.word) for cell in compared} == {(CASE, "inconclusive"), (LARGE, "missing")}


def test_deviating_contender_is_compared_with_itself() -> None:
    assert only([deviating("a", train=1.0)], [deviating("a", train=3.0)]).ratio == 3.0


@pytest.mark.parametrize("phases", [[], ["inference"]])
def test_recordings_without_times_are_refused(phases: list[str]) -> None:
    """An empty comparison must not pass for an unchanged one."""
    both = [skipped("a", "unsupported", "no such reset")] if not phases else [timed("a", train=1.0)]
    with pytest.raises(Incomparable, match="neither old nor new has a time or peak"):
        cells(both, both, phases=phases)


def test_one_trial_decides_allocator_peaks_only() -> None:
    """An allocator's count repeats exactly; a time or a peak of the host does not."""
    base = [timed("a", train=1.0), weighed("a", host_mib=6, device_mib=4)]
    new = [timed("a", train=9.0), weighed("a", host_mib=9, device_mib=5)]
    words = {cell.metric: (cell.word, cell.ratio, cell.reason) for cell in cells(base, new)}
    assert words == {
        "time": ("inconclusive", 9.0, "one trial in base and new"),
        "host_peak": ("inconclusive", 1.5, "one trial in base and new"),
        "device_peak": ("slower", 1.25, ""),
    }


@pytest.mark.parametrize(("mib", "word"), [(600, "same"), (606, "same"), (607, "slower"), (593, "faster")])
def test_constant_peaks_differ_beyond_the_floor(mib: int, word: str) -> None:
    base, new = ([weighed("a", host_mib=one, trial=trial) for trial in range(2)] for one in (600, mib))
    cell = only(base, new)
    assert (cell.word, cell.q) == (word, None)
    assert cell.difference is not None and cell.difference.certain


def test_peak_of_0_has_no_ratio() -> None:
    cell = only([weighed("a", host_mib=0)], [weighed("a", host_mib=1)])
    assert (cell.word, cell.ratio, cell.reason) == ("inconclusive", None, "a value of 0")


def test_cells_are_sorted_by_word_and_size() -> None:
    factors = {"a": 1.0, "b": 1.2, "c": 1.5, "d": 0.5}
    base = [record for name in factors for record in trials(name, BASE)]
    new = [
        replace(record, version="2.0")
        for name, factor in factors.items()
        for record in trials(name, [factor * ms for ms in BASE])
    ]
    new += [failed("e", "crash", "x")]
    comparison = compare(recording(*base), recording(*new), Thresholds())
    assert [(cell.contender, cell.word) for cell in comparison.each] == [
        ("c", "slower"),
        ("b", "slower"),
        ("d", "faster"),
        ("e", "failed"),
        ("a", "same"),
    ]
    assert comparison.counts == {
        **{"slower": 2, "faster": 1, "failed": 1, "missing": 0, "incomparable": 0, "inconclusive": 0, "same": 1}
    }


def test_all_cells_are_one_family_of_tests() -> None:
    """A p of 0.03 is a change in a command of one cell, but no change among twenty unchanged cells."""
    odd = (1.05, 1.06, 1.1, 1.14, 1.15)
    alone = only(trials("a", (1, 1.03, 1.0, 1.06, 1.09)), trials("a", odd))
    quiet = [record for number in range(20) for record in trials(f"q{number}", (1, 1.03, 1.0, 1.06, 1.09))]
    (among,) = (
        cell
        for cell in cells([*quiet, *trials("a", (1, 1.03, 1.0, 1.06, 1.09))], [*quiet, *trials("a", odd)])
        if cell.contender == "a"
    )
    assert alone.difference is not None and among.difference is not None
    assert alone.q == alone.difference.p and (alone.q or 1) <= 0.05 and alone.word == "slower"
    assert among.q == pytest.approx(21 * (among.difference.p or 0))


def test_explained_times_have_bootstrap_intervals() -> None:
    compared = cells([timed("a", train=1.0), weighed("a")], [timed("a", train=3.0), weighed("a")], explained=True)
    sides = {cell.metric: (cell.base, cell.new) for cell in compared}
    assert [side.interval if side else None for side in sides["host_peak"]] == [None, None]
    assert [side.interval if side else None for side in sides["time"]] == [Interval(1e6, 4.5e6), Interval(3e6, 13.5e6)]


@pytest.mark.parametrize("folder", sorted(path.parent for path in RESULTS.glob("*quick*/records.jsonl")), ids=str)
def test_shipped_recording_is_the_same_as_itself(folder: Path) -> None:
    real = read(folder)
    comparison = compare(real, real, Thresholds())
    assert comparison.changed == comparison.allowed == []
    assert not any(comparison.counts[word] for word in ("slower", "faster", "missing", "failed", "incomparable"))
    assert {cell.ratio for cell in comparison.each} == {1.0}


def _lines(folder: Path) -> list[str]:
    return (folder / "records.jsonl").read_text().splitlines()


def test_recordings_of_different_schemas_are_compared() -> None:
    first = read(RESULTS / "2026-11-21_quick_xeon-2-50ghz-2cpu")
    second = read(OLDER / "2026-11-21_quick_epyc-2cpu_4")
    schemas = {json.loads(line)["schema"] for one in (first, second) for line in _lines(one.folder)}
    assert schemas == {1, 3}
    counts = compare(first, second, Thresholds(), allowed=["machine"]).counts
    assert counts["faster"] and counts["missing"]


def test_different_deviations_are_incomparable() -> None:
    other = Outcome(status="measured", verdict="deviates", deviation="fires two steps late")
    base = [deviating("a", trial=n, train=ms) for n, ms in enumerate(BASE)]
    assert only(base, base).word == "same"
    cell = only(base, [replace(one, outcome=other) for one in base])
    assert cell.word == "incomparable"
    assert cell.reason == "deviates otherwise: fires a step late in base, fires two steps late in new"
