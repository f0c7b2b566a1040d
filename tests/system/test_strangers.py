"""Tests that strangers' files are only data: no command runs or imports part of a recording, or writes elsewhere."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from snnbench.recording.reading import CONFIG, RECORDS
from tests.shipped import QUICK, RESULTS
from tests.sweep import process, snnbench
from tests.whole import WHOLE

TRAP = "from pathlib import Path\nPath('{marker}').touch()\n"
NAMES = ("pandas", "numpy", "scipy", "jinja2", "altair", "torch", "snntorch", "sitecustomize", "usercustomize", "evil")


@pytest.fixture
def trapped(tmp_path: Path) -> Path:
    """A copy of a recording, with modules in it that leave a mark if they are imported or run."""
    folder = Path(shutil.copytree(RESULTS / QUICK, tmp_path / "recording"))
    marker = tmp_path / "ran"
    for name in NAMES:
        (folder / f"{name}.py").write_text(TRAP.format(marker=marker))
    (folder / "adapters").mkdir()
    for name in ("snntorch", "norse", "torch-loop"):
        (folder / "adapters" / f"{name}.py").write_text(TRAP.format(marker=marker))
    (folder / "conftest.py").write_text(TRAP.format(marker=marker))
    (folder / "pyproject.toml").write_text("[project]\nname = 'evil'\n")
    return folder


def first_cell(folder: Path) -> str:
    return str(json.loads((folder / RECORDS).read_text().splitlines()[0])["cell"])


def test_traps_work(trapped: Path) -> None:
    import subprocess

    subprocess.run([sys.executable, "-c", "import evil"], cwd=trapped, check=True)
    assert (trapped.parent / "ran").exists()


def test_no_command_runs_code_of_a_recording(trapped: Path) -> None:
    here = "."
    commands = [
        ["report", here],
        ["report", here, "--format", "csv"],
        ["report", here, "--format", "html", "-o", "../page.html", "--figures", "../figures"],
        ["compare", here, str(RESULTS / QUICK)],
        ["rank", here],
        ["check", here],
        ["show", first_cell(trapped), "--in", here, "--log", "--samples"],
        ["merge", here, "-o", "../merged"],
        ["site", "..", "-o", "../../site"],
    ]
    for command in commands if WHOLE else commands[-3:]:
        done = process(trapped, *command)
        assert done.returncode in (0, 7), (command, done.stderr)
        assert not (trapped.parent / "ran").exists(), command


def test_replay_runs_the_installed_adapter_only(trapped: Path) -> None:
    """If the contender is not installed, nothing runs at all."""
    lines = (trapped / RECORDS).read_text().replace('"library": "snntorch"', '"library": "evil"')
    (trapped / RECORDS).write_text(lines)
    done = process(trapped, "show", first_cell(trapped), "--in", ".", "--replay")
    assert done.returncode == 2 and "evil/unbind is not here; --adapter FILE adds it" in done.stderr
    assert not (trapped.parent / "ran").exists()


@pytest.mark.parametrize(
    "name", ["../../evil", "/etc/passwd", "..", "a/b", "a\\b", "~root", "$(id)", "-rf", "a\nb", "\x1b[2J"]
)
def test_names_with_path_or_shell_characters_are_refused(trapped: Path, name: str) -> None:
    line = json.loads((trapped / RECORDS).read_text().splitlines()[0])
    (trapped / RECORDS).write_text(
        json.dumps(line | {"library": name}) + "\n" + json.dumps(line | {"variant": name}) + "\n"
    )
    done = snnbench(trapped, "check", ".")
    assert done.returncode == 7 and "2 lines are no records" in done.stdout


def test_figures_stay_in_their_folder(trapped: Path) -> None:
    """The config's name is a path that leads elsewhere."""
    config = json.loads((trapped / CONFIG).read_text())
    config["config"]["name"] = "../../../outside"
    (trapped / CONFIG).write_text(json.dumps(config))
    before = {path for path in trapped.parent.rglob("*")}
    done = snnbench(trapped, "report", ".", "--figures", "../figures")
    assert done.returncode == 0, done.stderr
    fresh = {path for path in trapped.parent.rglob("*")} - before
    assert fresh and all(path.is_relative_to(trapped.parent / "figures") or path.name == "home" for path in fresh), (
        fresh
    )


def test_help_warns_that_adapter_code_runs(tmp_path: Path) -> None:
    for command in ("run", "verify", "list", "show", "doctor"):
        help_text = " ".join(snnbench(tmp_path, command, "--help").stdout.replace("│", " ").split())
        assert "Its code runs with your rights" in help_text, command
