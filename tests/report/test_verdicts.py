"""Tests of the table of verdicts, of records made by hand."""

from dataclasses import replace

from snnbench.cases.outcome import Outcome
from snnbench.recording.record import Record
from snnbench.report.text.markdown import markdown
from snnbench.report.text.verdict_table import COLUMNS, matrix, report
from tests.fakes import CASE
from tests.networks import SMALL
from tests.recordings import deviating, failed, record, skipped

ZERO = CASE.with_(reset="zero", detach_reset=True)


def check(compared: int = 100, differing: int = 0, **errors: float) -> dict[str, object]:
    """The findings of one comparison."""
    return {"compared": compared, "differing": differing, "gradient_errors": errors, "complaints": []}


def rows(*records: Record) -> list[dict[str, str]]:
    """The table, by column."""
    lines = [line for line in markdown(report(records)).splitlines() if line.startswith("|")]
    return [
        dict(zip(COLUMNS, (cell.strip() for cell in line.strip("|").split("|")), strict=True)) for line in lines[2:]
    ]


def remarks(*records: Record) -> list[str]:
    """The remarks below the table."""
    return [line for line in markdown(report(records)).splitlines() if line.startswith("- ")]


def test_row_combines_all_checks() -> None:
    checks = {"exam-1": check(weight=1e-7, bias=3e-7), "spot-train": check(400, 1, weight=2e-6)}
    (row,) = rows(record("norse/box", "verify", checks=checks))
    assert row == {
        "library": "norse/box",
        "version": "1.0",
        "profile": "subtract",
        "surrogate": "fast_sigmoid",
        "layers": "1",
        "dtype": "float32",
        "device": "cpu",
        "verdict": "exact",
        "spikes off": "1 of 500",
        "gradients off by": "2.0e-06",
    }
    assert remarks(record("norse/box", "verify", checks=checks)) == []


def test_rows_of_networks_name_the_model_and_the_image() -> None:
    work = [replace(record("a", "verify"), case=SMALL.with_(model=model)) for model in ("vgg", "convolutional")]
    statistics = ", frozen statistics" if SMALL.normalisation == "frozen" else ""
    names = [f"{model} on {SMALL.image}{statistics} {SMALL.profile}" for model in ("convolutional", "vgg")]
    assert [row["profile"] for row in rows(*work)] == names


def test_deviation_is_shown_with_size_and_first_wrong_index() -> None:
    (row,) = rows(deviating("a"))
    assert (row["verdict"], row["spikes off"], row["gradients off by"]) == ("deviates", "3 of 100", "2.0e-02")
    assert remarks(deviating("a")) == [
        "- a: deviates: fires a step late; exam-1: 3 of 100 spikes differ, "
        "the first at t=2, b=1, n=2: u=1.01, expected 1, got 0"
    ]


def test_unverified_contender_has_one_reason_with_its_profiles() -> None:
    records = [
        skipped("b", "unsupported", "no such reset", case=ZERO),
        skipped("b", "unsupported", "no such reset", case=CASE.with_(layers=2)),
        skipped("b", "unsupported", "no such reset"),
        failed(
            "a", "incorrect", "exam: 252 of 4096 spikes differ, the first at t=2, b=1, n=2", checks={"exam-1": check()}
        ),
        failed("c", "import", "ModuleNotFoundError: No module named 'c'", version=None),
    ]
    cells = [(row["library"], row["verdict"], row["spikes off"], row["gradients off by"]) for row in rows(*records)]
    assert cells == [
        ("a", "incorrect", "0 of 100", "-"),
        ("c", "import", "-", "-"),
    ]
    assert remarks(*records) == [
        "- a: incorrect: exam: 252 of 4096 spikes differ, the first at t=2, b=1, n=2 (subtract)",
        "- b: unsupported: no such reset",
        "- c: import: ModuleNotFoundError: No module named 'c' (subtract)",
    ]


def test_remarks_name_own_rules_and_missing_gradients() -> None:
    outcome = Outcome(status="measured", verdict="deviates", deviation="fires late")
    free, held = (
        record("a", "verify", outcome=replace(outcome, **more)) for more in ({}, {"own_rule": {"slope": 1.0}})
    )
    assert remarks(free) == ["- a: deviates: fires late"]
    assert remarks(held) == ["- a: deviates: fires late; held to its own rule"]
    alone = record("a", "verify", outcome=Outcome(status="measured", verdict="exact", inference_only="no gradients"))
    assert remarks(alone) == ["- a: inference only, no gradient was checked: no gradients"]


def test_matrix_has_the_profiles_in_their_own_order_whichever_ended_first() -> None:
    shown = matrix([skipped("a", "unsupported", "no such reset", case=ZERO), record("a", "verify")])
    assert list(shown.columns) == ["library", "version", "subtract", "zero"]
