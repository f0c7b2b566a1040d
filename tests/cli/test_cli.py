"""Tests of the command line as a user meets it: real processes of `python -m snnbench` on fake adapters."""

import csv
import io
import json
import os
import pty
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from snnbench.report.text.splicing import marks
from snnbench.run.process import environment
from snnbench.worker.messages import decode_reply
from tests.fakes import CORRECT, altered, write
from tests.recordings import EXACT
from tests.sweep import lines, recordings, run_arguments, snnbench, write_config

HELP_LIMIT_S = 0.5
WRONG = altered("return network(replace(case, beta=case.beta - 0.1), weights)")
MARKING = f"from pathlib import Path\nPath(__file__).with_suffix('.ran').touch()\n{CORRECT}"


class Workspace:
    """A folder with fake adapters `good` and `other`, a config for them, and methods to run commands in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.adapters = [write(folder, CORRECT, name) for name in ("good", "other")]
        self.config = write_config(folder, ["good", "other"])

    def run(self, *more: str | Path) -> "subprocess.CompletedProcess[str]":
        """`snnbench run` of the config."""
        return snnbench(self.folder, *run_arguments(self.config, self.adapters, *more))

    def __call__(self, *arguments: str | Path) -> "subprocess.CompletedProcess[str]":
        """Any other command."""
        return snnbench(self.folder, *arguments)

    def ask(self, *arguments: str | Path) -> str:
        """The output of a command that must succeed."""
        done = self(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


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
    heading, machine, title, header, _, *rows, checked = [line for line in done.stdout.splitlines() if line]
    assert heading.startswith("## ") and "_tiny_" in heading
    assert machine.endswith("6 of 6 cells measured.")
    assert title.startswith("### subtract: N=24, B=5, T=12 on cpu, float32 (ieee)")
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
    line = rf"^\[(\d)/6\] (good|other) subtract N=24 B=5 T=12 .*: exact, [\d.]+ s{circumstances}$"
    ended = re.findall(line, done.stderr, re.MULTILINE)
    assert [number for number, _ in ended] == list("123456")
    assert "|" not in done.stderr and "cells in" not in done.stdout


def test_progress_is_a_bar_on_a_terminal(workspace: Workspace) -> None:
    changes = ("--only", "library=good", "--set", "protocol.trials=1")
    arguments = run_arguments(workspace.config, workspace.adapters, *changes)
    leader, follower = pty.openpty()
    with os.fdopen(leader, "rb", buffering=0) as screen:
        done = snnbench(workspace.folder, *arguments, stdout=subprocess.PIPE, stderr=follower)
        os.close(follower)
        shown = screen.read(1 << 16).decode()
    assert done.returncode == 0
    assert "1/2" in shown and "\x1b[" in shown
    assert "\x1b" not in done.stdout and done.stdout.count("| good |") == 1


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


def test_page_figures_and_parquet_are_written_to_files(
    finished: tuple[Workspace, Any], recording: Path, tmp_path: Path
) -> None:
    workspace, done = finished
    page, table, data = tmp_path / "page.html", tmp_path / "table.md", tmp_path / "data.parquet"
    assert workspace.ask("report", recording, "--format", "html", "-o", page) == ""
    assert page.read_text().startswith("<!doctype html>") and recording.name in page.read_text()
    assert workspace.ask("report", recording, "--format", "parquet", "-o", data) == ""
    assert data.read_bytes().startswith(b"PAR1")
    assert workspace.ask("report", recording, "-o", table) == "" and table.read_text() == done.stdout
    assert workspace.ask("report", recording, "--figures", tmp_path / "figures") == ""
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert {"time-1.svg", "time-1.pdf", "memory-1.svg", "citation.bib", "CITATION.cff"} <= names


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


def test_tables_are_spliced_into_a_document(finished: tuple[Workspace, Any], recording: Path, tmp_path: Path) -> None:
    document = tmp_path / "README.md"
    document.write_text(f"before\n{marks()[0]}\n{marks()[1]}\nafter\n")
    assert finished[0].ask("report", recording, "--splice", document) == ""
    spliced = document.read_text()
    assert spliced.startswith("before\n") and spliced.endswith("after\n") and "| good |" in spliced


def test_two_recordings_are_compared(finished: tuple[Workspace, Any], recording: Path) -> None:
    comparison = json.loads(finished[0].ask("compare", recording, recording, "--format", "json"))
    assert len(comparison["cells"]) == 2 * 5, "four phases and the peak of each contender"
    assert {cell["ratio"] for cell in comparison["cells"]} == {1.0}
    assert comparison["changed"] == comparison["allowed"] == []
    printed = finished[0].ask("compare", recording, recording, "--phase", "train", "--explain")
    assert re.search(r"^\w+ +(good|other) +train +time +\S+ [mu]s +\S+ [mu]s +1\.000 ", printed, re.MULTILINE)
    assert printed.splitlines()[-1].startswith("4 cells: ")


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
    assert other.stderr == "snnbench: mine: holds a recording of another config or machine; name another folder\n"


def test_dry_run_prints_the_cells_and_starts_nothing(workspace: Workspace) -> None:
    write(workspace.folder, MARKING, "good")
    done = workspace.run("--dry-run")
    assert done.returncode == 0
    assert Counter(line.split()[0] for line in done.stdout.splitlines()) == {"good": 3, "other": 3}
    assert done.stderr == "6 cells, 2 of them different work\n"
    assert {path.name for path in workspace.folder.iterdir()} == {"good.py", "other.py", "tiny.toml"}


def test_only_and_set_select_the_cells(workspace: Workspace) -> None:
    settings = ("--set", "sweep.neurons=[8,16]", "--set", "protocol.trials=1", "--set", "protocol.memory_trials=0")
    done = workspace.run("--dry-run", *settings, "--only", "neurons>8", "--only", "library=other")
    assert done.stdout.splitlines() == ["other subtract N=16 B=5 T=12 cpu float32, time 0"]


def test_adapters_are_listed_with_missing_environments(workspace: Workspace) -> None:
    printed = workspace.ask("list", "--adapter", workspace.adapters[0])
    (row,) = (line for line in printed.splitlines() if line.startswith("| good |"))
    assert row == (
        "| good | any | cpu cuda | not said | missing: `snnbench env sync good` "
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


def test_printed_command_line_runs_the_request(workspace: Workspace) -> None:
    adapter = workspace.adapters[0]
    printed = workspace(
        "request", "good", "--measure", "verify", "-c", workspace.config, "--env", "current", "--adapter", adapter
    )
    assert printed.stderr.startswith("for: ")
    line = printed.stderr.removeprefix("for: ")
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


UNPINNED = '# /// script\n# dependencies = ["no such thing !!"]\n# ///\n' + CORRECT
NOWHERE = '# /// script\n# dependencies = ["no-such-distribution==1.0"]\n# ///\n' + CORRECT


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["run", "--frobnicate"], 2, "No such option: --frobnicate"),
        (["run"], 2, "Missing option '--config'"),
        (["flurb"], 2, "No such command 'flurb'"),
        (["report"], 2, "Missing argument 'RECORDING...'"),
        (["run", "-c", "tiny.toml", "--only", "neuron=3"], 2, "--only: unknown key 'neuron' (did you mean 'neurons'?)"),
        (
            ["run", "-c", "tiny.toml", "--only", "neurons=3"],
            2,
            "--only: no cell of this config is left",
        ),
        (["run", "-c", "tiny.toml", "--env", "none"], 2, "Invalid value for '--env'"),
        (["verify", "god", "-c", "tiny.toml"], 2, "unknown library 'god' (did you mean 'good'?)"),
        (["request", "norse/*", "-c", "tiny.toml"], 2, "Invalid value for LIBRARY: name one variant"),
        (["run", "-c", "tiny.tml"], 3, "tiny.tml: no such file (did you mean 'tiny.toml'?)"),
        (["run", "-c", "bad.toml"], 3, "bad.toml: sweep 'all': unknown key 'neuron' (did you mean 'neurons'?)"),
        (["run", "-c", "tiny.toml", "--set", "protocol.trials=none"], 3, "--set protocol.trials: 'none'"),
        (
            ["run", "-c", "tiny.toml", "--set", "sweep.libraries=goof"],
            3,
            "unknown library 'goof' (did you mean 'good'?)",
        ),
        (["run", "-c", "tiny.toml", "--adapter", "none.py"], 4, "none.py: [Errno 2] No such file or directory"),
        (["run", "-c", "tiny.toml", "--adapter", "tiny.toml"], 4, "tiny.toml: "),
        (["list", "--adapter", "unpinned.py"], 4, "unpinned.py: script header: "),
        (["env", "sync", "nowhere", "--adapter", "nowhere.py"], 4, "nowhere: "),
        (["report", "nowhere"], 1, "nowhere: no recording here (no records.jsonl)"),
        (["compare", "a", "b", "--fail-on", "slow"], 2, "--fail-on: unknown word 'slow' (did you mean 'slower'?)"),
        (["compare", "a", "b", "--detectable", "0.1"], 2, "--detectable is called --chance now"),
        (["compare", "a", "b", "--allow", "work"], 2, "--allow: unknown word 'work'"),
        (["compare", "a", "b", "--alpha", "nan"], 2, "alpha: expected a probability between 0 and 1, got nan"),
        (["compare", "a", "b", "--time-floor", "-1"], 2, "time-floor: expected a share, 0.05 for 5 %, got -1"),
        (["rank", "nowhere"], 1, "nowhere: no recording here (no records.jsonl)"),
        (["compare", "nowhere", "nowhere"], 1, "nowhere: no recording here (no records.jsonl)"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_error_is_one_line_and_an_exit_code(
    workspace: Workspace, arguments: Sequence[str], code: int, message: str
) -> None:
    for name, source in (("unpinned", UNPINNED), ("nowhere", NOWHERE)):
        write(workspace.folder, source, name)
    bad = workspace.config.read_text().replace('libraries = ["good"', 'neuron = 3\nlibraries = ["good"')
    (workspace.folder / "bad.toml").write_text(bad)
    files = [part for adapter in workspace.adapters for part in ("--adapter", str(adapter))]
    done = workspace(*arguments, *(files if arguments[0] in ("run", "verify") else []))
    assert (done.returncode, done.stdout) == (code, "")
    last = done.stderr.splitlines()[-1]
    assert last.startswith("snnbench: ") and message in last
    assert "Traceback" not in done.stderr


def test_failed_environment_is_a_failed_cell(workspace: Workspace) -> None:
    """Managed environments: one library's pins do not exist anywhere. Tests have no network."""
    write(workspace.folder, UNPINNED, "other")
    managed = [part for part in run_arguments(workspace.config, workspace.adapters) if part not in ("--env", "current")]
    done = snnbench(workspace.folder, *managed, "--only", "library=other")
    assert done.returncode == 5
    assert "- other: failed: environment: " in done.stdout
    assert {record["outcome"]["kind"] for record in lines(recordings(workspace.folder)[0])} == {"environment"}


def test_debug_shows_the_traceback(workspace: Workspace) -> None:
    done = workspace("--debug", "report", "nowhere")
    assert done.returncode == 1 and "Traceback" in done.stderr and "RecordingError" in done.stderr


def test_help_is_shown_without_arguments(workspace: Workspace) -> None:
    done = workspace()
    assert "Usage: " in done.stdout + done.stderr
    assert "snnbench:  (" not in done.stderr


def test_version_is_printed(workspace: Workspace) -> None:
    assert re.fullmatch(r"snnbench \d+\.\d+\.\d+\n", workspace.ask("--version"))


def test_help_takes_half_a_second_at_most(workspace: Workspace) -> None:
    """Half a second of its own CPU time: other processes on the CPUs do not count."""
    taken_s = []
    for _ in range(5):
        before = os.times()
        assert workspace.ask("--help")
        after = os.times()
        taken_s.append(after.children_user + after.children_system - before.children_user - before.children_system)
    assert min(taken_s) < HELP_LIMIT_S


def test_help_imports_no_heavy_package() -> None:
    program = (
        "import sys; sys.argv = ['snnbench', '--help']\n"
        "from snnbench.cli import main\n"
        "status = main()\n"
        "print('modules:', *sorted({name.split('.')[0] for name in sys.modules}), file=sys.stderr)\n"
        "sys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "Commands" in done.stdout
    loaded = set(done.stderr.partition("modules:")[2].split())
    assert {"snnbench", "typer"} <= loaded
    assert loaded & {"pandas", "pydantic", "numpy", "yaml", "psutil", "uv", "pynvml", "torch", "jax"} == set()
