"""Tests of the command `snnbench nir`: wrong use is one clear line, and every format names every row."""

import json
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.nir_graphs import ENDS, dense, fake, write
from tests.screens import screen
from tests.shipped import RESULTS
from tests.sweep import snnbench

LATE = ("DIFFERENCES = ()", 'DIFFERENCES = (("latency", "late"),)')


def nir(*arguments: object, cwd: Path) -> "CompletedProcess[str]":
    return snnbench(cwd, "nir", *map(str, arguments))


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["absent.nir", "--dt", "0.001"], 1, "absent.nir: no such file"),
        (["text.nir", "--dt", "0.001"], 1, "text.nir: no NIR graph"),
        (["odd.nir", "--dt", "0.001"], 1, "odd.nir: node 'map': a Delay is not read; the kinds that are: Input"),
        (["good.nir", "--dt", "1"], 1, "good.nir: node 'neurons': forward Euler diverges at dt 1"),
        (["good.nir"], 2, "name a time step above 0, in seconds, such as --dt 0.001"),
        (["good.nir", "--dt", "0"], 2, "name a time step above 0"),
        (["good.nir", "--dt", "-1"], 2, "name a time step above 0"),
        (["good.nir", "--dt", "nan"], 2, "name a time step above 0"),
        (["good.nir", "--dt", "0.001", "--steps", "0"], 2, "--steps"),
        (["good.nir", "--dt", "0.001", "--timeout", "nan"], 2, "--timeout"),
        (["good.nir", "--dt", "0.001", "--timeout", "0"], 2, "--timeout"),
        (["good.nir", "other/good.nir", "--dt", "0.001"], 2, "two graphs have the name 'good'"),
        (["good.nir", "--dt", "0.001", "--library", "nors"], 2, "unknown library 'nors' (did you mean 'norse'?)"),
        (["text.json"], 1, "text.json: no recording of snnbench nir"),
    ],
)
def test_wrong_use_is_one_clear_line(tmp_path: Path, arguments: list[str], code: int, words: str) -> None:
    dense(tmp_path / "good.nir")
    write(tmp_path / "odd.nir", {**ENDS, "map": {"type": "Delay"}}, [("input", "map"), ("map", "output")])
    for name in ("text.nir", "text.json"):
        (tmp_path / name).write_text("no graph")
    done = nir(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr and len(done.stderr.splitlines()) == 1


def test_recording_prints_again_in_every_format(tmp_path: Path) -> None:
    dense(tmp_path / "good.nir")
    late = fake(tmp_path, "late", LATE)
    options = ["--dt", "0.001", "--steps", "30", "--env", "current", "--adapter", late, "--library", "late"]
    done = nir("good.nir", *options, "-o", "a.json", cwd=tmp_path)
    assert done.returncode == 0 and "| good | 0.001 | late |" in done.stdout
    assert nir("a.json", "--format", "markdown", cwd=tmp_path).stdout == done.stdout
    assert "output one step late" in nir("a.json", "--format", "csv", cwd=tmp_path).stdout
    (row,) = json.loads(nir("a.json", "--format", "json", cwd=tmp_path).stdout)["rows"]
    assert row["comparison"]["differences"] == [["latency", "late"]]
    check = snnbench(tmp_path, "check", "a.json")
    assert (check.returncode, check.stderr) == (0, "a.json: 1 rows of snnbench nir, nothing timed\n")


def test_place_that_cannot_be_written_loses_no_work(tmp_path: Path) -> None:
    dense(tmp_path / "good.nir")
    late = fake(tmp_path, "late", LATE)
    options = ["--dt", "0.001", "--env", "current", "--adapter", late, "--library", "late"]
    (tmp_path / "file").touch()
    before = nir("good.nir", *options, "-o", "file/a.json", cwd=tmp_path)
    assert (before.returncode, before.stdout) == (1, "") and "late" not in before.stderr
    after = nir("good.nir", *options, "-o", "/dev/full", cwd=tmp_path)  # which shows itself only when it is written
    assert after.returncode == 1 and "| good | 0.001 | late |" in after.stdout
    assert "/dev/full: cannot be written" in after.stderr


def test_failed_importer_sets_the_exit_code(tmp_path: Path) -> None:
    dense(tmp_path / "good.nir")
    broken = fake(tmp_path, "broken", ("pass  # importing", "path.absent"))
    options = ["--dt", "0.001", "--env", "current", "--adapter", broken, "--library", "broken"]
    done = nir("good.nir", *options, cwd=tmp_path)
    assert done.returncode == 5 and "broken: crash: AttributeError" in done.stdout


@pytest.mark.parametrize("columns", [80, 120])
def test_table_fits_the_terminal(tmp_path: Path, columns: int) -> None:
    dense(tmp_path / "good.nir")
    late = fake(tmp_path, "late", LATE)
    options = ["--dt", "0.001", "--env", "current", "--adapter", late, "--library", "late"]
    shown = screen(tmp_path, columns, "nir", "good.nir", *options)
    assert shown.status == 0 and shown.widest() <= columns
    assert "~ deviates" in shown.text and "late: deviates: output one step late (good 0.001)" in shown.text


MALFORMED = {
    "a step that is no number": ("rows", 0, "dt", "0.001"),
    "an infinite rate": ("rows", 0, "comparison", "rate", float("inf")),
    "a rate that is no number": ("rows", 0, "comparison", "rate", "x"),
    "a first position of one number": ("rows", 0, "comparison", "first", 3),
    "nothing compared": ("rows", 0, "comparison", "compared", 0),
    "another verdict": ("rows", 0, "outcome", "verdict", "perfect"),
    "no rows": ("rows", None),
    "no graphs": ("graphs", None),
    "steps that are no number": ("time_steps", "<b>"),
}


def recorded() -> dict[str, Any]:
    """The document of a recording with one row."""
    shipped = json.loads((RESULTS / "2026-11-25_nir_epyc-2cpu.json").read_text())
    shipped["rows"] = [row for row in shipped["rows"] if row["outcome"].get("verdict") == "deviates"][:1]
    return shipped  # type: ignore[no-any-return]


@pytest.mark.parametrize("place", MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("command", [("nir",), ("nir", "--format", "csv"), ("check",)], ids=" ".join)
def test_malformed_recording_is_refused_in_one_line(
    tmp_path: Path, command: tuple[str, ...], place: tuple[Any, ...]
) -> None:
    document = part = recorded()
    *keys, last, value = place
    for key in keys:
        part = part[key]
    part[last] = value
    (tmp_path / "a.json").write_text(json.dumps(document))
    done = snnbench(tmp_path, command[0], "a.json", *command[1:])
    assert (done.returncode, done.stdout) == (1, "")
    assert "a.json: no recording of snnbench nir: " in done.stderr and len(done.stderr.splitlines()) == 1


def test_recording_of_a_stranger_does_not_reach_the_terminal(tmp_path: Path) -> None:
    document = recorded()
    document["rows"][0]["graph"] = "\x1b]0;title\x07\x1b[31mred"
    (tmp_path / "a.json").write_text(json.dumps(document))
    done = nir("a.json", cwd=tmp_path)
    assert done.returncode == 0 and "red" in done.stdout and "\x1b" not in done.stdout
