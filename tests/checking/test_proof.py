"""Tests of the rule for a record's proof: each limit of the checker, with a record on either side of it."""

from typing import Any

import pytest

from snnbench.cases.outcome import decode
from snnbench.checking import records
from snnbench.recording.record import Record
from tests.fakes import CASE, LIF
from tests.recordings import EXACT, record

Document = dict[str, Any]
R = 2.0**-24
LONG: Document = {"time_steps": 500, "batch": 20, "neurons": 64}
"""A weight gradient sums 10,000 terms and may be off by 100 roundoffs; an input gradient sums 64: 84."""
LONG_VALUES = 500 * 20 * 64
EXAM_VALUES = 3 * 8 * 5 * 37
ERRORS = {"weight": 0.0, "bias": 0.0, "input": 0.0}
NEURON = {"slope": 1.0}


def check(compared: int, **changes: Any) -> Document:
    """A check that compared so many values without a fault."""
    sound = {"compared": compared, "differing": 0, "unexplained": 0, "first_wrong": "", "rate": 0.25}
    sound |= {"gradient_errors": dict(ERRORS), "complaints": [], "correct": True, "neurons": 64, "samples": 20}
    return sound | changes


def measured(checks: Document, changes: Document = LONG, measure: str = "time", **outcome: Any) -> Record:
    """A record of a training pass with these checks, and sound ones in place of the other required checks."""
    phases = {"train": {}} if measure == "time" else {}
    sound = {"exam-1": check(EXAM_VALUES), "spot-train": check(LONG_VALUES)}
    declared = {"status": "measured", "verdict": "exact", **outcome}
    return record(
        "a", measure, case=CASE.with_(**changes), phases=phases, checks=sound | checks, outcome=decode(declared)
    )


def proof(cell_record: Record, schema: int = 3) -> list[str]:
    return list(records.proof(cell_record, schema))


def test_sound_record_has_no_complaint() -> None:
    assert proof(measured({})) == []
    assert proof(measured({"fresh-train": check(LONG_VALUES)}), 4) == []
    assert proof(measured({}), 4) == ["no check fresh-train"]


@pytest.mark.parametrize(
    ("name", "changes", "given", "declared", "least", "most"),
    [
        ("exam-1", {}, {}, {}, 8 * 5 * 37, 3 * 8 * 5 * 37),
        ("exam-2", {}, {}, {}, 8 * 5 * 37, 3 * 8 * 5 * 37),
        ("exam-1", {}, {}, {"own_rule": NEURON}, 8 * 5 * 37, 3 * 8 * 5 * 37),
        ("exam-2", {}, {}, {"own_rule": NEURON}, 8 * 37, 3 * 8 * 5 * 37),
        ("spot-train", {}, {}, {}, LONG_VALUES, LONG_VALUES),
        ("spot-train", {}, {"neurons": 40, "samples": 2}, {}, 10_000 * 40 + 32_000 * 2, 10_000 * 40 + 32_000 * 2),
        ("spot-train", {}, {"neurons": 64, "samples": 19}, {}, 10_000 * 64 + 32_000 * 19, 10_000 * 64 + 32_000 * 19),
        ("spot-train", {}, {"neurons": None}, {}, 10_000 * 32, 10_000 * 32 + 32_000),  # before schema 4
        ("spot-train", {"neurons": 16}, {"neurons": None}, {}, 10_000 * 16, 10_000 * 16 + 8_000),
        ("common-train", {}, {"neurons": 40, "samples": 2}, {}, 10_000 * 40, 10_000 * 40 + 32_000 * 2),
        ("common-train", {}, {}, {}, LONG_VALUES, LONG_VALUES),
        ("fresh-train", {}, {}, {}, 32_000, LONG_VALUES * 10_000),
        ("spot-train", {"layers": 2}, {}, {}, 32_000, LONG_VALUES),
        ("fresh-train", {"layers": 2}, {}, {}, 32_000, LONG_VALUES * 10_000),
        ("common-train", {"layers": 2}, {}, {}, 0, LONG_VALUES),
    ],
)
def test_check_compares_the_right_number_of_values(
    name: str, changes: Document, given: Document, declared: Document, least: int, most: int
) -> None:
    """500 steps, 20 samples and 64 neurons give 10,000 values a neuron, and 32,000 a sample."""

    def complaints(compared: int) -> list[str]:
        cell_record = measured({name: check(compared, **given)}, LONG | changes, **declared)
        return [text for text in proof(cell_record) if "places" in text]

    assert complaints(least) == complaints(most) == []
    assert complaints(most + 1) == [f"{name}: compared {most + 1}, where there are {least} to {most} places"]
    assert complaints(least - 1) == [f"{name}: compared {least - 1}, where there are {least} to {most} places"]


def test_inconsistent_counts_of_differing_spikes_are_reported() -> None:
    for differing, unexplained in ((LONG_VALUES + 1, 0), (0, 1), (-1, -1), (3, -1)):
        cell_record = measured({"spot-train": check(LONG_VALUES, differing=differing, unexplained=unexplained)})
        text = f"spot-train: {differing} spikes differ, {unexplained} of them unexplained, of {LONG_VALUES} at the most"
        assert text in proof(cell_record)
    assert proof(measured({"spot-train": check(LONG_VALUES, differing=1)})) == []
    (fault,) = proof(measured({"spot-train": check(LONG_VALUES, differing=1, unexplained=1, first_wrong="t=1")}))
    assert fault == "spot-train: found a fault: t=1"


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"complaints": ["wrong", "more"]}, "found a fault: wrong; more"),
        ({"correct": False, "first_wrong": "t=3"}, "found a fault: t=3"),
    ],
)
def test_fault_of_a_check_is_reported(changes: Document, fault: str) -> None:
    assert proof(measured({"spot-train": check(LONG_VALUES, **changes)})) == [f"spot-train: {fault}"]


@pytest.mark.parametrize(
    ("changes", "differing", "sound"),
    [({}, 4, True), ({}, 5, False), ({"dtype": "float64"}, 5, False), ({"dtype": "bfloat16"}, 5, True)],
)
def test_number_of_differing_spikes_is_limited_by_rounding(changes: Document, differing: int, sound: bool) -> None:
    """For 640,000 spikes in float32: 0.64, plus four times its root (3.2), plus one. No limit applies in 16 bits."""
    verdict = "equivalent" if changes.get("dtype") == "bfloat16" else "exact"
    complaints = proof(
        measured({"spot-train": check(LONG_VALUES, differing=differing)}, LONG | changes, verdict=verdict)
    )
    assert complaints == ([] if sound else [f"spot-train: {differing} of {LONG_VALUES} spikes differ"])


@pytest.mark.parametrize(("rate", "sound"), [(0.0099, False), (0.01, True), (0.9, True), (0.901, False)])
def test_rate_must_be_within_its_window(rate: float, sound: bool) -> None:
    """The window does not apply to a library's own rule."""
    checks = {"spot-train": check(LONG_VALUES, rate=rate)}
    text = f"spot-train: {rate:.3g} spikes per step, outside the window 0.01 to 0.9"
    assert proof(measured(checks)) == ([] if sound else [text])
    assert proof(measured(checks, verdict="deviates", deviation="late", own_rule=NEURON)) == []


@pytest.mark.parametrize(
    ("name", "gradient", "roundoffs", "allowed"),
    [
        ("spot-train", "weight", 100, "6e-06"),
        ("spot-train", "bias", 100, "6e-06"),
        ("spot-train", "input", 84, "5e-06"),
        ("exam-1", "weight", 168, "1e-05"),
        ("exam-1", "input", 168, "1e-05"),
    ],
)
@pytest.mark.parametrize(("slope", "magnified"), [(None, 1), (0.5, 1), (4.0, 4)])
def test_gradient_must_be_within_its_tolerance(
    name: str, gradient: str, roundoffs: int, allowed: str, slope: float | None, magnified: int
) -> None:
    """If the library's own surrogate is narrow, its slope raises the tolerance; if it is wide, nothing changes."""
    declared: Document = (
        {} if slope is None else {"own_rule": {"slope": slope}, "deviation": "x", "verdict": "deviates"}
    )
    compared = EXAM_VALUES if name == "exam-1" else LONG_VALUES

    def complaints(error: float) -> list[str]:
        errors = ERRORS | {gradient: error}
        return proof(measured({name: check(compared, gradient_errors=errors)}, **declared))

    assert complaints(magnified * roundoffs * R) == complaints(0.0) == []
    for error in (magnified * (roundoffs + 1) * R, -1e-9):
        (complaint,) = complaints(error)
        assert complaint.startswith(f"{name}: gradient of {gradient} off by {error:.2g} (")
        assert slope == 4.0 or f"({allowed} allowed)" in complaint


@pytest.mark.parametrize(
    ("name", "changes", "given", "declared", "lacking"),
    [
        ("spot-train", {}, {}, {}, ["bias", "input", "weight"]),
        ("spot-backward", {}, {}, {}, ["bias", "input", "weight"]),
        ("spot-train", {"input_gradient": False}, {}, {}, ["bias", "weight"]),
        ("exam-1", {"input_gradient": False}, {}, {}, ["bias", "input", "weight"]),
        ("spot-inference", {}, {}, {}, []),
        ("spot-forward", {}, {}, {}, []),
        ("spot-train", {}, {"differing": 1}, {}, []),
        ("spot-train", {}, {}, {"inference_only": "no gradients"}, []),
    ],
)
def test_required_gradients_must_be_present(
    name: str, changes: Document, given: Document, declared: Document, lacking: list[str]
) -> None:
    compared = EXAM_VALUES if name == "exam-1" else LONG_VALUES
    cell_record = measured({name: check(compared, gradient_errors={}, **given)}, LONG | changes, **declared)
    assert proof(cell_record) == [f"{name}: no gradient of {gradient}" for gradient in lacking]
    layered = {"weight of layer 0": 0.0, "bias of layer 0": 0.0, "input": 0.0}
    assert proof(measured({name: check(compared, gradient_errors=layered, **given)}, LONG | changes, **declared)) == []


@pytest.mark.parametrize(
    ("quantity", "value"), [("rate", float("nan")), ("weight", float("inf")), ("bias", float("nan"))]
)
def test_non_finite_number_is_reported(quantity: str, value: float) -> None:
    """A contender that deviates is not exempt."""
    change = {"rate": value} if quantity == "rate" else {"gradient_errors": ERRORS | {quantity: value}}
    cell_record = measured({"spot-train": check(LONG_VALUES, **change)}, verdict="deviates", deviation="late")
    assert proof(cell_record) == [f"spot-train: {quantity} is {value}"]


@pytest.mark.parametrize(
    ("measure", "declared", "checks", "complaint"),
    [
        ("time", {}, {"spot-train": check(LONG_VALUES, gradient_errors={})}, True),
        ("verify", {}, {"spot-train": check(LONG_VALUES, gradient_errors={})}, True),
        ("time", {}, {"spot-train": check(LONG_VALUES, gradient_errors={"bias": 1.0})}, True),
        ("time", {}, {"spot-train": check(LONG_VALUES, gradient_errors={"weight": 1.0})}, False),
        (
            "time",
            {},
            {
                "spot-train": check(LONG_VALUES, gradient_errors={}),
                "common-train": check(LONG_VALUES, gradient_errors={"weight": 1.0}),
            },
            False,
        ),
        ("time", {"inference_only": "x"}, {"spot-train": check(LONG_VALUES, gradient_errors={})}, False),
    ],
)
def test_deviation_without_own_rule_needs_a_gradient_error(
    measure: str, declared: Document, checks: Document, complaint: bool
) -> None:
    cell_record = measured(checks, measure=measure, verdict="deviates", deviation="late", **declared)
    text = "deviates, and nothing says how far off its gradient of weight is"
    assert (text in proof(cell_record)) is complaint


def test_verdict_follows_from_format_and_deviation() -> None:
    for changes, declared, word in (
        ({}, {"verdict": "equivalent"}, "exact"),
        ({"precision": "tf32"}, {"verdict": "exact"}, "equivalent"),
        ({}, {"verdict": "exact", "deviation": "late"}, "deviates"),
    ):
        assert f"verdict {declared['verdict']}, where {word} is the word" in proof(
            measured({}, LONG | changes, **declared)
        )


@pytest.mark.parametrize(("neurons", "least"), [(64, 32_000), (800, 320_000)])
def test_fresh_check_of_neurons_alone_compares_32_over_the_batch(neurons: int, least: int) -> None:
    """Or all neurons of a sample, if that is less: 500 steps of 20 samples."""
    case = LIF.with_(neurons=neurons, batch=20, time_steps=500)
    assert records._places("fresh-train", {}, case, EXACT, False)[0] == least
