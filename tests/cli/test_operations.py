"""Tests of `snnbench operations`: its four formats, its choice of cases, and its refusals."""

import csv
import io
import json
from pathlib import Path

import pytest

from tests.shipped import QUICK, RESULTS
from tests.sweep import Workspace

RECORDING = RESULTS / QUICK
OPTIONS = ("operations", "--config", "quick", "--set", "case.threads=1", "--set", "sweep.neurons=32")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def test_json_has_every_case_and_its_layers(workspace: Workspace) -> None:
    document = json.loads(workspace.ask(*OPTIONS, "--format", "json"))
    assert document["definitions"] == "NeuroBench 2.3.0"
    assert [entry["case"]["reset"] for entry in document["cases"]] == ["subtract", "zero"]
    for entry in document["cases"]:
        assert entry["dense_operations"] == 32 * 32 * 100 and entry["effective_macs"] == 0
        assert entry["activation_sparsity_by_layer"] == {"layer 1 neurons": entry["activation_sparsity"]}
        assert (entry["samples"], entry["reason"]) == (16, "")


def test_csv_has_a_row_for_each_case_of_a_recording(workspace: Workspace) -> None:
    printed = workspace.ask("operations", str(RECORDING), "--format", "csv", "--only", "reset=zero")
    (row,) = csv.DictReader(io.StringIO(printed))
    assert (row["case"], row["footprint_bytes"], row["effective_acs"]) == ("3bf48190321f23d6", "263168", "651984.0")


def test_table_has_a_row_for_each_work(workspace: Workspace) -> None:
    lines = workspace.ask(*OPTIONS).splitlines()
    assert lines[0].startswith("- all cases: 32 neurons, batch 16, 100 steps, float32")
    assert any(line.startswith("| work | footprint |") for line in lines)
    assert any("16 of 16" in line and "zero" in line for line in lines)
    assert "as NeuroBench 2.3.0 defines them" in "\n".join(lines)


def test_missing_numbers_have_a_reason_and_a_dash(workspace: Workspace) -> None:
    printed = workspace.ask("operations", "--config", "loading", "--only", "strategy=memory")
    assert "not computed: the input is read from the files of a dataset" in printed
    assert "nan" not in printed.lower() and "0 of 50" in printed


def test_output_is_written_to_a_file(workspace: Workspace) -> None:
    assert workspace.ask(*OPTIONS, "-o", "counts.csv", "--format", "csv") == ""
    assert (workspace.folder / "counts.csv").read_text().startswith("case,title,footprint_bytes")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((str(RECORDING), "--config", "quick"), "name recordings or a config, not both"),
        ((str(RECORDING), "--set", "case.batch=2"), "name recordings or a config, not both"),
        (("--only", "library=norse"), "the operations of a case are those of every library"),
        (("--only", "neurons>5000"), "no case is left"),
        (("--config", "quikc"), "did you mean 'quick'?"),
    ],
)
def test_wrong_choice_is_refused(workspace: Workspace, arguments: tuple[str, ...], reason: str) -> None:
    done = workspace("operations", *arguments)
    assert done.returncode == 2 and reason in done.stderr, done.stderr
