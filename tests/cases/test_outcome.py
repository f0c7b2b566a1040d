"""Tests of outcomes: their documents, and the parts and words that they can have."""

from typing import Any

import pytest

from snnbench.cases.outcome import FAILURES, SKIPS, VERDICTS, Outcome, decode, failed, measured, skipped

RULE = {"beta": 0.5, "synapse": 0.6}
OUTCOMES = [
    measured("exact"),
    measured("deviates", deviation="fires a step late", own_rule=RULE),
    measured("exact", inference_only="no gradients"),
    skipped("unsupported", "no such reset"),
    failed("oom-device", "inferred", inferred_from="neurons=16"),
    failed("lost", "the node failed", scheduler="NODE_FAIL"),
]


@pytest.mark.parametrize("outcome", OUTCOMES, ids=str)
def test_outcome_survives_its_document(outcome: Outcome) -> None:
    assert decode(outcome.as_dict()) == outcome
    assert outcome.complaint() is None


def test_document_has_only_the_parts_of_its_outcome() -> None:
    assert measured("exact", deviation="", inference_only="").as_dict() == {"status": "measured", "verdict": "exact"}
    assert failed("crash", "died").as_dict() == {"status": "failed", "kind": "crash", "reason": "died"}
    lost = failed("lost", "the node failed", scheduler="NODE_FAIL").as_dict()
    assert list(lost) == ["status", "kind", "reason", "scheduler"]


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ({}, "an outcome without a status"),
        ({"status": "measured"}, "only a measured cell has a verdict"),
        (
            {"status": "failed", "verdict": "exact", "kind": "crash", "reason": "x"},
            "only a measured cell has a verdict",
        ),
        ({"status": "failed", "kind": "crash"}, "a cell that was not measured has a kind and a reason"),
        ({"status": "skipped", "reason": "x"}, "a cell that was not measured has a kind and a reason"),
        ({"status": "measured", "verdict": "deviates"}, "a contender that deviates says how"),
        ({"status": "measured", "verdict": "exact", "speed": "high"}, "an outcome has no speed"),
        ({"status": "measured", "verdict": 1}, "verdict is int"),
        ({"status": "measured", "verdict": None}, "verdict is NoneType"),
        ({"status": "measured", "verdict": "exact", "own_rule": "another"}, "own_rule is str"),
    ],
)
def test_malformed_document_is_refused(document: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=f"^{complaint}$"):
        decode(document)


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ({"status": "measured", "verdict": "incorrect"}, "measured, with the verdict 'incorrect'"),
        ({"status": "measured", "verdict": "perfect"}, "measured, with the verdict 'perfect'"),
        ({"status": "failed", "kind": "crash", "reason": ""}, "failed without a reason"),
        ({"status": "failed", "kind": "unsupported", "reason": "x"}, "failed as 'unsupported', an unknown kind"),
        ({"status": "skipped", "kind": "crash", "reason": "x"}, "skipped as 'crash', an unknown kind"),
        ({"status": "won", "kind": "crash", "reason": "x"}, "status 'won' is not measured, skipped or failed"),
    ],
)
def test_complaint_about_an_unknown_word(document: dict[str, Any], complaint: str) -> None:
    assert decode(document).complaint() == complaint


def test_every_word_of_the_lists_is_accepted() -> None:
    outcomes = [failed(kind, "x") for kind in FAILURES] + [skipped(kind, "x") for kind in SKIPS]
    outcomes += [measured(word, deviation="x") for word in VERDICTS if word != "incorrect"]
    assert [outcome.complaint() for outcome in outcomes] == [None] * len(outcomes)


def test_text_of_an_outcome() -> None:
    assert str(measured("exact")) == "measured, exact"
    assert str(measured("deviates", deviation="fires late")) == "measured, deviates (fires late)"
    assert str(failed("crash", "died of SIGSEGV")) == "failed: crash: died of SIGSEGV"
