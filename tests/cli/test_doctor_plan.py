"""Tests of `snnbench doctor --plan` as a user starts it."""

import re
from pathlib import Path

import pytest

from tests.cli.test_commands import MARKING
from tests.fakes import write
from tests.sweep import Workspace

SECOND_WORKLOAD = """
[[sweep]]
name = "alone"
workload = "lif"
profile = "subtract"
libraries = ["good"]
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def planned(workspace: Workspace, *more: str, config: str = "tiny.toml") -> list[str]:
    """The lines of the forecast; nothing else is printed."""
    files = [part for adapter in workspace.adapters for part in ("--adapter", str(adapter))]
    done = workspace("doctor", "--plan", config, *files, *more)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def row(lines: list[str], name: str) -> list[str]:
    (only,) = (line.split() for line in lines if line.startswith(f"{name} "))
    return only


def test_plan_without_recordings_has_lower_bounds(workspace: Workspace) -> None:
    """Weights of 24 * 24, and input and cotangent of 12 * 5 * 24 numbers: 13.5 KiB."""
    write(workspace.folder, MARKING, "good")
    lines = planned(workspace)
    assert row(lines, "good") == ["good", "unknown", ">=", "13.5", "KiB", "-", "-", "no", "record"]
    assert "no recordings here: only the bytes of arrays" in lines
    assert lines[-1] == "the time of 6 cells is unknown: no record"
    assert {path.name for path in workspace.folder.iterdir()} == {"good.py", "other.py", "tiny.toml"}


def test_plan_after_a_run_uses_its_recording(workspace: Workspace) -> None:
    assert workspace.run("--only", "library=good").returncode == 0
    lines = planned(workspace)
    good = row(lines, "good")
    assert good[1] == "ok" and good[3] == "MiB" and good[-2] == "measured" and good[-1].startswith("20")
    assert row(lines, "other")[1] == "unknown"
    assert re.fullmatch(r"about \d+ s for 3 of 6 cells; the time of 3 cells is unknown", lines[-1])
    small = planned(workspace, "--set", "protocol.memory_limit_gib=0.01", "--only", "library=good")
    assert row(small, "good")[1] == "oom-host" and lines[0].endswith(" of memory")
    assert small[-1].endswith("for 3 cells; 3 cells do not fit")
    grown = planned(workspace, "--set", "case.neurons=48", "--set", "case.time_steps=24", "--only", "library=good")
    assert "T^1 assumed, N counted" in " ".join(grown)


def test_case_with_too_many_numbers_does_not_fit(workspace: Workspace) -> None:
    lines = planned(workspace, "--set", "sweep.neurons=[24,100000]", "--only", "library=good")
    assert "does not fit: N=100000: good >= 37.3 GiB" in lines
    assert lines[-1] == "the time of 6 cells is unknown: no record; 3 cells do not fit"


def test_plan_of_both_workloads(workspace: Workspace) -> None:
    with workspace.config.open("a") as file:
        file.write(SECOND_WORKLOAD)
    lines = planned(workspace, "--only", "library=good")
    rows = [line.split()[:5] for line in lines if line.startswith("good ")]
    assert [row[3] for row in rows] == ["13.5", "11.2"], "no weights in the second"


def test_plan_of_a_shipped_config_of_neurons_alone(workspace: Workspace) -> None:
    lines = planned(workspace, "--only", "library=fused/cpu,time_steps=256", config="temporal-fusion")
    assert lines[0].startswith("temporal-fusion on ")
    assert {line.split()[3] for line in lines if line.startswith("fused/cpu ")} == {"195"}, "MiB: 2 * 256 * 1e5 * 4"


def test_malformed_recording_is_named_and_left_out(workspace: Workspace) -> None:
    folder = workspace.folder / "results" / "broken"
    folder.mkdir(parents=True)
    (folder / "records.jsonl").write_text("")
    (folder / "machine.json").write_text("[]")
    done = workspace("doctor", "--plan", "quick")
    assert done.returncode == 0 and "left out: " in done.stderr and "expected a JSON object" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["tiny.tml"], 3, "tiny.tml: no such file (did you mean 'tiny.toml'?)"),
        (["quik"], 2, "unknown config 'quik' (did you mean 'quick'?)"),
        (["quick", "--set", "protocol.trials=none"], 3, "--set protocol.trials: 'none'"),
        (["quick", "--only", "neurons=3"], 2, "--only: no cell of this config is left"),
        (["quick", "--aa"], 2, "--aa runs cells and --plan runs none; leave one of them out"),
    ],
)
def test_wrong_plan_is_one_line_and_an_exit_code(
    workspace: Workspace, arguments: list[str], code: int, message: str
) -> None:
    done = workspace("doctor", "--plan", *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr.splitlines()[-1]
