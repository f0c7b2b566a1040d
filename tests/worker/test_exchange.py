"""Tests of importers and exporters of NIR graphs with fake libraries: every outcome, and one clear line for each."""

import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from snnbench.adapter.loading import read_and_load
from snnbench.conformance.graph import Graph, Node
from snnbench.environments import Env
from snnbench.plan import config, graph_files
from snnbench.recording.reading import Recording
from snnbench.recording.record import Record
from snnbench.report.overview import find
from snnbench.report.text.exchange_table import sections
from snnbench.run.local import run
from snnbench.run.request import RunRequest
from snnbench.worker import exchange
from snnbench.worker.exchange import reply_to
from snnbench.worker.messages import Measure, Reply, Request
from tests.nir_cases import NIR
from tests.nir_graphs import dense, fake
from tests.plan.test_configs import CONFIGS

IMPORTING, DIFFERENCES, OUTPUT = "pass  # importing", "DIFFERENCES = ()", "return output"
LATE = (DIFFERENCES, 'DIFFERENCES = (("latency", "late"),)')
WRITTEN = "tau = dt /"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNNBENCH_HOME", str(tmp_path / "home"))


def asked(folder: Path, measure: Measure = "import", **neurons: Any) -> Request:
    graph = graph_files.text(str(dense(folder / "small.nir", **neurons)))
    return Request(measure=measure, case=NIR.with_(graph=graph, time_steps=30), variant="")


def answer(folder: Path, *changes: tuple[str, str], measure: Measure = "import", **neurons: Any) -> Reply:
    return reply_to(asked(folder, measure, **neurons), read_and_load(fake(folder, "fake", *changes)))


def recorded(folder: Path, *changes: tuple[str, str], **protocol: Any) -> Recording:
    """A run of a fake library on a graph."""
    axes = {"graph": [graph_files.text(str(dense(folder / "small.nir")))]}
    loaded = config.load(CONFIGS / "exchange.toml", ["sweep.libraries=['fake']", "case.dt=0.001"], 1, axes)
    adapter = fake(folder, "fake", *changes)
    output = folder / "recorded"
    request = RunRequest(
        config=loaded.with_protocol(**protocol), adapter_files=(adapter,), env=Env.current, output=output
    )
    return run(request)


def importer(recording: Recording) -> Record:
    (record,) = (each for each in recording.exchanges if each.measure == "import")
    return record


def test_importer_with_the_documented_output_is_exact(tmp_path: Path) -> None:
    reply = answer(tmp_path)
    assert reply.outcome is not None and reply.outcome.verdict == "exact"
    comparison = reply.settings["comparison"]
    assert (comparison["differing"], comparison["compared"]) == (0, 30 * 4 * 2)


@pytest.mark.parametrize(
    ("change", "verdict", "reason"),
    [
        (LATE, "deviates", "output one step late"),
        ((OUTPUT, "return 1 - output"), "incorrect", "no known interpretation of the graph has this output"),
        ((OUTPUT, "return output[:-1]"), "incorrect", "output of shape [29, 4, 2], expected [30, 4, 2]"),
        ((IMPORTING, 'raise ValueError("no LIF")'), "unsupported", "ValueError: no LIF"),
        ((IMPORTING, 'assert batch == 1, "one sample"'), "unsupported", "AssertionError: one sample"),
        ((IMPORTING, 'raise Unsupported("no dt")'), "unsupported", "no dt"),
        ((IMPORTING, "int('x')"), "crash", "ValueError: invalid literal for int() with base 10: 'x'"),
        ((IMPORTING, "path.absent"), "crash", "AttributeError: 'PosixPath' object has no attribute 'absent'"),
        ((OUTPUT, "raise ValueError('a\\nb')"), "crash", "ValueError: a"),
    ],
)
def test_every_answer_has_one_clear_line(tmp_path: Path, change: Any, verdict: str, reason: str) -> None:
    outcome = answer(tmp_path, change).outcome
    assert outcome is not None and (outcome.verdict or outcome.kind) == verdict
    line = str(outcome.reason or outcome.deviation)
    assert reason in line and "\n" not in line


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
    with mock.patch.dict(sys.modules):
        sys.modules.pop("nir", None)
        outcome = answer(tmp_path, (IMPORTING, "import nir; nir.read(path)")).outcome
    assert outcome is not None and outcome.kind == "unsupported"
    assert str(outcome.reason).startswith("needs nir ") and f", which {reason}" in str(outcome.reason)


@pytest.mark.parametrize(
    ("change", "verdict", "reason"),
    [
        ((WRITTEN, WRITTEN), "exact", ""),
        ((WRITTEN, "tau = 1 /"), "deviates", "tau taken as steps"),
        ((WRITTEN, "tau = -dt /"), "incorrect", "what it wrote is not read: "),
        (("case.threshold}", "1e6}"), "incorrect", "no known interpretation"),
    ],
)
def test_written_graph_is_held_to_the_network_that_was_written(
    tmp_path: Path, change: Any, verdict: str, reason: str
) -> None:
    outcome = answer(tmp_path, change, measure="export", tau=[0.004, 0.004]).outcome
    assert outcome is not None and (outcome.verdict or outcome.kind) == verdict
    assert reason in str(outcome.reason or outcome.deviation or "")


def test_written_neuron_of_another_kind_is_named() -> None:
    """Sinabs writes a LIF with a synapse as a LIF, so the synapse is lost."""
    asked, written = (Graph((Node("neurons", kind, {}),)) for kind in ("CubaLIF", "LIF"))
    assert exchange._replaced(asked, written) == "; it has LIF in place of CubaLIF"
    assert exchange._replaced(asked, asked) == ""


def test_graph_that_is_no_chain_of_layers_is_not_written(tmp_path: Path) -> None:
    outcome = answer(tmp_path, measure="export").outcome  # its neurons have time constants of their own
    assert outcome is not None and outcome.kind == "unsupported" and "layers with one decay" in str(outcome.reason)


def test_recording_of_a_graph_has_what_importer_and_exporter_make_of_it(tmp_path: Path) -> None:
    recording = recorded(tmp_path, LATE)
    assert [record.outcome.kind for record in recording.records] == ["unsupported"]  # the fake has no neuron
    assert {record.measure for record in recording.exchanges} == {"import", "export"}
    assert recording.finished and not recording.unfinished
    (section,) = sections(find(recording))
    assert section.tables[0].rows == [["small", "0.001", "0.2050", "deviates"]]
    assert "fake: import: deviates: output one step late (small 0.001)" in section.remarks


@pytest.mark.parametrize(
    ("change", "verdict", "reason"),
    [
        ((IMPORTING, "os._exit(3)"), "crash", "exit status 3"),
        (("import time", "import absent_package"), "import", "No module named 'absent_package'"),
    ],
)
def test_importer_that_ends_its_process_is_a_record(tmp_path: Path, change: Any, verdict: str, reason: str) -> None:
    outcome = importer(recorded(tmp_path, change)).outcome
    assert outcome.kind == verdict and reason in str(outcome.reason) and "\n" not in str(outcome.reason)


def test_importer_that_hangs_is_stopped(tmp_path: Path) -> None:
    outcome = importer(recorded(tmp_path, (IMPORTING, "time.sleep(60)"), timeout_seconds=1.0)).outcome
    assert (outcome.kind, outcome.reason) == ("timeout", "no reply within 1 s; killed")


def test_library_without_importer_has_no_cell_of_it(tmp_path: Path) -> None:
    recording = recorded(tmp_path, ("def from_nir(", "def from_nothing("))
    assert [record.measure for record in recording.exchanges] == ["export"]
