"""Tests of the checker on the proofs of shipped records, each with one change."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from snnbench import checking
from snnbench.cases.outcome import decode
from snnbench.checking import records
from snnbench.recording.reading import RECORDS, read
from snnbench.recording.record import Record
from snnbench.workloads.linear_lif import Case
from tests.shipped import OTHER_NEURONS, RESULTS, TIMED, Document, copied, shipped, spot


def sound(measure: str) -> Document:
    """A record of this kind of measurement that keeps all rules."""
    return next(one for one in read(shipped(TIMED)).records if one.measure == measure).as_dict()


def proof(document: Document) -> list[str]:
    """The complaints about the proof in a record of schema 3."""
    return list(
        records.proof(
            Record(**document | {"case": Case(**document["case"]), "outcome": decode(document["outcome"])}), 3
        )
    )


def test_several_layers_need_a_second_exam() -> None:
    deep = sound("time") | {"case": sound("time")["case"] | {"layers": 2}}
    assert "no check exam-2" in proof(deep)
    assert "no check exam-2" not in proof(sound("time"))
    deep["checks"] = deep["checks"] | {"exam-2": deep["checks"]["exam-1"]}
    assert "no check exam-2" not in proof(deep)


def test_verified_record_needs_a_spot_check() -> None:
    recorded = read(RESULTS / OTHER_NEURONS).records
    verified = next(one for one in recorded if one.status == "measured").as_dict()
    assert verified["measure"] == "verify" and proof(verified) == []
    verified["checks"] = {name: check for name, check in verified["checks"].items() if not name.startswith("spot-")}
    assert "no spot check" in proof(verified)


def test_fault_of_a_contender_with_its_own_rule_is_reported(tmp_path: Path) -> None:
    folder = copied(tmp_path, OTHER_NEURONS)

    def lie(record: Document) -> None:
        record["checks"]["exam-1"].update(correct=False, complaints=["another neuron"])

    lines = [json.loads(line) for line in (folder / RECORDS).read_text().splitlines()]
    lie(next(line for line in lines if "own_rule" in line["outcome"]))
    (folder / RECORDS).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert [one.text for one in checking.check(folder)] == ["exam-1: found a fault: another neuron"]


DEVIATING: list[tuple[str, Callable[[Document], Any]]] = [
    ("spot-train: compared nothing", lambda r: spot(r).update(compared=0)),
    ("exam-1: compared 1, where", lambda r: r["checks"]["exam-1"].update(compared=1)),
    ("common-train: compared 5, where", lambda r: r["checks"]["common-train"].update(compared=5)),
    ("spot-train: 900000 spikes differ", lambda r: spot(r).update(differing=900000)),
    ("how far off its gradient", lambda r: r["checks"].pop("common-train")),
    ("how far off its gradient", lambda r: r["checks"]["common-train"]["gradient_errors"].clear()),
    ("malformed: KeyError", lambda r: spot(r).pop("rate")),
]


@pytest.mark.parametrize(("text", "change"), DEVIATING, ids=[text for text, _ in DEVIATING])
def test_deviating_record_needs_its_distance(tmp_path: Path, text: str, change: Callable[[Document], Any]) -> None:
    folder = copied(tmp_path, "2026-11-25_library-defaults_epyc-2cpu")
    path = folder / RECORDS
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    free = next(line for line in lines if "deviation" in line["outcome"] and "own_rule" not in line["outcome"])
    change(free)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert [one.rule for one in checking.check(folder) if text in one.text] == ["proof"]


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_non_finite_rate_is_reported(value: float) -> None:
    timed = next(one for one in read(shipped(TIMED)).records if one.measure == "time")
    document = timed.as_dict()
    spot(document).update(rate=value)
    record = replace(timed, checks=document["checks"])
    assert "spot-train: rate is" in " ".join(records.proof(record, 3))


def test_diverged_sample_in_several_layers_is_not_a_fault() -> None:
    """One spike that rounding moves in a hidden layer changes a whole sample."""
    (sound,) = [one for one in read(shipped(TIMED)).records if one.measure == "time" and one.library == "norse"][:1]
    check = sound.checks["spot-inference"] | {"differing": 400}
    record = replace(sound, checks=sound.checks | {"spot-inference": check, "exam-2": sound.checks["exam-1"]})
    assert any("400 of 76800 spikes differ" in text for text in records.proof(record, 3))
    deep = replace(record, case=record.case.with_(layers=2))
    assert not any("spikes differ" in text for text in records.proof(deep, 3))
