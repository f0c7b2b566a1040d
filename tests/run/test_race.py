"""Tests of whole races, and of runs within a budget."""

import re
from pathlib import Path
from typing import Any

import pytest

from snnbench.recording.reading import Recording, read
from snnbench.recording.record import Record
from snnbench.run import executor
from tests.fakes import CORRECT
from tests.sweep import run_arguments, snnbench, write_config

SLOW = """
import time

quick = build


def build(case, weights, variant):
    net = quick(case, weights, variant)

    def forward(x):
        time.sleep({seconds})
        return net.forward(x)

    return Network(forward, net.backward)
"""
FAR_BEHIND_S = 0.2


def adapters(folder: Path, **seconds: float) -> list[Path]:
    """A right fake for each name, with a pass that takes about so long."""
    for name, one in seconds.items():
        (folder / f"{name}.py").write_text(CORRECT + SLOW.format(seconds=one))
    return [folder / f"{name}.py" for name in seconds]


def raced(folder: Path, files: list[Path], *more: str) -> tuple[Recording, Any]:
    config = write_config(folder, [path.stem for path in files])
    done = snnbench(folder, *run_arguments(config, files, "--output", str(folder / "made"), *more))
    return read(folder / "made"), done


def name(record: Record) -> tuple[str, str, int, tuple[str, ...]]:
    return record.library, record.measure, record.trial, tuple(record.phases)


@pytest.fixture(scope="module")
def race(tmp_path_factory: pytest.TempPathFactory) -> tuple[Recording, Any]:
    """A race of a contender and one that takes a hundred times as long."""
    folder = tmp_path_factory.mktemp("race")
    return raced(folder, adapters(folder, fast=0.002, slow=FAR_BEHIND_S), "--until", "certain")


def test_one_trial_of_a_slow_contender_is_enough_and_the_leader_has_all_phases(race: tuple[Recording, Any]) -> None:
    recording, done = race
    assert sorted(map(name, recording.records)) == [
        ("fast", "memory", 0, ()),
        ("fast", "time", 0, ("train",)),
        ("fast", "time", 1, ("inference", "forward", "backward", "train")),
        ("slow", "time", 0, ("train",)),
    ]
    assert done.returncode == 0 and recording.finished and recording.planned == 4
    answer = re.search(
        r"fast \([\d.]+ ms\) leads for certain. It is [\d.]+ times as fast as the next, slow.", done.stdout
    )
    assert answer, done.stdout


def test_race_keeps_the_rules_and_a_missing_trial_does_not(race: tuple[Recording, Any]) -> None:
    recording, _ = race
    (slow,) = (record for record in recording.records if record.library == "slow")
    assert slow.phases["train"].get("enough_ns") and "fresh-train" not in slow.checks, "one pass, which is checked"
    assert snnbench(recording.folder.parent, "check", recording.folder).returncode == 0
    lines = (recording.folder / "records.jsonl").read_text().splitlines(keepends=True)
    left = [line for line in lines if '"memory"' not in line.split('"case"')[0]]
    short = recording.folder.parent / "short"
    short.mkdir()
    for path in recording.folder.iterdir():
        (short / path.name).write_text("".join(left) if path.name == "records.jsonl" else path.read_text())
    complained = snnbench(recording.folder.parent, "check", short)
    assert "no memory 0, which the race needs" in complained.stdout


def test_run_ends_with_its_budget_and_goes_on(tmp_path: Path) -> None:
    files = adapters(tmp_path, fast=0.002, slow=0.002)
    short, done = raced(tmp_path, files, "--trials", "2", "--budget", "0.001s")
    assert done.returncode == 0 and short.closed == "the budget of 0 s is over" and not short.finished
    assert "the budget is over; the same command goes on" in done.stderr and "planned cells are missing" in done.stdout
    whole, done = raced(tmp_path, files, "--trials", "2")
    assert done.returncode == 0 and whole.finished and not whole.closed and len(whole.records) == 6


def test_run_that_ends_just_in_time_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor.Budget, "is_over", lambda self, waiting=0: self.ended == 3)
    recording, done = raced(tmp_path, adapters(tmp_path, fast=0.002), "--trials", "2", "--budget", "1h")
    assert done.returncode == 0 and recording.finished and not recording.closed and len(recording.records) == 3


def test_failed_trial_of_a_race_is_retried_on_request(tmp_path: Path) -> None:
    files = adapters(tmp_path, fast=0.002, other=0.3)
    good = files[1].read_text()
    files[1].write_text(good + "\nimport os\nif not os.path.exists(__file__ + '.well'):\n    os._exit(3)\n")
    broken, _ = raced(tmp_path, files, "--until", "certain")
    assert [one.outcome.kind for one in broken.records if one.library == "other"] == ["crash"]
    Path(f"{files[1]}.well").touch()
    whole, done = raced(tmp_path, files, "--until", "certain", "--retry", "crash")
    assert done.returncode == 0 and all(one.status == "measured" for one in whole.records) and whole.finished


@pytest.mark.parametrize("text", ["soon", "0s", "-1m", "10 days"])
def test_budget_that_is_no_time_is_refused(tmp_path: Path, text: str) -> None:
    done = snnbench(tmp_path, "run", "--budget", text)
    assert done.returncode == 2 and "is no time such as 60s, 10m or 2h" in done.stderr


def test_shard_gives_all_trials_and_says_so(tmp_path: Path) -> None:
    files = adapters(tmp_path, fast=0.002)
    recording, done = raced(tmp_path, files, "--until", "certain", "--trials", "2", "--shard", "1/1")
    assert "all 2 trials of every contender are measured: a race needs a run in one place" in done.stderr
    assert len(recording.records) == 3
