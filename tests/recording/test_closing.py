"""Tests of closed recordings: their missing cells are said everywhere, and their run may still continue them."""

from dataclasses import replace
from pathlib import Path

import pytest

from snnbench import checking
from snnbench.cli.status import lines
from snnbench.exits import Exit
from snnbench.recording import closing, reading, writer
from snnbench.recording.closing import CannotClose
from snnbench.recording.record import RecordingError
from snnbench.report import answer
from snnbench.report.page import page
from snnbench.report.site.catalogue import Catalogue
from tests.recordings import reported
from tests.shipped import QUICK, copied, edited, edited_record, keep_lines
from tests.sweep import snnbench

REASON = "the loan of the machine ended"


@pytest.fixture
def partial(tmp_path: Path) -> Path:
    """A recording whose run was killed before it measured memory."""
    folder = copied(tmp_path, QUICK)
    keep_lines(folder, lambda line: line["measure"] == "time")
    edited(folder, reading.CONFIG, lambda config: config.update(finished=False))
    return folder


def test_closed_recording_is_sound_and_names_its_gap(partial: Path) -> None:
    whole = reading.read(partial).planned
    assert [each.rule for each in checking.check(partial)][:2] == ["files", "trials"]
    closed = closing.close(partial, f" {REASON}.\n")
    assert checking.check(partial) == []
    assert whole is not None and len(closed.records) < whole
    words = f"{whole - len(closed.records)} of {whole} planned cells are missing: {REASON}"
    assert answer.coverage(closed).endswith(f"; {words}")
    assert f"; {words}." in reported(closed)
    assert page.html([closed]).count(words) >= 2
    assert f", closed: {REASON}" in next(lines(partial))


def test_unfinished_recording_says_so_in_every_format(partial: Path) -> None:
    """Of twelve cells of a stopped run every report said "12 of 12"."""
    with (partial / reading.RECORDS).open("a") as stream:
        stream.write('{"torn')
    stopped = reading.read(partial)
    words = f"{len(stopped.records)} of {stopped.planned} planned cells, unfinished"
    assert all(words in text for text in (answer.coverage(stopped), reported(stopped), page.html([stopped])))
    torn = "1 line of the recording could not be read"
    assert torn in reported(stopped) and torn in page.html([stopped])
    for command in (["rank"], ["rank", "--format", "markdown"], ["rank", "--format", "json"]):
        assert words in snnbench(partial.parent, command[0], partial, *command[1:]).stdout
    for command in (["rank", "--format", "csv"], ["report", "--format", "csv"], ["export", "--to", "bmf"]):
        assert words in snnbench(partial.parent, command[0], partial, *command[1:]).stderr
    assert words in snnbench(partial.parent, "compare", partial, partial).stderr
    assert words in snnbench(partial.parent, "export", partial, "--to", "github-action-benchmark").stdout


def test_planned_cells_that_are_not_in_the_file_are_missed(partial: Path) -> None:
    edited(partial, reading.CONFIG, lambda config: config.update(finished=True))
    cut = reading.read(partial)
    assert f"{len(cut.records)} of {cut.planned} planned cells, unfinished" in reported(cut)


def test_site_prefers_a_finished_recording_to_a_newer_unfinished_one(partial: Path, tmp_path: Path) -> None:
    finished = reading.read(copied(tmp_path / "older", QUICK))
    stopped = reading.read(partial)
    later = [replace(record, started="2099-01-01T00:00:00+00:00") for record in stopped.records]
    site = Catalogue([finished, replace(stopped, records=later)])
    assert site.latest == [finished] and site.entries[0].recording is finished
    assert site.recordings[0].unfinished, "it is listed as the newest"


def test_recording_without_an_identity_is_closed(partial: Path) -> None:
    edited(partial, reading.CONFIG, lambda config: config.pop("identity"))
    assert closing.close(partial, REASON).closed == REASON


def test_wrong_cell_of_a_closed_recording_is_still_named(partial: Path) -> None:
    closing.close(partial, REASON)
    edited_record(partial, "time", lambda record: record["checks"].pop("exam-1"))
    assert "proof" in {each.rule for each in checking.check(partial)}


def test_continued_recording_is_no_longer_closed(partial: Path) -> None:
    closed = closing.close(partial, REASON)
    with writer.append(partial, closed.config, closed.machine) as entries:
        entries.finish(False)
    assert reading.read(partial).closed == ""
    with writer.append(partial, closed.config, closed.machine) as entries:
        entries.close(REASON)
        entries.finish()
    assert (reading.read(partial).closed, reading.read(partial).finished) == ("", True)


def test_recording_cannot_be_both_finished_and_closed(partial: Path) -> None:
    edited(partial, reading.CONFIG, lambda config: config.update(finished=True, closed=REASON))
    assert "the run is both finished and closed" in [each.text for each in checking.check(partial)]


def test_closed_recording_knows_how_many_cells_were_planned(partial: Path) -> None:
    closed = closing.close(partial, REASON)
    edited(partial, reading.CONFIG, lambda config: config.update(planned=len(closed.records) - 1))
    assert [each.rule for each in checking.check(partial)] == ["trials"]
    edited(partial, reading.CONFIG, lambda config: config.pop("planned"))
    assert [each.text for each in checking.check(partial)] == [
        "the run is closed, and how many cells were planned is not known"
    ]


def test_only_an_unfinished_recording_is_closed_for_a_reason(partial: Path, tmp_path: Path) -> None:
    with pytest.raises(CannotClose, match="the reason is empty"):
        closing.close(partial, " \n ")
    with pytest.raises(RecordingError, match="no recording here"):
        closing.close(tmp_path / "nothing", REASON)
    known = reading.read(partial)
    with (
        writer.append(partial, known.config, known.machine),
        pytest.raises(RecordingError, match="another run is writing here"),
    ):
        closing.close(partial, REASON)
    edited(partial, reading.CONFIG, lambda config: config.pop("planned"))
    with pytest.raises(CannotClose, match="does not say how many cells were planned"):
        closing.close(partial, REASON)
    edited(partial, reading.CONFIG, lambda config: config.update(finished=True))
    with pytest.raises(CannotClose, match="is finished"):
        closing.close(partial, REASON)


def test_close_is_a_command(partial: Path, tmp_path: Path) -> None:
    assert snnbench(tmp_path, "check", partial).returncode == Exit.UNSOUND
    done = snnbench(tmp_path, "close", partial, "--reason", REASON)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.strip().endswith(f"planned cells are missing: {REASON}")
    checked = snnbench(tmp_path, "check", partial)
    assert (checked.returncode, checked.stdout) == (0, "")
    assert checked.stderr.strip().endswith(f"planned cells are missing: {REASON}")
