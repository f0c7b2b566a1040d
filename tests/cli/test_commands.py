"""Tests of commands as a user starts them, on fake adapters."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from snnbench.adapter.discovery import discover
from snnbench.cli import app
from snnbench.cli.env import _of_configs
from snnbench.environments import store
from snnbench.recording.reading import read
from snnbench.run.process import environment
from snnbench.worker.messages import decode_reply
from snnbench.workloads import linear_lif
from tests.fakes import CORRECT, altered, write
from tests.recordings import EXACT
from tests.sweep import Workspace, process, recordings, run_arguments

WRONG = altered("return network(replace(case, beta=case.beta - 0.1), weights)")
MARKING = f"from pathlib import Path\nPath(__file__).with_suffix('.ran').touch()\n{CORRECT}"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def test_progress_is_a_bar_on_a_terminal(workspace: Workspace) -> None:
    changes = ("--only", "library=good", "--set", "protocol.trials=1")
    arguments = run_arguments(workspace.config, workspace.adapters, *changes)
    leader, follower = pty.openpty()
    with os.fdopen(leader, "rb", buffering=0) as screen:
        done = process(workspace.folder, *arguments, stdout=subprocess.PIPE, stderr=follower)
        os.close(follower)
        shown = screen.read(1 << 16).decode()
    assert done.returncode == 0
    assert "1 of 2 done, 1 running, 0 waiting" in shown and "now: good subtract" in shown and "\x1b[" in shown
    assert "\x1b" not in done.stdout and done.stdout.count("| good |") == 1


def test_finished_run_adds_nothing_to_its_folder(workspace: Workspace) -> None:
    few = ("--only", "library=good", "--set", "protocol.trials=1", "--set", "protocol.memory_trials=0")
    assert workspace.run("-o", "mine", *few).returncode == 0
    before = (workspace.folder / "mine" / "records.jsonl").read_bytes()
    again = workspace.run("-o", "mine", *few)
    assert again.returncode == 0 and "mine: continues; 1 of 1 cells are there" in again.stderr
    assert (workspace.folder / "mine" / "records.jsonl").read_bytes() == before
    assert recordings(workspace.folder) == []
    other = workspace.run("-o", "mine")
    assert (other.returncode, other.stdout) == (1, "")
    refusal = "holds a recording of another config (protocol.memory_trials, protocol.trials); name another folder"
    assert other.stderr == f"snnbench: mine: {refusal}\n"


def test_continued_run_says_how_failed_cells_run_again(workspace: Workspace) -> None:
    write(workspace.folder, altered("raise RuntimeError('no')"), "good")
    few = ("-o", "mine", "--only", "library=good", "--set", "protocol.trials=1")
    assert workspace.run(*few).returncode == 5
    assert "2 of 2 cells are there; 2 failed: --retry crash runs them again" in workspace.run(*few).stderr


def test_continued_run_records_what_changed_since_it_began(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = ("-o", "mine", "--only", "library=good", "--set", "protocol.trials=1")
    assert workspace.run(*few).returncode == 0
    records, machine = (workspace.folder / "mine" / name for name in ("records.jsonl", "machine.json"))
    monkeypatch.setenv("OMP_PROC_BIND", "true")
    before = machine.read_bytes()
    assert workspace.run(*few).returncode == 0 and machine.read_bytes() == before, "nothing was measured under it"
    records.write_text(records.read_text().splitlines(keepends=True)[0])
    done = workspace.run(*few)
    assert done.returncode == 0 and "changed since it began: environment.OMP_PROC_BIND" in done.stderr
    assert json.loads(machine.read_text())["varying"] == {"environment.OMP_PROC_BIND": ["true", None]}


def test_same_command_runs_again_what_the_state_of_the_machine_broke(workspace: Workspace) -> None:
    """The recording stays open, and nobody is accused."""
    room = workspace.folder / "room"
    full = f"if not __import__('pathlib').Path({str(room)!r}).exists(): raise OSError(28, 'No space left on device')"
    write(workspace.folder, altered(f"{full}\nreturn right"), "good")
    few = ("--only", "library=good", "--set", "protocol.trials=1")
    first = workspace.run(*few)
    assert first.returncode == 5 and "broke 2 of its cells; the same command runs them again" in first.stderr
    room.touch()
    assert workspace.run(*few).returncode == 0
    (made,) = recordings(workspace.folder)
    assert {one.status for one in read(made).records} == {"measured"} and read(made).finished


def forecast(workspace: Workspace, *options: str) -> tuple[dict[str, list[str]], str]:
    """The rows of `run --dry-run` by contender, and its last line."""
    done = workspace.run("--dry-run", *options)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| ")]
    return {row[0]: row[1:] for row in rows}, lines[-1]


def test_dry_run_without_recordings_has_lower_bounds_and_starts_nothing(workspace: Workspace) -> None:
    """Weights of 24 * 24, and input and cotangent of 12 * 5 * 24 numbers: 13.5 KiB."""
    write(workspace.folder, MARKING, "good")
    rows, last = forecast(workspace)
    assert rows["good"] == rows["other"] == ["ok", "3", ">= 13.5 KiB", "-"]
    assert last == "6 cells; the time of 6 is unknown: no recording in results/ on this model of machine"
    assert {path.name for path in workspace.folder.iterdir()} == {"good.py", "other.py", "tiny.toml"}


def test_dry_run_after_a_run_uses_its_recording(workspace: Workspace) -> None:
    assert workspace.run("--only", "library=good").returncode == 0
    rows, last = forecast(workspace)
    assert rows["good"][0] == "ok" and rows["good"][2].endswith("MiB") and ">=" not in rows["good"][2]
    assert rows["other"][2] == ">= 13.5 KiB" and re.fullmatch(r"6 cells, about \d+ s", last)
    rows, last = forecast(workspace, "--set", "protocol.memory_limit_gib=0.01", "--only", "library=good")
    assert rows["good"][0] == "oom-host" and last.endswith("; 3 of them do not fit")
    rows, last = forecast(workspace, "--set", "protocol.timeout_seconds=0.01", "--only", "library=good")
    assert rows["good"][0] == "timeout" and last.endswith("; 3 of them exceed the timeout")


def test_dry_run_leaves_out_a_malformed_recording(workspace: Workspace) -> None:
    folder = workspace.folder / "results" / "broken"
    folder.mkdir(parents=True)
    (folder / "records.jsonl").write_text("")
    (folder / "machine.json").write_text("[]")
    done = workspace.run("--dry-run")
    assert done.returncode == 0 and "left out: " in done.stderr and "expected a JSON object" in done.stderr


def test_only_and_set_select_the_cells(workspace: Workspace) -> None:
    settings = ("--set", "sweep.neurons=[8,16]", "--set", "protocol.trials=1", "--set", "protocol.memory_trials=0")
    rows, last = forecast(workspace, *settings, "--only", "neurons>8", "--only", "library=other")
    assert {*rows} == {"library", "---", "other"} and last.startswith("1 cell;")


def test_adapters_are_listed_with_missing_environments(workspace: Workspace) -> None:
    printed = workspace.ask("list", "--adapter", workspace.adapters[0])
    (row,) = (line for line in printed.splitlines() if line.startswith("| good |"))
    assert row == (
        f"| good | any | cpu cuda | not said | missing: `snnbench env sync good --adapter {workspace.adapters[0]}` "
        "| A fake library that does all that is asked of it. |"
    )
    assert len(re.findall(r"^\| \S+ \|", printed, re.MULTILINE)) > 10, "the shipped adapters"


def test_contenders_are_verified_without_being_timed(workspace: Workspace) -> None:
    bad = write(workspace.folder, WRONG, "other")
    arguments = ("--config", workspace.config, "--env", "current", "--adapter", workspace.adapters[0], "--adapter", bad)
    good = workspace("verify", "good", *arguments)
    assert good.returncode == 0, good.stderr
    assert re.search(r"^\| good \| .* \| exact \| 0 of \d+ \|", good.stdout, re.MULTILINE)
    both = workspace("verify", *arguments)
    assert both.returncode == 5
    assert re.search(r"- other: incorrect: exam: \d+ of 1480 spikes differ, the first at t=", both.stdout)
    assert " ms" not in both.stdout and recordings(workspace.folder) == []


def test_request_drives_a_worker_through_a_pipe(workspace: Workspace) -> None:
    adapter = workspace.adapters[0]
    printed = workspace("request", "good", "--config", workspace.config, "--env", "current", "--adapter", adapter)
    assert printed.returncode == 0, printed.stderr
    worker = [sys.executable, "-m", "snnbench.worker", str(adapter)]
    replied = subprocess.run(
        worker, input=printed.stdout.encode(), capture_output=True, timeout=30, env=environment(1, workspace.folder)
    )
    reply = decode_reply(replied.stdout)
    assert reply is not None and reply.outcome == EXACT
    assert set(reply.phases) == {"inference", "forward", "backward", "train"}


def test_printed_command_line_runs_the_request(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = workspace.adapters[0]
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "/absent")  # no worker gets it
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)  # the line has what this process lacks
    printed = workspace(
        "request", "good", "--measure", "memory", "-c", workspace.config, "--env", "current", "--adapter", adapter
    )
    assert printed.stderr.startswith("for: ")
    line = printed.stderr.removeprefix("for: ")
    expected = environment(1, workspace.folder, current=True)
    words = {"OPENBLAS_NUM_THREADS=1", "OPENBLAS_THREAD_TIMEOUT=18", "--unset=JAX_COMPILATION_CACHE_DIR"}
    assert words <= set(line.split())
    assert all(f"{name}=" in line for name in expected if name not in os.environ), "the worker's whole environment"
    replied = subprocess.run(line, shell=True, input=printed.stdout, capture_output=True, text=True, timeout=30)
    assert json.loads(replied.stdout)["outcome"] == {"status": "measured", "verdict": "exact"}


def test_request_is_for_a_case_of_the_library(workspace: Workspace) -> None:
    with workspace.config.open("a") as file:
        file.write('\n[[sweep]]\nname = "zero"\nprofile = "zero"\nlibraries = ["other"]\n')
    text = workspace.config.read_text().replace('libraries = ["good", "other"]', 'libraries = ["good"]')
    workspace.config.write_text(text)
    files = [part for adapter in workspace.adapters for part in ("--adapter", adapter)]
    for name, reset in (("good", "subtract"), ("other", "zero")):
        request = json.loads(workspace.ask("request", name, "-c", workspace.config, "--env", "current", *files))
        assert request["case"]["reset"] == reset


def test_environments_are_listed_and_removed(workspace: Workspace) -> None:
    assert workspace.ask("env", "list") == ""
    (workspace.folder / "home" / "envs" / "0123").mkdir(parents=True)
    folder = str(workspace.folder / "home/envs/0123")
    assert workspace.ask("env", "list").split() == [folder, "0", "MiB", "half", "made"]
    unknown = workspace("env", "remove", "good")
    assert unknown.returncode == 2 and "no environment of good (there are: none)" in unknown.stderr
    workspace.ask("env", "remove")
    assert workspace.ask("env", "list") == ""


def test_environments_of_a_config_have_the_packages_of_its_work() -> None:
    adapters = discover()
    contenders = dict(_of_configs(["quick", "loading"], adapters))
    assert contenders["sinabs", "default"] == "loading" and contenders["norse", "box"] == "linear_lif"
    environment = store.plan(adapters["sinabs"], "default", False, contenders["sinabs", "default"])
    assert any(requirement.startswith("tonic==") for requirement in environment.requirements)


def test_options_of_sizes_have_the_letters_of_tables() -> None:
    options = {option.name: option.opts for option in get_command(app).commands["run"].params}
    for axis, (letter, _) in linear_lif.Case.SIZES.items():
        name = axis.removeprefix("time_")
        assert options[name] == [f"-{letter}", f"--{name}"]
