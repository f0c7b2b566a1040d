"""Tests of the checker on recordings of each schema: a newer field is reported, and a newer rule does not apply."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from snnbench import checking
from snnbench.checking import files, records
from snnbench.plan.config import Protocol
from snnbench.recording.reading import read
from tests.shipped import TIMED, Document, copied, edited_record, shipped


def relabelled(schema: int, more: Callable[[Document], Any] = lambda line: None) -> Callable[[Document], Any]:
    """A line with an older schema, without that schema's missing fields, and with the change `more`."""

    def change(line: Document) -> None:
        line["schema"] = schema
        line["case"].pop("input_kind")
        if schema < 2:
            line.pop("peaks")
            for timing in line["phases"].values():
                for name in ("flops", "least_bytes", "floor_ns", "times_floor"):
                    timing.pop(name)
        more(line)

    return change


RULE = {"slope": 1.0}
OLDER: list[tuple[int, str, Callable[[Document], Any]]] = [
    (1, "peaks", lambda line: line.update(peaks={})),
    (1, "floor_ns", lambda line: line["phases"]["train"].update(flops=1, least_bytes=1, floor_ns=1, times_floor=1.0)),
    (2, "own_rule", lambda line: line["outcome"].update(own_rule=RULE)),
    (2, "inference_only", lambda line: line["outcome"].update(inference_only="slow")),
    (2, "common-train", lambda line: line["checks"].update({"common-train": COMMON})),
    (2, "input_kind", lambda line: line["case"].update(input_kind="spikes")),
]
COMMON: Document = {
    **{"compared": 5, "differing": 1, "gradient_errors": {}, "complaints": [], "rate": 0.5, "expected_rate": 0.1},
    "cosines": {},
}


@pytest.mark.parametrize(("schema", "text", "more"), OLDER, ids=[f"{w[0]}-{w[1]}" for w in OLDER])
def test_newer_field_in_an_older_schema_is_reported(
    tmp_path: Path, schema: int, text: str, more: Callable[[Document], Any]
) -> None:
    folder = copied(tmp_path)

    def schema_complaints() -> list[str]:
        return [one.text for one in checking.check(folder) if one.rule == "files" and "did not have" in one.text]

    edited_record(folder, "time", relabelled(schema))
    assert schema_complaints() == []
    edited_record(folder, "time", more)
    (complaint,) = schema_complaints()
    assert f"is of schema {schema}, which did not have " in complaint and text in complaint


@pytest.mark.parametrize(
    ("more", "newer"),
    [
        ({}, []),
        ({"attempt": 0}, ["attempt"]),
        ({"checks": {"fresh-train": {}, "spot-train": {}}}, ["fresh-train"]),
        ({"phases": {"train": {"fresh_ns": [1], "drawn_ns": [1], "passes": 1}}}, ["drawn_ns", "fresh_ns"]),
        ({"phases": {"train": {"drawn_ns": [1]}}, "attempt": 1}, ["drawn_ns", "attempt"]),
    ],
)
def test_fresh_passes_and_attempts_came_with_schema_4(more: Document, newer: list[str]) -> None:
    line = {"schema": 3, "case": {"input_kind": "spikes"}, "outcome": {}, **more}
    assert list(files._newer(line)) == newer
    assert list(files._newer(line | {"schema": 4})) == []


def test_sides_came_with_schema_5() -> None:
    line = {"schema": 4, "case": {}, "outcome": {}, "side": "base"}
    assert list(files._newer(line)) == ["side"]
    assert list(files._newer(line | {"schema": 6})) == list(files._newer(line | {"side": ""})) == []


@pytest.mark.parametrize(
    ("since", "more", "newer"),
    [
        (6, {"probes": {"copy": {}}}, "probes"),
        (6, {"phases": {"train": {"instructions": [1]}}}, "instructions"),
        (7, {"case": {"workload": "lif"}}, "workload"),
        (8, {"phases": {"train": {"build_ns": 1}}}, "build_ns"),
        (8, {"phases": {"train": {"contention": {"timed_cpus": 1.0}}}}, "timed_cpus"),
        (8, {"memory": {"passes_ns": []}}, "passes_ns"),
        (8, {"memory": {"host": {"build_bytes": 1}}}, "build_bytes"),
    ],
)
def test_later_fields_came_with_their_schema(since: int, more: Document, newer: str) -> None:
    line = {"case": {}, "outcome": {}, **more}
    assert list(files._newer(line | {"schema": since - 1})) == [newer]
    assert list(files._newer(line | {"schema": since})) == []


def test_mixed_schemas_are_reported(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    edited_record(folder, "time", relabelled(1))
    assert [one.text for one in checking.check(folder) if one.rule == "files"] == [
        "lines of the schemas 1, 3; a recording has one",
        "input_kind, which there was not yet in schema 1",
    ]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"passes": 2, "fresh_ns": [9] * 5, "drawn_ns": [9]}, ""),
        ({"passes": 2, "fresh_ns": [9] * 4, "drawn_ns": [9]}, "4 fresh passes, 1 on content drawn anew, not"),
        ({"passes": 2, "fresh_ns": [9] * 6, "drawn_ns": []}, "6 fresh passes, 0 on content drawn anew, not"),
        ({"passes": 1, "fresh_ns": [5, 6], "drawn_ns": [7, 8]}, ""),
        ({"passes": 1, "fresh_ns": [5], "drawn_ns": [7]}, "a repetition of a single pass is not among"),
        ({"passes": 1}, "malformed"),
    ],
)
def test_every_phase_needs_fresh_passes_since_schema_4(changes: dict[str, Any], complaint: str) -> None:
    recording = read(shipped(TIMED))
    timed = next(one for one in recording.records if one.measure == "time")
    phases = {"train": timed.phases["train"] | {"repetitions_ns": [5, 6, 7], "warmup_ns": [1]} | changes}
    checks = timed.checks | {"fresh-train": timed.checks["spot-train"]}
    protocol = Protocol.model_validate(recording.config["config"]["protocol"]).model_copy(
        update={"phases": ("train",), "repetitions": 3, "warmup_passes": 1}
    )
    record = replace(timed, phases=phases, checks=checks)
    texts = [text for rule, text in records.complaints(record, 4, "", protocol) if rule == "durations"]
    assert any(complaint in text for text in texts) if complaint else texts == []
    assert [text for rule, text in records.complaints(record, 3, "", protocol) if rule == "durations"] == []
    without = replace(record, checks=timed.checks)
    assert "no check fresh-train" in [text for _, text in records.complaints(without, 4, "", protocol)]
