"""Tests of runs of importers with fake libraries: every outcome, and one clear line for each."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from snnbench.adapter.loading import read_and_load
from snnbench.adapter.reading import read
from snnbench.conformance.network import Input
from snnbench.environments import Env
from snnbench.plan import config, graph_files
from snnbench.recording.conformance import Row, write
from snnbench.recording.conformance import read as read_recording
from snnbench.report.overview import find
from snnbench.report.text.markdown import markdown
from snnbench.report.text.nir_table import csv, report, sections
from snnbench.run.importers import Examination, beside, examine
from snnbench.run.request import RunRequest
from snnbench.worker.importer import reply_to
from snnbench.worker.messages import ImportRequest
from tests.nir_cases import NIR
from tests.nir_graphs import GRAPHS, dense, fake
from tests.plan.test_configs import CONFIGS
from tests.recordings import recording, timed

IMPORTING, DIFFERENCES, OUTPUT = "pass  # importing", "DIFFERENCES = ()", "return output"
LATE = (DIFFERENCES, 'DIFFERENCES = (("latency", "late"),)')


def examination(folder: Path, adapter: Path, **changes: Any) -> Examination:
    fields: dict[str, Any] = {
        "files": [dense(folder / "small.nir")],
        "steps_s": [1e-3],
        "adapters": [read(adapter)],
        "given": Input(time_steps=30, batch=3, seed=0),
        "timeout_s": 60.0,
        "managed": False,
    }
    return Examination(**fields | changes)


def row_of(folder: Path, *changes: tuple[str, str], **fields: Any) -> Row:
    request = examination(folder, fake(folder, "fake", *changes), **fields)
    (row,) = examine(request, lambda line: None).rows
    return row


def test_importer_with_the_documented_output_is_exact(tmp_path: Path) -> None:
    row = row_of(tmp_path)
    assert (row.verdict, row.comparison["differing"], row.comparison["compared"]) == ("exact", 0, 30 * 3 * 2)


def test_importer_with_another_reading_deviates(tmp_path: Path) -> None:
    row = row_of(tmp_path, LATE)
    assert (row.verdict, row.outcome.deviation) == ("deviates", "output one step late")
    assert row.comparison["differing"] and row.comparison["first"]


@pytest.mark.parametrize(
    ("change", "verdict", "reason"),
    [
        ((OUTPUT, "return 1 - output"), "incorrect", "no known interpretation of the graph has this output"),
        ((OUTPUT, "return output[:-1]"), "incorrect", "output of shape [29, 3, 2], expected [30, 3, 2]"),
        ((IMPORTING, 'raise ValueError("no LIF")'), "unsupported", "ValueError: no LIF"),
        ((IMPORTING, 'assert batch == 1, "one sample"'), "unsupported", "AssertionError: one sample"),
        ((IMPORTING, 'raise Unsupported("no dt")'), "unsupported", "no dt"),
        ((IMPORTING, "int('x')"), "crash", "ValueError: invalid literal for int() with base 10: 'x'"),
        ((IMPORTING, "path.absent"), "crash", "AttributeError: 'PosixPath' object has no attribute 'absent'"),
        ((OUTPUT, "raise ValueError('a\\nb')"), "crash", "ValueError: a"),
    ],
)
def test_every_answer_has_one_clear_line(tmp_path: Path, change: Any, verdict: str, reason: str) -> None:
    request = ImportRequest(graph=str(dense(tmp_path / "small.nir")), dt=1e-3, time_steps=30, batch=3, seed=0)
    outcome = reply_to(request, read_and_load(fake(tmp_path, "fake", change))).outcome
    assert outcome is not None and (outcome.verdict or outcome.kind) == verdict
    assert reason in str(outcome.reason) and "\n" not in str(outcome.reason)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("LIF(v_reset=0)", "reads no v_reset"),
        ("{}['tau']", "does not read this graph: KeyError: 'tau'"),
    ],
)
def test_graph_that_the_librarys_nir_does_not_read_is_unsupported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, reason: str
) -> None:
    """Any later release of nir writes v_reset, and nir 1.0.4 refuses it by Python's own TypeError."""
    package = tmp_path / "site-packages" / "nir"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"def LIF():\n    pass\n\n\ndef read(path):\n    return {body}\n")
    monkeypatch.syspath_prepend(package.parent)
    request = ImportRequest(graph=str(dense(tmp_path / "small.nir")), dt=1e-3, time_steps=30, batch=3, seed=0)
    with mock.patch.dict(sys.modules):
        sys.modules.pop("nir", None)
        loaded = read_and_load(fake(tmp_path, "fake", (IMPORTING, "import nir; nir.read(path)")))
        outcome = reply_to(request, loaded).outcome
    assert outcome is not None and outcome.kind == "unsupported"
    assert str(outcome.reason).startswith("needs nir ") and f", which {reason}" in str(outcome.reason)


@pytest.mark.parametrize(
    ("change", "verdict", "reason"),
    [
        ((IMPORTING, "os._exit(3)"), "crash", "exit status 3"),
        (("import time", "import absent_package"), "import", "No module named 'absent_package'"),
        (("def from_nir(", "def from_nothing("), "unsupported", "its adapter has no function from_nir"),
        (("def from_nir(", 'NO_NIR = "it is old"\n\n\ndef old('), "unsupported", "it is old"),
    ],
)
def test_library_without_an_answer_has_one_clear_line(tmp_path: Path, change: Any, verdict: str, reason: str) -> None:
    row = row_of(tmp_path, change)
    assert row.verdict == verdict
    assert reason in str(row.outcome.reason) and "\n" not in str(row.outcome.reason)


def test_importer_that_hangs_is_stopped(tmp_path: Path) -> None:
    row = row_of(tmp_path, (IMPORTING, "time.sleep(60)"), timeout_s=1.0)
    assert (row.verdict, row.outcome.reason) == ("timeout", "no reply within 1 s; killed")


def test_environment_that_cannot_be_made_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNNBENCH_HOME", str(tmp_path / "home"))
    row = row_of(tmp_path, ('dependencies = ["numpy"]', 'dependencies = ["not a requirement"]'), managed=True)
    assert row.verdict == "environment" and "script header" in str(row.outcome.reason)


def test_recording_has_the_rows_that_were_written(tmp_path: Path) -> None:
    files = [GRAPHS / "li.nir", dense(tmp_path / "small.nir")]
    recorded = examine(examination(tmp_path, fake(tmp_path, "fake", LATE), files=files), lambda line: None)
    write(tmp_path / "a.json", recorded)
    copy = read_recording(tmp_path / "a.json")
    assert copy == recorded and markdown(report(copy)) == markdown(report(recorded))
    assert [row.graph for row in copy.rows] == ["li", "small"] and set(copy.graphs) == {"li", "small"}
    assert csv(copy).splitlines()[1].startswith("li,0.001,fake,")


def test_recording_of_a_graph_has_what_the_importers_of_its_libraries_make_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SNNBENCH_HOME", str(tmp_path / "home"))
    case = NIR.with_(graph=graph_files.text(str(dense(tmp_path / "small.nir"))), time_steps=30)
    folder = tmp_path / "recorded"
    folder.mkdir()
    adapter = fake(tmp_path, "fake", LATE)
    times = (timed("fake", train=3.0, case=each) for each in (case, case.with_(batch=2)))
    given = replace(recording(*times), folder=folder)
    loaded = config.load(CONFIGS / "nir.toml", default_threads=1, axes={"graph": ["nested"]})
    request = RunRequest(config=loaded, adapter_files=(adapter,), env=Env.current)
    beside(request, given, lambda line: None)
    (section,) = sections(find(given))
    assert section.tables[0].rows == [["small", "0.001", "0.2167", "deviates"]]
    assert section.remarks == ["fake: deviates: output one step late (small 0.001)"]
    (folder / "importers.json").write_text("kept")
    beside(request, given, lambda line: None)
    assert (folder / "importers.json").read_text() == "kept"
