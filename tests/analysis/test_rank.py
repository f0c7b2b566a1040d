"""Tests of rankings of recordings made by hand: shared ranks, their words, and contenders without a rank."""

from dataclasses import replace
from pathlib import Path

import pytest

from snnbench.analysis.decision import Thresholds
from snnbench.analysis.rank import Ranked, rank
from snnbench.recording.record import Record
from snnbench.report.text import rank_table
from snnbench.report.text.markdown import markdown
from tests.fakes import CASE
from tests.recordings import deviating, failed, recording, skipped, timed, trials

RESULTS = Path(__file__).parents[2] / "results"
LARGE = CASE.with_(neurons=96)
ONE = (0.98, 0.99, 1.0, 1.01, 1.02)


def times(name: str, factor: float, **fields: object) -> list[Record]:
    """Five trials of so many milliseconds, give or take 2 %."""
    return trials(name, [factor * ms for ms in ONE], **fields)


def quiet() -> list[Record]:
    """Eight contenders with one large spread, so that the estimate of the variance is good."""
    return [one for n in range(8) for one in trials(f"q{n}", (10.0 * 3**n, 11.0 * 3**n, 12.0 * 3**n))]


def ranked(*records: Record, baseline: str = "", **more: object) -> Ranked:
    """The ranking of a recording. Its config names the baseline `a`."""
    return rank(recording(*records, baseline="a"), baseline, Thresholds(), **more)  # type: ignore[arg-type]


def test_entries_are_sorted_by_time_with_word_and_ratio() -> None:
    (ranking,) = ranked(*times("a", 2), *times("b", 1), *times("c", 3)).rankings
    entries = [
        (one.rank, one.contender, one.comparison and (one.comparison.word, one.comparison.ratio))
        for one in ranking.entries
    ]
    assert (ranking.case, ranking.phase, entries) == (
        CASE,
        "train",
        [(1, "b", ("faster", 0.5)), (2, "a", None), (3, "c", ("slower", 1.5))],
    )


def test_rank_ends_before_a_contender_slower_than_a_member() -> None:
    """4 % above a is within the floor, 8 % is slower: c is slower than a, but not than b, and begins a rank.

    The intervals of a and b reach about 0.9 % either way. They lie apart, and once made two ranks.
    """
    factors = {"a": 1.0, "b": 1.04, "c": 1.08, "d": 1.12, "e": 2.0}
    (ranking,) = ranked(*(record for name, factor in factors.items() for record in times(name, factor))).rankings
    assert [(one.contender, one.rank) for one in ranking.entries] == [("a", 1), ("b", 1), ("c", 3), ("d", 3), ("e", 5)]
    ends = {one.contender: one.interval for one in ranking.entries}
    assert ends["a"] and ends["b"] and ends["a"][1] < ends["b"][0]
    words = [one.comparison and one.comparison.word for one in ranking.entries]
    assert words == [None, "inconclusive", "slower", "slower", "slower"]


def test_rank_excludes_a_contender_slower_than_its_first() -> None:
    """d is as fast as c but slower than b. The baseline is far from all three, so all three get the same word."""
    factors = {"a": 0.2, "b": 1.0, "c": 1.04, "d": 1.08}
    (ranking,) = ranked(*(record for name, factor in factors.items() for record in times(name, factor))).rankings
    assert [(one.contender, one.rank) for one in ranking.entries] == [("a", 1), ("b", 2), ("c", 2), ("d", 4)]
    assert [one.comparison and one.comparison.word for one in ranking.entries] == [None, "slower", "slower", "slower"]


def test_overlapping_intervals_share_no_rank_if_one_is_slower() -> None:
    """A shipped recording had one rank and two words: 4 torch-loop baseline, 4 spikingjelly slower."""
    (ranking,) = ranked(*trials("a", (1.0, 1.1, 1.2)), *trials("b", (1.2, 1.32, 1.44)), *quiet(), baseline="a").rankings
    entries = {one.contender: one for one in ranking.entries}
    first, second = entries["a"], entries["b"]
    assert first.interval and second.interval and second.interval[0] < first.interval[1]
    assert second.comparison and (second.comparison.word, second.rank != first.rank) == ("slower", True)


@pytest.mark.parametrize("baseline", ["a", "b", "c", "d", "e"])
def test_rank_of_the_baseline_has_neutral_words_only(baseline: str) -> None:
    factors = {"a": 1.0, "b": 1.04, "c": 1.08, "d": 1.12, "e": 2.0}
    records = [record for name, factor in factors.items() for record in times(name, factor)]
    (ranking,) = ranked(*records, baseline=baseline).rankings
    words = {entry.rank: set[str]() for entry in ranking.entries}
    for entry in ranking.entries:
        words[entry.rank].add(entry.comparison.word if entry.comparison else "baseline")
    of_baseline = next(found for found in words.values() if "baseline" in found)
    assert not of_baseline & {"slower", "faster"}


def test_single_trial_has_no_interval_rank_or_word() -> None:
    (ranking,) = ranked(timed("a", train=1.0), timed("b", train=9.0)).rankings
    assert [(one.contender, one.rank, one.interval) for one in ranking.entries] == [
        ("a", None, None),
        ("b", None, None),
    ]
    comparison = ranking.entries[1].comparison
    assert comparison and (comparison.word, comparison.ratio) == ("inconclusive", 9.0)


def test_single_trial_does_not_split_a_rank() -> None:
    (ranking,) = ranked(*times("a", 1), timed("b", train=1.01), *times("c", 1.02)).rankings
    assert [(one.contender, one.rank) for one in ranking.entries] == [("a", 1), ("b", None), ("c", 1)]


def contended(name: str, factor: float) -> list[Record]:
    """Five trials; the last is contended."""
    return [replace(one, flags=["contended"] if one.trial == 4 else []) for one in times(name, factor)]


def test_contended_contender_has_no_rank_unless_allowed() -> None:
    records = [*times("a", 1), *contended("b", 2), *times("c", 3)]
    (ranking,) = ranked(*records).rankings
    assert [(one.contender, one.rank) for one in ranking.entries] == [("a", 1), ("b", None), ("c", 2)]
    reasons = [(one.comparison.word, one.comparison.reason) for one in ranking.entries if one.comparison]
    advice = "run again on a quieter machine, or --allow contended"
    assert reasons == [("inconclusive", f"contended in b: {advice}"), ("slower", "")]
    assert ranking.entries[1].reason == "", "it is said once"
    lenient = ranked(*records, allowed=["contended"])
    assert [(one.rank, one.comparison and one.comparison.word) for one in lenient.rankings[0].entries] == [
        *[(1, None), (2, "slower"), (3, "slower")]
    ]
    assert lenient.rankings[0].entries[1].reason == "contended"
    for write in rank_table.FORMATS.values():
        note = "contended: times that others disturbed have words, too"
        assert (note in write(lenient)) is (write is not rank_table.csv)
        assert note not in write(ranked(*records))
    assert rank_table.report(lenient).notes[-1] == f"allowed: {note}"


def test_q_is_over_all_pairs_of_all_cases_and_phases() -> None:
    """Three contenders in two cases give 6 tests; the largest p among them is its own q."""
    noisy = (0.8, 0.9, 1.0, 1.1, 1.2)
    records = [one for case in (CASE, LARGE) for name in "abc" for one in trials(name, noisy, case=case)]
    rankings = ranked(*records, *times("d", 0.5)).rankings
    cells = [one.comparison for ranking in rankings for one in ranking.entries if one.comparison]
    (fast,) = (cell for cell in cells if cell.contender == "d")
    assert fast.difference and fast.difference.p and fast.q
    assert len(cells) == 5 and 2 < fast.q / fast.difference.p <= 9, "9 tests, of which d's 3 have the least p"


def test_inconclusive_contender_shares_no_rank_with_faster_ones() -> None:
    noisy = trials("b", (0.5, 0.7, 1.0, 1.6, 2.4))
    (ranking,) = ranked(*times("a", 2), *times("c", 0.95), *noisy, *quiet()).rankings
    entries = {entry.contender: entry for entry in ranking.entries if entry.contender in ("a", "b", "c")}
    assert {name: entry.comparison and entry.comparison.word for name, entry in entries.items()} == {
        "a": None,
        "b": "inconclusive",
        "c": "faster",
    }
    assert (entries["c"].rank, entries["b"].rank, entries["a"].rank) == (1, 2, 2)


def test_unranked_contenders_are_listed_with_reasons() -> None:
    others = [failed("c", "crash", "x"), skipped("d", "unsupported", "no such reset")]
    (ranking,) = ranked(
        *times("a", 1), *(deviating("b", trial=trial, train=0.1) for trial in range(3)), *others
    ).rankings
    assert [one.contender for one in ranking.entries] == ["a"]
    assert ranking.apart == [
        ("b", "deviates: fires a step late (up to 3.00% of the spikes differ, gradients by up to 2.0e-02)"),
        ("c", "failed: crash: x"),
        ("d", "skipped: unsupported: no such reset"),
    ]


def test_deviation_is_the_reason_even_if_a_trial_failed() -> None:
    records = [*trials("a", [1.0, 1.0]), deviating("b", train=1.0), failed("b", "crash", "died", trial=1)]
    (ranking,) = rank(recording(*records), "a", Thresholds()).rankings
    ((name, reason),) = ranking.apart
    assert name == "b" and reason.startswith("deviates: fires a step late")


def test_flags_of_an_entry_are_sorted() -> None:
    (ranking,) = ranked(*times("a", 1, flags=["throttled", "grows", "threads", "shared", "graph-breaks"])).rankings
    assert ranking.entries[0].reason == "graph-breaks; grows; shared; threads; throttled"


def test_case_without_times_is_kept() -> None:
    (first, second) = ranked(*times("a", 1), failed("a", "oom-host", "no memory", case=LARGE)).rankings
    assert [one.contender for one in first.entries] == ["a"]
    assert (second.case, second.entries, second.apart) == (LARGE, [], [("a", "failed: oom-host: no memory")])


def test_phases_are_ranked_separately_and_selectable() -> None:
    records = [timed(name, trial, train=3.0, forward=1.0) for name in ("a", "b") for trial in range(2)]
    assert [one.phase for one in ranked(*records).rankings] == ["train", "forward"]
    assert [one.phase for one in ranked(*records, phases=["forward"]).rankings] == ["forward"]


def with_energy(records: list[Record], joules: float, idle_w: float = 5.0) -> list[Record]:
    """The records, in which a training pass takes so many joules beyond idle power, give or take 2 %."""
    return [
        replace(
            record,
            phases={
                name: timing
                | {"energy": {
                    "counter": "nvml", "passes": 10, "wall_ns": 2 * 10**9, "idle_ns": 10**9,
                    "idle_uj": round(idle_w * 1e6),
                    "counted_uj": round((joules * factor * 10 + idle_w * 2) * 1e6),
                }}
                for name, timing in record.phases.items()
            },
        )
        for record, factor in zip(records, ONE, strict=True)
    ]  # fmt: skip


def test_energy_ranks_apart_from_time() -> None:
    records = [*with_energy(times("a", 2), 1.0), *with_energy(times("b", 1), 3.0), *times("c", 3)]
    ranking = ranked(*records, metric="energy")
    (ranked_case,) = ranking.rankings
    assert [(entry.rank, entry.contender) for entry in ranked_case.entries] == [(1, "a"), (2, "b")]
    assert ranked_case.entries[1].side.summary.median == pytest.approx(3.0)
    assert ranked_case.apart == [("c", "no energy in this phase")]
    table = markdown(rank_table.report(ranking))
    assert "energies over those of a" in table and "no contender in a rank takes more than another" in table
    assert "| 2 | b | 3 J | 3.000 |" in table and "| more |" in table
    header = "case,title,phase,rank,contender,energy_joules,low_joules,high_joules,trials_joules"
    assert rank_table.csv(ranking).startswith(header)


def test_energy_below_the_noise_of_idle_power_has_no_rank() -> None:
    records = [*with_energy(times("a", 2), 1.0), *with_energy(times("b", 1), -0.1)]
    (ranked_case,) = ranked(*records, metric="energy").rankings
    assert [entry.contender for entry in ranked_case.entries] == ["a"]
    assert ranked_case.apart == [("b", "noise exceeds its energy")]
