"""Tests of measures as folders: the one of the tutorial is added to a copy of the package, and another is deleted."""

import re
import shutil
from pathlib import Path

import pytest

from snnbench.report import tidy
from tests.documents import ROOT, fences, written
from tests.fakes import CORRECT, write
from tests.sweep import lines, process, recordings, run_arguments, write_config
from tests.whole import WHOLE

PAGE = written(ROOT / "docs" / "tutorials" / "add-a-measure.md")
HALVES = ("worker", "harness", "report")
FORMATS = ("markdown", "csv", "json", "html")


def package(folder: Path) -> Path:
    """A copy of the package, which is imported by processes that start in its folder."""
    return Path(shutil.copytree(ROOT / "snnbench", folder / "snnbench", ignore=shutil.ignore_patterns("__pycache__")))


def run(folder: Path, *settings: str) -> tuple[int, str]:
    """Run a small config there; the exit status and what is printed."""
    config = write_config(folder, ["a"], trials=1, memory_trials=1)
    options = [part for setting in settings for part in ("--set", setting)]
    done = process(folder, *run_arguments(config, [write(folder, CORRECT, "a")], *options))
    return done.returncode, done.stdout + done.stderr


def test_measure_of_the_tutorial_is_measured_checked_and_shown(tmp_path: Path) -> None:
    measure = package(tmp_path) / "measures" / "page_faults"
    measure.mkdir()
    (measure / "__init__.py").touch()
    for half, source in zip(HALVES, fences(PAGE, "python"), strict=True):
        (measure / f"{half}.py").write_text(source)
    status, printed = run(tmp_path, "protocol.page_faults=true")
    assert status == 0 and "| page faults |" in printed, printed
    (recording,) = recordings(tmp_path)
    counted = [phase for line in lines(recording) for phase in line["phases"].values() if "page_faults" in phase]
    assert counted and {phase["page_faults"]["passes"] for phase in counted} == {10}
    assert "page_faults" in process(tmp_path, "report", recording, "--format", "csv").stdout
    assert "page_faults" not in "".join(tidy.COLUMNS)
    text = (recording / "records.jsonl").read_text()
    fewer = text.replace('"page_faults": {"passes": 10', '"page_faults": {"passes": 9')
    (recording / "records.jsonl").write_text(fewer)
    checked = process(tmp_path, "check", recording).stdout
    assert len(re.findall(r"page-faults.*: page faults of 9 passes", checked)) == len(counted), checked


@pytest.mark.parametrize("name", ["energy", "neuron_share"] if WHOLE else ["neuron_share"])
def test_measure_is_gone_with_its_folder(tmp_path: Path, name: str) -> None:
    shutil.rmtree(package(tmp_path) / "measures" / name)
    status, printed = run(tmp_path, f"protocol.{name}=true")
    assert status == 3 and f"protocol.{name}" in printed and "unknown" in printed
    status, printed = run(tmp_path)
    assert status == 0, printed
    (recording,) = recordings(tmp_path)
    assert process(tmp_path, "check", recording).returncode == 0
    for form in FORMATS:
        assert process(tmp_path, "report", recording, "--format", form, "-o", f"report.{form}").returncode == 0
    assert process(tmp_path, "rank", recording, "--metric", name).returncode == 2
