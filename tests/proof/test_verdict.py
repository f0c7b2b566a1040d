"""Tests of verdicts: a correct fake is exact, and a fake with a declared deviation or a failed check never is."""

from pathlib import Path
from typing import get_args

import pytest

from snnbench.cases.case import PROFILES, Dtype
from snnbench.cases.outcome import Outcome
from snnbench.proof.comparison import verdict
from snnbench.worker.messages import Measure
from tests.fakes import CASE, CORRECT, PHASES, altered, document, overridden, profile, quantities
from tests.faults import MEASURES, reply_to
from tests.proof.test_incorrect import FAULTS
from tests.recordings import EXACT


@pytest.mark.parametrize(
    ("name", "dtype", "layers", "measure"),
    [
        *((name, dtype, layers, "time") for name in PROFILES for dtype, layers in (("float32", 1), ("float64", 2))),
        *(("subtract", "float32", 1, measure) for measure in MEASURES if measure != "time"),
    ],
)
def test_correct_fake_is_measured_and_exact(
    tmp_path: Path, name: str, dtype: Dtype, layers: int, measure: Measure
) -> None:
    reply = reply_to(tmp_path, CORRECT, measure, dtype=dtype, layers=layers, **profile(name))
    assert reply.outcome == EXACT
    assert all(check["correct"] for check in reply.checks.values())
    assert set(reply.phases) == (set(PHASES) if measure == "time" else set())
    assert bool(reply.memory) == (measure == "memory")
    assert bool(quantities(document(reply))) == (measure != "verify")


@pytest.mark.parametrize("measure", MEASURES)
def test_correct_fake_with_its_own_session_is_exact(tmp_path: Path, measure: Measure) -> None:
    assert reply_to(tmp_path, overridden("pass"), measure).outcome == EXACT


def test_adapter_that_raises_incorrect_has_no_time(tmp_path: Path) -> None:
    source = altered("""
    from snnbench.adapter import Incorrect

    def backward(kept, cotangent):
        if cotangent.size > 1480:
            raise Incorrect("the spikes carry no gradient")
        return right.backward(kept, cotangent)

    return Network(right.forward, backward)
    """)
    reply = reply_to(tmp_path, source, "time")
    assert reply.outcome == Outcome(status="failed", kind="incorrect", reason="the spikes carry no gradient")
    assert quantities(document(reply)) == []


@pytest.mark.parametrize("measure", MEASURES)
def test_declared_deviation_is_measured_with_its_size(tmp_path: Path, measure: Measure) -> None:
    wrong = FAULTS["wrong decay"].source
    reply = reply_to(tmp_path, wrong + '\nDEVIATION = "the decay is 0.01 less"\n', measure)
    assert reply.outcome == Outcome(status="measured", verdict="deviates", deviation="the decay is 0.01 less")
    exam = reply.checks["exam-1"]
    assert not exam["correct"]
    assert 0 < exam["differing"] < exam["compared"]
    assert exam["gradient_errors"]["weight"] > 1e-5
    assert exam["first_wrong"].startswith("t=")
    assert bool(reply.phases) == (measure == "time") and bool(reply.memory) == (measure == "memory")


def test_invisible_deviation_is_never_exact(tmp_path: Path) -> None:
    reply = reply_to(tmp_path, CORRECT + '\nDEVIATION = "none that a check can see"\n', "time")
    assert reply.outcome.verdict == "deviates"


@pytest.mark.parametrize("dtype", get_args(Dtype))
@pytest.mark.parametrize("precision", ["ieee", "tf32"])
def test_failed_check_is_never_exact(dtype: Dtype, precision: str) -> None:
    case = CASE.with_(dtype=dtype, precision=precision)
    assert verdict(case, False, None) == "incorrect"
    assert verdict(case, False, "declared") == "deviates"
    full = dtype == "float64" or (dtype == "float32" and precision == "ieee")
    assert verdict(case, True, None) == ("exact" if full else "equivalent")
