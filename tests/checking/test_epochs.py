"""Tests of the rules for epochs: a recording of epochs keeps them, and each breach has a complaint."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from snnbench import checking
from tests.pictures import LOADING, TRAINING

Change = Callable[[dict[str, Any]], None]


def complaints(folder: Path, change: Change) -> list[tuple[str, str]]:
    """(rule, complaint) about a copy of the recording of loading in which one record is changed."""
    shutil.copytree(LOADING, folder)
    path = folder / "records.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    record = json.loads(lines[0])
    change(record)
    path.write_text("\n".join([json.dumps(record), *lines[1:]]) + "\n", encoding="utf-8")
    return [(complaint.rule, complaint.text) for complaint in checking.check(folder)]


@pytest.mark.parametrize("recording", [LOADING, TRAINING], ids=lambda recording: recording.name)
def test_recording_of_epochs_keeps_the_rules(recording: Path) -> None:
    assert checking.check(recording) == []


def other_losses(record: dict[str, Any]) -> None:
    record["phases"]["epoch"]["losses_digest"] = "0" * 16


def other_data(record: dict[str, Any]) -> None:
    record["settings"]["content"] = "0" * 16


def no_check_of_losses(record: dict[str, Any]) -> None:
    del record["checks"]["losses-epoch"]


def few_batches(record: dict[str, Any]) -> None:
    record["checks"]["content-epoch"]["compared"] = 1999


def differing_frames(record: dict[str, Any]) -> None:
    wrong = {"differing": 3, "unexplained": 3, "complaints": ["3 of 9 numbers"], "correct": False}
    record["checks"]["content-loader"] |= wrong


def missing_part(record: dict[str, Any]) -> None:
    parts = record["phases"]["epoch"]["parts_ns"]
    del parts[max(parts, key=lambda part: parts[part][0])]


def repeated_order(record: dict[str, Any]) -> None:
    record["phases"]["epoch"]["fresh_ns"] = []


def no_warm_up(record: dict[str, Any]) -> None:
    record["phases"]["compute"]["warmup_ns"] = []


BREACHES: list[tuple[Change, str, str]] = [
    (other_losses, "learning", "the strategies have 2 different losses"),
    (other_data, "learning", "the strategies have 2 different data"),
    (no_check_of_losses, "proof", "no check losses-epoch"),
    (few_batches, "proof", "content-epoch: compared 1999, where there are at least 2000 numbers"),
    (differing_frames, "proof", "content-loader: found a fault: 3 of 9 numbers"),
    (missing_part, "durations", "epoch: the parts of epoch 0 take "),
    (repeated_order, "durations", "epoch: an epoch is not among those on samples in a new order"),
    (no_warm_up, "durations", "compute: 0 warm-up steps, not 2"),
]


@pytest.mark.parametrize(("change", "rule", "text"), BREACHES, ids=lambda part: getattr(part, "__name__", ""))
def test_breach_has_a_complaint(tmp_path: Path, change: Change, rule: str, text: str) -> None:
    breaches = complaints(tmp_path / "copy", change)
    assert breaches and all(each == rule for each, _ in breaches), breaches
    assert any(text in complaint for _, complaint in breaches), breaches
