"""Tests of errors and help as a user meets them: an error is one line and an exit code, and help is quick."""

import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.test_commands import workspace
from tests.fakes import CORRECT, write
from tests.shipped import QUICK, RESULTS
from tests.sweep import Workspace, command, lines, process, recordings, run_arguments, snnbench, surroundings

__all__ = ["workspace"]


UNPINNED = '# /// script\n# dependencies = ["no such thing !!"]\n# ///\n' + CORRECT
NOWHERE = '# /// script\n# dependencies = ["no-such-distribution==1.0"]\n# ///\n' + CORRECT


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["run", "--frobnicate"], 2, "No such option: --frobnicate"),
        (["rank"], 2, "Missing argument 'RECORDING'"),
        (["run", "-N", "many"], 2, "Invalid value for -N: many: expected the neurons of every layer"),
        (["flurb"], 2, "No such command 'flurb'"),
        (["report"], 2, "Missing argument 'RECORDING...'"),
        (["run", "-c", "tiny.toml", "--only", "neuron=3"], 2, "--only: unknown key 'neuron' (did you mean 'neurons'?)"),
        (
            ["run", "-c", "tiny.toml", "--only", "neurons=3"],
            2,
            "--only: no cell of this config is left",
        ),
        (["run", "-c", "tiny.toml", "--only", "library=othe"], 2, "none has library=othe (did you mean 'other'?)"),
        (["run", "-c", "tiny.toml", "--only", "batch>2,batch=3"], 2, "none has batch=3 (there: 5)"),
        (["verify", "-c", "tiny.toml", "--only", "variant=x"], 2, "none has variant=x (there: default)"),
        (
            ["run", "-c", "training", "--set", "sweep.samples=8", "--dry-run"],
            3,
            "samples = 8 do not fill a batch of ",
        ),
        (["run", "-c", "tiny.toml", "--env", "none"], 2, "Invalid value for '--env'"),
        (["verify", "god", "-c", "tiny.toml"], 2, "unknown library 'god' (did you mean 'good'?)"),
        (["verify", "snntorch==0.7.0"], 2, "the adapter snntorch is for version 1.0.0; --adapter FILE.py takes a copy"),
        (["request", "norse/*", "-c", "tiny.toml"], 2, "Invalid value for LIBRARY: name one variant"),
        (
            ["request", "norse", "-c", "tiny.toml", "--set", "case.threads=4096"],
            2,
            "Invalid value for case: threads = 4096: expected 1 to ",
        ),
        (["run", "-c", "tiny.tml"], 3, "tiny.tml: no such file (did you mean 'tiny.toml'?)"),
        (["run", "-c", "bad.toml"], 3, "bad.toml: sweep 'all': unknown key 'neuron' (did you mean 'neurons'?)"),
        (["run", "-c", "tiny.toml", "--set", "protocol.trials=none"], 3, "--set protocol.trials: 'none'"),
        (
            ["run", "-c", "tiny.toml", "--set", "sweep.libraries=goof"],
            3,
            "unknown library 'goof' (did you mean 'good'?)",
        ),
        (["run", "-c", "tiny.toml", "--adapter", "none.py"], 4, "none.py: No such file or directory"),
        (["run", "-c", "tiny.toml", "--adapter", "tiny.toml"], 4, "tiny.toml: "),
        (["list", "--adapter", "unpinned.py"], 4, "unpinned.py: script header: "),
        (["env", "sync", "nowhere", "--adapter", "nowhere.py"], 4, "nowhere: "),
        (["report", "nowhere"], 1, "nowhere: no recording here (no records.jsonl)"),
        (["compare", "a", "b", "--fail-on", "slow"], 2, "--fail-on: unknown word 'slow' (did you mean 'slower'?)"),
        (["compare", "a", "b", "--allow", "work"], 2, "--allow: unknown word 'work'"),
        (["compare", "a", "b", "--alpha", "nan"], 2, "alpha: expected a probability between 0 and 1, got nan"),
        (["compare", "a", "b", "--time-floor", "-1"], 2, "time-floor: expected a share, 0.05 for 5 %, got -1"),
        (["rank", "nowhere"], 1, "nowhere: no recording here (no records.jsonl)"),
        (["run", "-c", "tiny.toml", "-o", "-"], 2, "'-o' / '--output': name a file or folder"),
        (["run", "-c", "tiny.toml", "-o", "results"], 2, "results holds recordings; name a folder in it"),
        (["merge", "results/one", "-o", "results"], 2, "results holds recordings; name a folder in it"),
        (["report", "results/one", "-o", "-"], 2, "name a file or folder"),
        (["run", "-c", "tiny.toml", "--set", f"case.neurons={'1' * 5000}"], 3, "--set case.neurons: '111"),
        (["run", "-c", "tiny.toml", "--set", f"case.neurons={'[' * 3000}"], 3, "--set case.neurons: '[[["),
        (["run", "-c", "deep.toml"], 3, "deep.toml: "),
        (["run", "-c", "long.toml"], 3, "long.toml: "),
        (["list", "--adapter", "deep.py"], 4, "deep.py: "),
        (["run", "-c", "tiny.toml", "--devices", "1" * 5000], 2, "is not a card of this machine"),
        (["export", str(RESULTS / QUICK), "--to", "asv", "--commit", ""], 2, "--commit: expected the hash"),
        (["report", "\udcff"], 1, "?: no recording here"),
        (["compare", "nowhere", "nowhere"], 1, "nowhere: no recording here (no records.jsonl)"),
    ],
    ids=lambda value: ascii(" ".join(value))[:80] if isinstance(value, list) else "",
)
def test_error_is_one_line_and_an_exit_code(
    workspace: Workspace, arguments: Sequence[str], code: int, message: str
) -> None:
    for name, source in (("unpinned", UNPINNED), ("nowhere", NOWHERE)):
        write(workspace.folder, source, name)
    (workspace.folder / "deep.toml").write_text("x = " + "[" * 3000)
    (workspace.folder / "long.toml").write_text("x = " + "1" * 5000)
    write(workspace.folder, "x = " + "[" * 3000, "deep")
    (workspace.folder / "results" / "one").mkdir(parents=True)
    (workspace.folder / "results" / "one" / "records.jsonl").touch()
    bad = workspace.config.read_text().replace('libraries = ["good"', 'neuron = 3\nlibraries = ["good"')
    (workspace.folder / "bad.toml").write_text(bad)
    files = [part for adapter in workspace.adapters for part in ("--adapter", str(adapter))]
    done = workspace(*arguments, *(files if arguments[0] in ("run", "verify") else []))
    assert (done.returncode, done.stdout) == (code, "")
    last = done.stderr.splitlines()[-1]
    assert last.startswith("snnbench: ") and message in last
    assert "Traceback" not in done.stderr


def test_folder_does_not_hide_the_config_of_its_name(workspace: Workspace) -> None:
    (workspace.folder / "quick").mkdir()
    assert "torch-loop" in workspace.ask("run", "-c", "quick", "--dry-run")


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


def test_command_alone_shows_three_questions_and_their_commands(workspace: Workspace) -> None:
    done = workspace()
    assert (done.returncode, done.stderr) == (2, "")
    lines = done.stdout.splitlines()
    assert len([line for line in lines if line]) <= 10 and max(map(len, lines)) <= 80
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("  snnbench ")]
    assert [words[0] for words in commands] == ["run", "ab", "verify"]
    for words in commands:
        assert "Missing" not in workspace(*words, "--only", "neurons=0").stderr, "it can be copied"


@pytest.mark.parametrize("command", ["run", "show", "env sync", "doctor"])
def test_help_shows_no_type_of_a_flag(workspace: Workspace, command: str) -> None:
    assert "<bool>" not in workspace.ask(*command.split(), "--help")


def test_config_may_begin_with_a_mark(workspace: Workspace) -> None:
    workspace.config.write_text("\ufeff" + workspace.config.read_text())
    assert workspace.run("--dry-run").returncode == 0


def test_process_prints_and_ends_with_an_exit_code(tmp_path: Path) -> None:
    version = process(tmp_path, "--version")
    assert version.returncode == 0 and re.fullmatch(r"snnbench \d+\.\d+\.\d+\n", version.stdout)
    wrong = process(tmp_path, "report", "nowhere")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert wrong.stderr.startswith("snnbench: nowhere: no recording here")


@pytest.mark.parametrize(("streams", "code"), [(">&-", 1), (">/dev/full", 1), ("2>&-", 0), ("<&-", 0), ("<&- 2>&-", 0)])
def test_closed_or_full_stream_is_one_line_or_no_obstacle(tmp_path: Path, streams: str, code: int) -> None:
    line = f"{shlex.join(command('report', RESULTS / QUICK))} {streams}"
    done = subprocess.run(["sh", "-c", line], cwd=tmp_path, env=surroundings(tmp_path), capture_output=True, text=True)
    assert done.returncode == code
    assert (len(done.stderr.splitlines()), bool(done.stdout)) == (code, not code)


def test_reader_that_has_enough_ends_a_command_quietly(tmp_path: Path) -> None:
    line = f"{shlex.join(command('report', RESULTS / QUICK, '--format', 'csv'))} | head -c 1"
    done = subprocess.run(["sh", "-c", line], cwd=tmp_path, env=surroundings(tmp_path), capture_output=True, text=True)
    assert (len(done.stdout), done.stderr) == (1, "")


def test_no_file_gets_the_descriptor_of_a_closed_stream(tmp_path: Path) -> None:
    """A library that prints would write into it."""
    program = "import os, sys\nfrom snnbench.cli import main\nsys.argv = ['snnbench', '--version']\nmain()\n"
    program += "print(os.open(os.devnull, os.O_RDONLY))"
    done = subprocess.run(
        ["sh", "-c", f"{shlex.join([sys.executable, '-c', program])} <&- 2>&-"], stdout=subprocess.PIPE, text=True
    )
    assert int(done.stdout.splitlines()[-1]) > 2


def test_characters_that_a_terminal_lacks_are_replaced(tmp_path: Path) -> None:
    env = surroundings(tmp_path) | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command("report", RESULTS / QUICK), env=env, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def loaded_by(*arguments: str) -> set[str]:
    """The packages that a command imports."""
    program = (
        f"import sys; sys.argv = ['snnbench', *{arguments}]\n"
        "from snnbench.cli import main\n"
        "status = main()\n"
        "print('modules:', *sorted({name.split('.')[0] for name in sys.modules}), file=sys.stderr)\n"
        "sys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stderr.partition("modules:")[2].split())
    assert done.stdout and {"snnbench", "typer"} <= loaded
    return loaded


def test_help_imports_no_heavy_package() -> None:
    loaded = loaded_by("--help")
    assert loaded & {"pandas", "pydantic", "numpy", "yaml", "psutil", "uv", "pynvml", "torch", "jax"} == set()


def test_report_as_text_imports_no_charts() -> None:
    loaded = loaded_by("report", str(RESULTS / QUICK))
    assert "numpy" in loaded and not loaded & {"altair", "pandas", "torch"}
