"""Tests of a finished run, as a user meets it: its output, its recording, and the commands that read the recording."""

import csv
import io
import json
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from snnbench.report.text.splicing import marks
from tests.recording.test_torn_lines import file_size_limit
from tests.sweep import Workspace, lines, recordings


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workspace, "subprocess.CompletedProcess[str]"]:
    """A workspace with a successful run, and the run's output. Tests must not change it."""
    workspace = Workspace(tmp_path_factory.mktemp("finished"))
    done = workspace.run()
    assert done.returncode == 0, done.stderr
    return workspace, done


@pytest.fixture(scope="module")
def recording(finished: tuple[Workspace, Any]) -> Path:
    """The recording of that run."""
    (made,) = recordings(finished[0].folder)
    return made


def test_run_prints_only_its_table_on_standard_output(finished: tuple[Workspace, Any]) -> None:
    _, done = finished
    heading, machine, answer, title, header, _, *rows, exact, ratio, checked = filter(None, done.stdout.splitlines())
    assert heading.startswith("## ") and "_tiny_" in heading
    assert machine.endswith("6 of 6 cells measured.")
    assert answer.startswith("Reset by subtraction, CPU: 24 neurons, batch 5, 12 steps: ")
    assert exact.startswith("exact: the spikes and gradients of the float64 reference")
    assert ratio.startswith("ratio: time over that of good; x floor: ")
    assert title.startswith("### reset by subtraction, CPU: 24 neurons, batch 5, 12 steps, float32 (ieee)")
    assert header.startswith(
        "| library | version | verdict | train ms | ratio | x floor | forward ms | backward ms | inference ms |"
    )
    assert sorted(row.split("|")[1].strip() for row in rows) == ["good", "other"]
    assert checked == "Checked: all."
    assert all(row.split("|")[3].strip() == "exact" for row in rows)
    assert next(row for row in rows if "good" in row).split("|")[5].strip() == "1.00", "the baseline's ratio"
    assert all(float(row.split("|")[6]) > 1 for row in rows), "every time is longer than the floor"


def test_progress_is_one_line_per_cell_on_standard_error(finished: tuple[Workspace, Any]) -> None:
    _, done = finished
    circumstances = r"(?:, disturbed by others)?(?: \(about \d+ s left\))?"
    line = rf"^\[(\d)/6\] (good|other) subtract N=24 B=5 T=12 .*: exact(?:, [\d.]+ s)?{circumstances}$"
    ended = re.findall(line, done.stderr, re.MULTILINE)
    assert [number for number, _ in ended] == list("123456")
    assert "|" not in done.stderr and "cells in" not in done.stdout


def test_recording_has_config_machine_versions_and_cells(recording: Path) -> None:
    assert {path.name for path in recording.iterdir()} == {
        *("config.json", "machine.json", "environments.json", "records.jsonl")
    }
    records = lines(recording)
    assert Counter((record["library"], record["measure"], record["trial"]) for record in records) == Counter(
        (library, *cell) for library in ("good", "other") for cell in (("time", 0), ("memory", 0), ("time", 1))
    )
    timed = [record["phases"]["train"]["repetitions_ns"] for record in records if record["measure"] == "time"]
    assert all(len(durations) == 3 and min(durations) > 0 for durations in timed)
    versions = json.loads((recording / "environments.json").read_text())
    assert {record["environment"] for record in records} == set(versions)
    config = json.loads((recording / "config.json").read_text())
    assert config["finished"] and config["config"]["protocol"]["repetitions"] == 3


def test_report_equals_the_table_of_the_run(finished: tuple[Workspace, Any], recording: Path) -> None:
    workspace, done = finished
    assert workspace.ask("report", recording) == done.stdout


def test_csv_has_a_row_per_trial_phase_and_metric(finished: tuple[Workspace, Any], recording: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(finished[0].ask("report", recording, "--format", "csv"))))
    identity = ("library", "variant", "neurons", "trial", "phase", "metric")
    assert len({tuple(row[name] for name in identity) for row in rows}) == len(rows)
    times = [row for row in rows if row["metric"] == "time"]
    assert len(times) == 2 * 2 * 4, "contenders, trials and phases"
    assert all(float(row["value"]) > 0 for row in times)
    objects = json.loads(finished[0].ask("report", recording, "--format", "json"))
    assert [[row.get(name, "") for name in identity] for row in objects] == [
        [int(row[name]) if name in ("neurons", "trial") else row[name] for name in identity] for row in rows
    ]
    assert [row["value"] for row in objects if "value" in row] == [float(row["value"]) for row in rows if row["value"]]


def test_page_and_parquet_are_written_to_files(
    finished: tuple[Workspace, Any], recording: Path, tmp_path: Path
) -> None:
    workspace, done = finished
    page, table, data = tmp_path / "page.html", tmp_path / "table.md", tmp_path / "data.parquet"
    assert workspace.ask("report", recording, "--format", "html", "-o", page) == ""
    assert page.read_text().startswith("<!doctype html>") and recording.name in page.read_text()
    assert workspace.ask("report", recording, "--format", "parquet", "-o", data) == ""
    assert data.read_bytes().startswith(b"PAR1")
    assert workspace.ask("report", recording, "-o", table) == "" and table.read_text() == done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--format", "parquet"], 2, "parquet is not text; say where to with -o FILE"),
        (
            ["--format", "html", "-o", "none/page.html"],
            1,
            "none/page.html: cannot be written (No such file or directory)",
        ),
        (["--figures", "/dev/null/figures"], 1, "/dev/null/figures: cannot be written (Not a directory)"),
        (["--format", "pdf"], 2, "Invalid value for '--format'"),
    ],
)
def test_unwritable_report_is_one_line_and_an_exit_code(
    finished: tuple[Workspace, Any], recording: Path, arguments: list[str], code: int, message: str
) -> None:
    done = finished[0]("report", recording, *arguments)
    assert (done.returncode, done.stdout) == (code, "") and message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_output_is_replaced_whole_or_not_at_all(
    finished: tuple[Workspace, Any], recording: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    page.write_text("yesterday's")
    for command in (["report", recording, "--format", "html"], ["rank", recording, "--format", "csv"]):
        with file_size_limit(20):
            done = finished[0](*command, "-o", page)
        assert (done.returncode, page.read_text()) == (1, "yesterday's")
        assert done.stderr == f"snnbench: {page}: cannot be written (File too large); name another place\n"
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    assert finished[0].ask("rank", recording, "--format", "csv", "-o", "/dev/null") == ""
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("option", ["-o", "--splice"])
@pytest.mark.parametrize("place", [".", "absent/file"])
def test_place_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path, place: str, option: str) -> None:
    """The recording, which would be read first, is missing."""
    done = Workspace(tmp_path)("report", "no-recording", option, place)
    assert done.returncode == 1 and f"{place}: cannot be written" in done.stderr


def test_run_into_a_place_that_cannot_be_written_makes_no_environment(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    workspace = Workspace(tmp_path)
    adapters = [part for path in workspace.adapters for part in ("--adapter", path)]
    done = workspace("run", "--config", workspace.config, *adapters, "-o", "file/one")
    assert done.returncode == 1 and "file/one: cannot be written (Not a directory)" in done.stderr
    assert "making environment" not in done.stderr


def test_tables_are_spliced_into_a_document(finished: tuple[Workspace, Any], recording: Path, tmp_path: Path) -> None:
    document = tmp_path / "README.md"
    document.write_text(f"before\n{marks()[0]}\n{marks()[1]}\nafter\n")
    assert finished[0].ask("report", recording, "--splice", document) == ""
    spliced = document.read_text()
    assert spliced.startswith("before\n") and spliced.endswith("after\n") and "| good |" in spliced


def test_two_recordings_are_compared(finished: tuple[Workspace, Any], recording: Path) -> None:
    comparison = json.loads(finished[0].ask("compare", recording, recording, "--format", "json"))
    assert len(comparison["comparisons"]) == 2 * 5, "four phases and the peak of each contender"
    assert {cell["ratio"] for cell in comparison["comparisons"]} == {1.0}
    assert comparison["changed"] == comparison["allowed"] == []
    printed = finished[0].ask("compare", recording, recording, "--phase", "train", "--explain")
    row = r"^\| \w+ \| (good|other) \| train \| time \| \S+ [mu]s \| \S+ [mu]s \| 1\.000 "
    assert re.search(row, printed, re.MULTILINE)
    assert "\n4 comparisons: " in printed


def edited(folder: Path, to: Path, old: str, new: str, name: str = "records.jsonl") -> Path:
    """A copy of a recording with a change in one file."""
    shutil.copytree(folder, to)
    text = (to / name).read_text()
    assert old in text
    (to / name).write_text(text.replace(old, new))
    return to


def test_compare_fails_on_the_words_of_fail_on(recording: Path, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    (tmp_path / "less").mkdir()
    shutil.copytree(recording, tmp_path / "less", dirs_exist_ok=True)
    lines = [one for one in (recording / "records.jsonl").read_text().splitlines() if '"library": "good"' in one]
    (tmp_path / "less" / "records.jsonl").write_text("\n".join(lines) + "\n")
    assert workspace("compare", recording, "less", "--fail-on", "slower,failed").returncode == 0
    done = workspace("compare", recording, "less", "--fail-on", "slower,missing", "--format", "junit", "-o", "out.xml")
    assert (done.returncode, done.stdout) == (6, "")
    assert "out.xml: written" in done.stderr and "snnbench: 5 missing" in done.stderr
    assert (tmp_path / "out.xml").read_text().count("<failure ") == 5


def test_incomparable_recordings_are_refused_unless_allowed(recording: Path, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    model = json.loads((recording / "machine.json").read_text())["model"]
    other = edited(recording, tmp_path / "other", json.dumps(model), '"an abacus"', "machine.json")
    refused = workspace("compare", recording, other)
    assert (refused.returncode, refused.stdout) == (8, "")
    assert f"  machine: {model!r} in {recording.name}, 'an abacus' in other\n" in refused.stderr
    assert "--allow machine" in refused.stderr
    for form in ("table", "markdown", "csv", "json", "junit"):
        assert "an abacus" in workspace.ask("compare", recording, other, "--allow", "machine", "--format", form)


def test_one_recording_is_ranked(finished: tuple[Workspace, Any], recording: Path) -> None:
    ranking = json.loads(finished[0].ask("rank", recording, "--baseline", "other", "--format", "json"))
    assert ranking["baseline"] == "other"
    assert [one["phase"] for one in ranking["rankings"]] == ["train", "forward", "backward", "inference"]
    assert {entry["contender"] for one in ranking["rankings"] for entry in one["places"]} == {"good", "other"}
    for form in ("table", "markdown", "csv"):
        assert "good" in finished[0].ask("rank", recording, "--format", form, "--phase", "train")
