"""Tests of docs/findings.md: every number of it comes from a recording that is there."""

import json
import re
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tests.documents import hook

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "findings.md"
LOADING = ROOT / "results" / "2026-11-25_loading_xeon-2cpu"


findings: Any = hook("findings")
MADE: dict[str, str] = {name: make() for name, make in findings.FINDINGS.items()}


def test_page_has_every_finding_once() -> None:
    assert findings.MARK.findall(PAGE.read_text(encoding="utf-8")) == list(findings.FINDINGS)
    assert "<!-- finding" not in findings.expand(PAGE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", findings.FINDINGS)
def test_finding_has_a_table_its_recording_and_its_command(name: str) -> None:
    rows = re.findall(r"^\|(?! ---)(.*)\|$", MADE[name], re.MULTILINE)
    assert len(rows) > 2 and len({row.count("|") for row in rows}) == 1
    (folder,) = re.findall(r"`snnbench report (results/\S+)`", MADE[name])
    assert (ROOT / folder / "records.jsonl").is_file()
    assert "nan" not in MADE[name].lower()


def test_ratio_of_an_epoch_is_that_of_its_recorded_durations() -> None:
    """Computed once more, from the lines of the recording alone."""
    seconds: dict[str, list[float]] = {}
    for line in (LOADING / "records.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if record["library"] == "sinabs" and record["case"]["workers"] == 0 and "epoch" in record["phases"]:
            epoch = record["phases"]["epoch"]
            trial = median(ns / epoch["passes"] for ns in epoch["repetitions_ns"])
            seconds.setdefault(record["case"]["strategy"], []).append(trial / 1e9)
    (row,) = (line for line in MADE["loading"].splitlines() if line.startswith("| sinabs |"))
    naive, cached = (median(seconds[strategy]) for strategy in ("naive", "memory"))
    assert row.endswith(f"| {naive / cached:.2f} |") and f"| {naive:.2f} |" in row


def test_gain_of_compiling_is_that_of_its_recorded_durations() -> None:
    """Computed once more, from the lines of the recording alone."""
    ms: dict[str, list[float]] = {}
    for line in (findings.newest("ways").folder / "records.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if (record["library"], record["case"]["reset"], record["case"]["dtype"]) == ("torch-loop", "zero", "float32"):
            for train in (phase for name, phase in record["phases"].items() if name == "train"):
                trial = median(ns / train["passes"] for ns in train["repetitions_ns"])
                ms.setdefault(record["variant"], []).append(trial / 1e6)
    eager, compiled = (median(ms[variant]) for variant in ("unbind", "compile"))
    assert f"| torch-loop | zero | {eager:.1f} | {compiled:.1f} | {eager / compiled:.2f} |" in MADE["compiling"]


def test_whole_networks_gain_and_sinabs_loses() -> None:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in MADE["compiling"].splitlines()[2:]]
    gains = [(row[0], row[6], float(row[4])) for row in rows if len(row) == 7]
    whole = [gain for _, breaks, gain in gains if breaks == "no"]
    assert len(whole) > 2 and all(gain > 1 for gain in whole)
    assert [library for library, breaks, gain in gains if breaks == "yes" and gain < 1] == ["sinabs"]


def test_unknown_finding_and_missing_recording_are_errors() -> None:
    with pytest.raises(KeyError, match="invented"):
        findings.expand("<!-- finding: invented -->")
    with pytest.raises(ValueError, match="no recording of invented"):
        findings.newest("invented")
