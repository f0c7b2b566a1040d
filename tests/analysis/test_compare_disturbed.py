"""Tests of comparisons of disturbed recordings: contention, flags and noise leave a time without a firm word."""

import pytest

from snnbench.analysis.compare import compare
from snnbench.analysis.decision import Thresholds
from snnbench.recording.record import Record
from snnbench.report.text import change_table
from tests.analysis.test_compare import BASE, cells, only
from tests.recordings import recording, timed, trials, weighed


def test_flags_stand_beside_the_word() -> None:
    new = [timed("a", trial, train=ms, flags=["shared", "throttled"]) for trial, ms in enumerate(BASE)]
    cell = only(trials("a", BASE), new)
    assert (cell.word, cell.reason) == ("same", "shared and throttled in new")


def flagged(factor: float, *flags: str, first: int = 0) -> list[Record]:
    """Trials of a contender, `factor` times as long, with these flags from trial `first` on."""
    times = enumerate(factor * ms for ms in BASE)
    return [timed("a", trial, train=ms, flags=list(flags) if trial >= first else []) for trial, ms in times]


@pytest.mark.parametrize("factor", [1.0, 1.5, 0.5])
@pytest.mark.parametrize(
    ("old", "new", "where"),
    [((), ("contended",), "new"), (("contended",), (), "base"), (("contended",), ("contended",), "base and new")],
)
def test_contended_time_is_inconclusive(factor: float, old: tuple[str, ...], new: tuple[str, ...], where: str) -> None:
    cell = only(flagged(1.0, *old), flagged(factor, *new))
    assert (cell.word, cell.ratio) == ("inconclusive", pytest.approx(factor))
    assert cell.reason == f"contended in {where}: run again on a quieter machine, or --allow contended"


def test_one_contended_trial_is_enough() -> None:
    cell = only(flagged(1.0), flagged(1.5, "contended", "throttled", first=4))
    assert cell.word == "inconclusive"
    assert cell.reason.startswith("contended in new: run again") and cell.reason.endswith("; throttled in new")


def test_contended_time_takes_no_part_in_q() -> None:
    """Its p would be far below all others, and so lower the q of one of them."""
    base = [*flagged(1.0), *trials("b", BASE)]
    new = [*flagged(1.5, "contended"), *trials("b", [1.5 * ms for ms in BASE])]
    qs = {cell.contender: (cell.q, cell.difference and cell.difference.p) for cell in cells(base, new)}
    assert qs["a"][0] is None and qs["a"][1] is not None
    assert qs["b"][0] == qs["b"][1], "one test, which is adjusted for no other"


def test_contention_does_not_affect_peaks() -> None:
    base = [*flagged(1.0), *(weighed("a", host_mib=6, trial=trial) for trial in range(2))]
    new = [*flagged(1.5, "contended"), *(weighed("a", host_mib=9, trial=trial) for trial in range(2))]
    assert {cell.metric: cell.word for cell in cells(base, new)} == {"time": "inconclusive", "host_peak": "slower"}


def test_allowed_contention_is_stated_in_every_format() -> None:
    old, new = recording(*flagged(1.0), name="old"), recording(*flagged(1.5, "contended"), name="new")
    comparison = compare(old, new, Thresholds(), allowed=["contended"])
    assert [(cell.word, cell.reason) for cell in comparison.each] == [("slower", "contended in new")]
    for write in change_table.FORMATS.values():
        assert "contended: times that others disturbed have words, too" in write(comparison, [])
    assert any("contended: times" in line for line in change_table.report(comparison).notes)
    assert compare(old, new, Thresholds()).allowed == []
