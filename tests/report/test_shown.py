"""Tests of `show`: one cell in full, and the comparison with its replay."""

import re
from dataclasses import replace
from datetime import date
from pathlib import Path
from unittest import mock

import pytest

from snnbench.analysis.bootstrap import Interval
from snnbench.recording import lookup, reading
from snnbench.recording.lookup import UnknownCell
from snnbench.recording.reading import CONFIG, MACHINE, RECORDS, read
from snnbench.recording.record import Record, RecordingError
from snnbench.recording.writer import choose
from snnbench.report.overview import find
from snnbench.report.page import sections
from snnbench.report.site.catalogue import load
from snnbench.report.text import cell_description
from snnbench.run import replay
from snnbench.run.replay import Replayed
from tests.recordings import deviating, failed, recording, timed, trials, weighed
from tests.shipped import QUICK, copied, shipped
from tests.sweep import snnbench


def written(folder: Path, *records: Record) -> Path:
    """A recording on disk."""
    folder.mkdir(parents=True)
    (folder / RECORDS).write_text("".join(one.encode() for one in records))
    (folder / CONFIG).write_text("{}")
    (folder / MACHINE).write_text('{"model": "a laptop"}')
    return folder


def text(cell_record: Record) -> str:
    return "\n".join(cell_description.lines(recording(cell_record), cell_record))


def test_cell_is_found_by_the_start_of_its_name(tmp_path: Path) -> None:
    first, second = timed("norse/box", train=3.0), timed("sinabs", train=4.0)
    folders = [written(tmp_path / "a", first), written(tmp_path / "b", second)]
    assert lookup.find(second.cell[:6], folders)[1] == second
    assert lookup.folders(tmp_path) == folders and lookup.folders(folders[0]) == folders[:1]
    with pytest.raises(UnknownCell, match="at least 4"):
        lookup.find(second.cell[:3], folders)
    with pytest.raises(UnknownCell, match=r"no cell zzzz in .*/a, .*/b; "):
        lookup.find("zzzz", folders)
    with pytest.raises(RecordingError, match="no recording here; --in DIR"):
        lookup.folders(tmp_path / "a" / "none")


def test_recording_that_cannot_be_read_is_left_out_of_others(tmp_path: Path) -> None:
    """One of a newer snnbench, or a config.json that is a folder, and neither show nor site nor run worked."""
    whole, newer, odd = (written(tmp_path / name, timed(name, train=3.0)) for name in ("whole", "newer", "odd"))
    (newer / RECORDS).write_text('{"schema": 99}\n')
    (odd / CONFIG).unlink()
    (odd / CONFIG).mkdir()
    said: list[str] = []
    (cell,) = (record.cell for record in reading.read(whole).records)
    assert lookup.find(cell, lookup.folders(tmp_path), said.append)[0].folder == whole
    assert [str(newer) in said[0], str(odd) in said[1], len(said)] == [True, True, 2]
    assert [one.folder for one in load(tmp_path, said.append).recordings] == [whole]
    today = date(2026, 11, 21)
    assert choose(tmp_path, "quick", "x", "laptop", today).name == "2026-11-21_quick_laptop"
    with pytest.raises(RecordingError, match="newer snnbench"):
        lookup.find(cell, [newer])


def test_link_to_a_recording_is_not_another_one(tmp_path: Path) -> None:
    """results/latest counted twice in the site."""
    made = written(tmp_path / "results" / "made", timed("a", train=3.0))
    elsewhere = written(tmp_path / "disk" / "large", timed("b", train=3.0))
    (tmp_path / "results" / "latest").symlink_to(made)
    (tmp_path / "results" / "zlarge").symlink_to(elsewhere)
    assert lookup.folders(tmp_path / "results") == [made, tmp_path / "results" / "zlarge"]
    assert len(load(tmp_path / "results").recordings) == 2


def test_ambiguous_name_is_refused_with_its_matches(tmp_path: Path) -> None:
    records = [replace(timed(name, train=3.0), cell=f"abcd{name}") for name in ("one", "two")]
    with pytest.raises(UnknownCell, match=r"2 cells begin so: abcdone \(one\), abcdtwo \(two\)"):
        lookup.find("abcd", [written(tmp_path / "a", *records)])


def test_everything_is_shown() -> None:
    cell_record = timed("norse/box", train=3.0, floors_ms={"train": 1.5}, flags=["contended"])
    description = text(cell_record)
    assert f"cell {cell_record.cell} of results/one" in description
    assert (
        "norse/box 1.0, time 0: measured, exact" in description
        and "on a laptop" in description
        and "flags: contended" in description
    )
    assert "train: 3 ms a pass (3-8.25), 2 times the floor, 3 repetitions of 2 passes, first call 50 ms" in description
    assert "memory of train: static 1 MiB" in text(weighed("a", host_mib=6))
    assert "host: before 100 MiB, peak 6 MiB, retained 2 MiB" in text(weighed("a", host_mib=6))
    assert "failed: crash: died of SIGSEGV" in text(failed("a", "crash", "died of SIGSEGV"))
    samples = "\n".join(cell_description.samples(cell_record))
    assert "repetitions: 6000000 6000000 27000000" in samples and "2 passes a repetition" in samples


def test_deviation_and_its_complaints_are_shown() -> None:
    description = text(deviating("a", train=3.0))
    assert "measured, deviates (fires a step late)" in description
    assert "check exam-1: 3 of 100 spikes differ, gradients off by weight 0.02, bias 0.01; " in description


def test_intervals_are_compared_by_phase() -> None:
    def of(*milliseconds: float) -> list[Record]:
        return [timed("a", trial, train=ms, forward=1.0) for trial, ms in enumerate(milliseconds)]

    same, slower = replay.compared(of(3.0, 3.1, 3.2), of(3.1, 3.2)), replay.compared(of(3.0, 3.1), of(30.0, 31.0))
    assert [(one.phase, one.overlaps) for one in same] == [("train", True), ("forward", True)]
    assert [(one.phase, one.overlaps) for one in slower] == [("train", False), ("forward", True)]
    grown = replay.compared([weighed("a", host_mib=6)], [weighed("a", host_mib=7)])
    assert {one.metric: one.overlaps for one in grown} == {
        **{"static": True, "host_before": True, "host_peak": False, "host_retained": True}
    }


def test_replay_is_described_in_words() -> None:
    replayed = [Replayed("train", "time", Interval(1e6, 2e6), Interval(2.5e6, 3e6))]
    assert list(replay.lines(replayed)) == ["train time: 2.5 to 3 ms now, DOES NOT OVERLAP 1 to 2 ms then"]


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ((6.2, 6.1, 6.2), r"reproduced: 1\.02 of the recorded ratio to b \(0\.9\d to 1\.0\d\), in train"),
        ((9.2, 9.1, 9.2), r"not reproduced: 1\.5\d of the recorded ratio to b \(.*\), in train"),
        ((4.0, 6.2, 9.0), r"inconclusive: 1\.02 of .*, in train; the interval crosses 10 %: run more trials"),
        ((6.2,), r"inconclusive: 1\.02 of the recorded ratio to b, in train; one trial in new"),
        ((), r"no ratio to the baseline: no new trial has both times"),
    ],
)
def test_ratio_to_the_baseline_says_whether_a_cell_is_reproduced(now: tuple[float, ...], expected: str) -> None:
    """Everything takes twice as long as when it was recorded, which a ratio does not show."""
    old, base = trials("a", (3.0, 3.05, 3.1)), trials("b", (1.0, 1.0, 1.0))
    line = replay.conclusion(old, trials("a", now), base, trials("b", [2.0] * len(now)))
    assert re.fullmatch(expected, line), line


def test_replay_without_a_baseline_says_why() -> None:
    a, b = timed("a", train=3.0), timed("b", train=3.0)
    adapters = {"b": mock.Mock(variants={"default": None})}

    def reason(wanted: Record, *records: Record, baseline: str = "b") -> str:
        return replay.beside(recording(*records, baseline=baseline), wanted, adapters)[1]

    assert replay.beside(recording(a, b, baseline="b"), a, adapters) == ([b], "")
    assert reason(b, a, b) == "the cell is the baseline's own"
    assert reason(a, a) == "the recording has no time of b in this case"
    assert reason(weighed("a"), a, b) == "only times have one"
    assert reason(b, a, b, baseline="a") == "a is not here; --adapter FILE adds it"


def test_library_lists_its_cells(tmp_path: Path) -> None:
    folder = copied(tmp_path, QUICK)
    done = snnbench(tmp_path, "show", "sinabs", "--in", str(folder))
    own = [one for one in read(folder).records if one.library == "sinabs"]
    assert [line.split()[0] for line in done.stdout.splitlines()] == [one.cell for one in own] and own
    assert snnbench(tmp_path, "show", own[0].cell, "--in", str(folder)).stdout.startswith(f"cell {own[0].cell} of ")


def test_page_names_the_first_cell_of_each_row() -> None:
    recorded = read(shipped(QUICK))
    (table,) = sections.cells(find(recorded)).tables
    names = {one.cell: one.label for one in recorded.records if one.trial == 0 and one.phases}
    assert table.columns[-1] == "cell" and {row[-1]: row[0] for row in table.rows} == names
