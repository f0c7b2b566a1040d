"""Tests of the published JSON Schema of records: it accepts what the reader accepts, and refuses what it refuses."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from snnbench.recording import schema
from snnbench.recording.reading import RECORDS
from snnbench.recording.record import parse
from tests.shipped import OLDER, QUICK, RESULTS

FILES = sorted((*RESULTS.glob(f"*/{RECORDS}"), *OLDER.glob(f"*/{RECORDS}")))
VALIDATOR = Draft202012Validator(schema.json_schema("record"))
LINES = 12
"""The lines of each recording that are validated, spread over it."""


def documents(path: Path) -> list[dict[str, Any]]:
    """Some records of a file, as the reader completes those of old schemas."""
    lines = path.read_text(encoding="utf-8").splitlines()
    some = [json.loads(line) for line in lines[:: max(1, len(lines) // LINES)]]
    for document in some:
        if document["schema"] < 3:
            document["case"]["input_kind"] = "spikes"
    return some


@pytest.mark.parametrize("path", FILES, ids=[path.parent.name for path in FILES])
def test_committed_records_match(path: Path) -> None:
    for document in documents(path):
        VALIDATOR.validate(document)
        assert parse(json.dumps(document), path.parent) is not None


@pytest.mark.parametrize("name", ["record", "reply", "config", "machine", "environments"])
def test_schema_is_valid_and_names_itself(name: str) -> None:
    document = schema.json_schema(name)
    Draft202012Validator.check_schema(document)
    assert document["title"] == f"snnbench {name}" and document["$schema"] == schema.DRAFT


CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "another status": lambda line: line["outcome"].update(status="fast"),
    "no case": lambda line: line.pop("case"),
    "a library with a path": lambda line: line.update(library="../x"),
    "an unknown field of the case": lambda line: line["case"].update(colour="red"),
    "a trial below 0": lambda line: line.update(trial=-1),
    "text for a size": lambda line: line["case"].update(neurons="many"),
    "a duration below 0": lambda line: line["phases"]["train"]["repetitions_ns"].append(-1),
}


def test_key_that_ends_a_line_is_named_in_one_line() -> None:
    assert schema.complaint("environments", {"a\nb": 1}) == r"'a\nb': Input should be a valid dictionary"


@pytest.mark.parametrize("change", CHANGES)
def test_changed_record_is_refused_by_reader_and_schema(change: str) -> None:
    path = RESULTS / QUICK / RECORDS
    document = next(line for line in documents(path) if "train" in line["phases"])
    CHANGES[change](document)
    assert not VALIDATOR.is_valid(document)
    assert parse(json.dumps(document), path.parent) is None
