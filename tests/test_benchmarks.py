"""Tests of the entry to the benchmarks, and that their summary is made from the outcomes in the repository."""

import argparse
import os
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks import charts, contenders, memory, summary
from benchmarks.__main__ import NAMES, about
from benchmarks.basecase import CASE
from benchmarks.contender_parent import Process, Turn
from tests import recordings

ROOT = Path(__file__).parents[1]
HELPERS = {
    "__init__",
    "__main__",
    "basecase",
    "charts",
    "contender_parent",
    "contender_process",
    "kernel_contenders",
    "outcome",
    "simulated_card",
    "simulated_run",
    "simulated_worker",
    "summary",
    "synthetic",
    "turn",
}
EVERY = [name for names in NAMES.values() for name in names]


def benchmarks(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_every_module_is_listed_with_its_question() -> None:
    assert {path.stem for path in (ROOT / "benchmarks").glob("*.py")} == {*EVERY} | HELPERS
    listing = benchmarks().stdout
    for name in EVERY:
        assert f"  {name} " in listing and about(name) in listing
    assert max(map(len, listing.splitlines())) <= 130


def test_unknown_name_is_refused_with_the_list() -> None:
    done = benchmarks("kernel")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("python -m benchmarks: no benchmark is called 'kernel'\n")


def test_summary_is_made_from_the_outcomes() -> None:
    text = summary.README.read_text(encoding="utf-8")
    assert summary.spliced(text) == text
    assert summary.spliced(f"{summary.START}old{summary.END}") == summary.spliced(f"{summary.START}{summary.END}")
    with pytest.raises(ValueError, match="expected the marks"):
        summary.spliced("no marks")


CONTENDER = """
import json, os, sys
for number, line in enumerate(sys.stdin):
    if number and line.strip():
        sys.exit()
    problem = {"problem": "too large"} if "64" in line else {"note": ""}
    print(json.dumps(problem | {"process": os.getpid()} if line.strip() else {"ns": 7}), flush=True)
"""


def test_contender_that_ends_after_a_case_starts_anew() -> None:
    process = Process("fake", [sys.executable, "-c", CONTENDER], dict(os.environ))
    try:
        first = process.prepare(CASE.with_(neurons=16))
        assert process.ask() == process.ask() == {"ns": 7}
        second = process.prepare(CASE.with_(neurons=32))
        assert first["note"] == second["note"] == "" and first["process"] != second["process"]
        assert process.prepare(CASE.with_(neurons=64))["problem"] == "too large"
    finally:
        process.end()
    process = Process("dead", [sys.executable, "-c", "import sys; sys.exit(3)"], dict(os.environ))
    assert process.prepare(CASE)["problem"] == "ended with status 3" and process.popen is None


def test_contender_leaves_if_it_was_always_slow() -> None:
    durations = {"floor": [4, 4], "fused/cpu": [10, 10], "near": [11, 19], "once": [90, 12], "slow": [30, 21]}
    turns = [Turn(Process(name, [], {}), "", [float(each) for each in ns[:1]]) for name, ns in durations.items()]
    compared = contenders.Compared(CASE, turns, [])
    assert compared.racing == turns, "one round is too few"
    for turn in turns:
        turn.durations_ns.append(durations[turn.name][1])
    assert [turn.name for turn in compared.racing] == ["floor", "fused/cpu", "near", "once"]
    for turn in compared.racing:
        turn.durations_ns.append(10)
    assert compared.ratio(turns[-1], "fused/cpu") == 2.55, "by the rounds that both took part in"
    assert compared.fastest_other is turns[2]


def test_contender_with_least_memory_is_named() -> None:
    peaks = {"fused/cpu-lowmem": 2 << 20, "fused/cpu": 4 << 20, "fused/torch": 1 << 20, "a": 5 << 20, "b": 3 << 20}
    assert memory.row(CASE, peaks) == ("subtract, N=256, T=100", "2", "4", "b", "3", "1.50")
    assert memory.row(CASE, {name: peaks[name] for name in peaks if len(name) > 1})[3:] == ("-", "-", "-")
    with pytest.raises(SystemExit, match="no peak of fused/cpu-lowmem"):
        memory.row(CASE, {"fused/cpu": 1})


def test_peak_is_the_median_of_the_trials() -> None:
    peaks = {"fused/cpu": (5, 9, 7), "norse/box": (4, 8)}
    records = [
        recordings.record(name, "memory", trial, CASE, memory={"host": {"peak_bytes": peaks[name][trial]}})
        for name in peaks
        for trial in range(len(peaks[name]))
    ]
    assert memory.peaks_of(records) == {CASE: {"fused/cpu": 7, "norse/box": 4}}


def test_dying_contender_leaves_the_others_their_turns(capsys: pytest.CaptureFixture[str]) -> None:
    dying = CONTENDER.replace("if number and line.strip()", "if number")
    sources = {"floor": CONTENDER, "fused/cpu": CONTENDER, "other": CONTENDER, "dying": dying}
    processes = [Process(name, [sys.executable, "-c", source], dict(os.environ)) for name, source in sources.items()]
    options = argparse.Namespace(rounds=3, busy=[0, 1], brief=True)
    try:
        compared, beside = contenders.compare(CASE, processes, options)
    finally:
        for process in processes:
            process.end()
    for each in (compared, beside):
        assert [(turn.name, len(turn.durations_ns)) for turn in each.turns] == [(name, 3) for name in list(sources)[:3]]
    assert (compared.busy, beside.busy) == (0, 1)
    assert compared.refused == ["dying: ended with status 0"]
    assert "subtract, N=256, T=100, 0.00, 1.00, other, 1.00" in capsys.readouterr().err


@pytest.mark.parametrize(("minutes", "begun"), [(60, 7), (10, 4), (5, 2), (0.2, 0)])
def test_parts_of_the_charts_run_in_order_and_get_the_time_that_is_left(
    tmp_path: Path, minutes: float, begun: int
) -> None:
    """Each part takes three minutes, or its whole budget."""
    now, budgets = [0.0], list[float]()

    def run(command: Sequence[str], most_s: float) -> int:
        budgets.append(float(command[command.index("--budget") + 1].removesuffix("s")))
        folder = Path(command[command.index("--output") + 1])
        folder.mkdir(parents=True)
        now[0] += min(180.0, budgets[-1])
        return 0

    into = tmp_path / "charts"
    assert charts.measure(minutes, into, ["--env", "current"], run, lambda: now[0]) == 0
    assert budgets == [60 * minutes - 180 * number for number in range(begun)]
    if begun:
        with tarfile.open(tmp_path / "charts.tgz") as archive:
            assert {Path(name).name for name in archive.getnames()} == {"charts", *list(charts.PARTS)[:begun]}


def test_wrong_option_ends_the_charts(tmp_path: Path) -> None:
    commands: list[Sequence[str]] = []

    def refused(command: Sequence[str], most_s: float) -> int:
        commands.append(command)
        return 2

    assert charts.measure(14, tmp_path, ["--nonsense"], refused) == 2
    assert len(commands) == 1 and commands[0][-1] == "--nonsense"


def test_a_part_that_does_not_end_is_interrupted() -> None:
    """snnbench then records the cell that it stopped, and ends."""
    program = "import signal, sys, time; signal.signal(signal.SIGINT, lambda *_: sys.exit(7)); time.sleep(60)"
    assert charts.run_for([sys.executable, "-c", program], 1.0) == 7
    assert charts.run_for([sys.executable, "-c", ""], 30.0) == 0
