"""Tests of the spot check's findings: correct answers pass, and a wrong spike, gradient or shape is reported."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from snnbench.cases.answer import Answer
from snnbench.cases.case import PROFILES, Case
from snnbench.cases.problem import Layer
from snnbench.proof.spotcheck import SpotCheck, sampled
from snnbench.proof.tolerance import allowed_differences
from snnbench.workloads.linear_lif import Problem
from tests.answers import answer_to
from tests.fakes import CASE, profile

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Given:
    """A problem with given weights and input, and a dense cotangent."""

    enters_as_spikes = True

    case: Case
    weights: list[Layer]
    entering: Array

    def layers(self) -> list[Layer]:
        return self.weights

    def input(self, which: int) -> Array:
        return self.entering

    def cotangent(self, which: int) -> Array:
        return np.random.default_rng(which).normal(size=self.entering.shape).astype(np.float32)


def constant(bias: list[float], steps: int = 3, batch: int = 2, **changes: Any) -> Given:
    """Neurons with only their bias as input."""
    neurons = len(bias)
    case = CASE.with_(neurons=neurons, batch=batch, time_steps=steps, **changes)
    layer = (np.zeros((neurons, neurons), np.float32), np.array(bias, np.float32))
    return Given(case, [layer] * case.layers, np.zeros((steps, batch, neurons), np.float32))


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize(("layers", "neurons"), [(1, 20), (1, 33), (1, 80), (3, 20)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_correct_answer_passes(name: str, layers: int, neurons: int, dtype: Any) -> None:
    problem = Problem(CASE.with_(**profile(name), layers=layers, neurons=neurons, dtype=dtype))
    finding = SpotCheck(problem, 1).check(answer_to(problem, 1, 1, dtype))
    assert finding.correct, finding.message
    assert finding.compared > 0 and finding.differing == 0
    assert len(finding.gradient_errors) == 2 * layers + 1


def test_spikes_alone_are_checked_too() -> None:
    problem = Problem(CASE)
    finding = SpotCheck(problem, 1).check(Answer(answer_to(problem, 1, 1).spikes))
    assert finding.correct and finding.gradient_errors == {}


@pytest.mark.parametrize("layers", [1, 2])
def test_answer_to_another_input_fails(layers: int) -> None:
    problem = Problem(CASE.with_(layers=layers))
    assert "spikes differ" in SpotCheck(problem, 1).check(answer_to(problem, 0, 1)).message
    assert "gradient of" in SpotCheck(problem, 1).check(answer_to(problem, 1, 0)).message


@pytest.mark.parametrize("neurons", [48, 400])
@pytest.mark.parametrize("index", [(0, 0, 0), (19, 6, -1), (7, 3, 0)])
def test_one_wrong_spike_of_a_compared_neuron_is_found(neurons: int, index: tuple[int, int, int]) -> None:
    problem = Problem(CASE.with_(neurons=neurons))
    right = answer_to(problem, 1, 1).spikes
    assert right is not None
    wrong = right.copy()
    wrong[index] = 1 - wrong[index]
    finding = SpotCheck(problem, 1).check(Answer(wrong))
    t, b, n = index
    assert f"the first at t={t}, b={b}, n={n % neurons}: " in finding.message
    assert SpotCheck(problem, 1).check(Answer(right)).correct


def test_one_wrong_spike_does_not_affect_later_ones() -> None:
    problem = constant([0.6, 0.7])
    spikes = answer_to(problem, 0, 0).spikes  # type: ignore[arg-type]
    assert spikes is not None and spikes[:, 0, 0].tolist() == [0, 1, 0]
    spikes[0, 0, 0] = 1  # then v = -0.4 and u = 0.236: no spike is due at t=1
    spikes[1, 0, 0] = 0
    finding = SpotCheck(problem, 0).check(Answer(spikes))  # type: ignore[arg-type]
    assert finding.message.startswith("1 of 12 spikes differ, the first at t=0, b=0, n=0: u=0.6")


def test_spike_on_the_threshold_may_go_either_way() -> None:
    """Rounding decides it, and later steps are judged by the answer's own spikes."""
    problem = constant([1.0, 0.6], batch=1)
    check = SpotCheck(problem, 0)  # type: ignore[arg-type]
    right = answer_to(problem, 0, 0).spikes  # type: ignore[arg-type]
    assert right is not None and right[0, 0, 0] == 1
    late = right.copy()
    late[0, 0, 0] = 0  # v = 1, and u = 1.91 then: it fires at t=1 and t=2
    finding = check.check(Answer(late))
    assert finding.correct, finding.message
    assert finding.differing and not finding.unexplained
    assert finding.first_wrong == "t=0, b=0, n=0: u=1, expected 1, got 0"


def test_explained_differences_must_be_rare_in_full_precision() -> None:
    problem = constant([1.0, 0.6], batch=2)
    spikes = answer_to(problem, 0, 0).spikes  # type: ignore[arg-type]
    assert spikes is not None
    spikes[0, :, 0] = 0
    message = SpotCheck(problem, 0).check(Answer(spikes)).message  # type: ignore[arg-type]
    assert message == "2 of 12 spikes differ, 1 allowed; the first at t=0, b=0, n=0: u=1, expected 1, got 0"


def test_explained_differences_of_chosen_neurons_are_not_counted_in_16_bits() -> None:
    """Rounding in bfloat16 decides about a potential one roundoff below the threshold; what is drawn has no such."""
    drawn = {*sampled(100, 32, 0).tolist()}
    bias = [0.6 if n in drawn else 1 - 2.0**-8 for n in range(100)]
    problem = constant(bias, steps=1, batch=128, dtype="bfloat16")
    spikes = np.tile(np.array(bias) > 0.6, (1, 128, 1)).astype(np.float32)
    spikes[:, sampled(128, 1, 0)] = 0
    finding = SpotCheck(problem, 0, guarded=False).check_where(Answer(spikes), spikes > 0)  # type: ignore[arg-type]
    assert finding.correct, finding.message


def test_allowed_differences_are_a_rate_with_room_for_chance() -> None:
    # count * 1e-6, plus four times its square root, plus one, rounded down
    assert [allowed_differences(count) for count in (12, 10**6, 4 * 10**6, 10**8)] == [1, 6, 13, 141]


@pytest.mark.parametrize(("roundoffs", "correct"), [(-67, False), (-65, True), (65, True), (67, False)])
@pytest.mark.parametrize(
    ("dtype", "precision"), [("float32", "ieee"), ("float32", "tf32"), ("float64", "ieee")], ids=str
)
def test_margin_at_the_threshold_is_66_roundoffs(roundoffs: float, correct: bool, dtype: Any, precision: Any) -> None:
    """A current of 1 next to the threshold: 32 roundoffs of either, then one of the current and of the potential: 66.

    If tensor cores truncate, two terms may lose half a roundoff more: 66.5.
    """
    unit = 2.0 ** (-53 if dtype == "float64" else -24)
    changes = {"dtype": dtype, "precision": precision, "threshold": 1.0 - roundoffs * unit}
    problem = constant([1.0, 0.6], steps=1, batch=1, **changes)
    fired = float(roundoffs >= 0)
    spikes = answer_to(problem, 0, 0, "float64").spikes  # type: ignore[arg-type]
    assert spikes is not None and spikes[0, 0, 0] == fired
    spikes[0, 0, 0] = 1 - fired
    finding = SpotCheck(problem, 0, guarded=False).check(Answer(spikes))  # type: ignore[arg-type]
    assert finding.correct is correct, finding.message
    assert finding.differing - finding.unexplained == correct


@pytest.mark.parametrize(("bias", "rate"), [([-1.0, -1.0], "0"), ([9.0, 9.0], "1")])
@pytest.mark.parametrize("layers", [1, 2])
def test_silent_or_saturated_network_is_reported(bias: list[float], rate: str, layers: int) -> None:
    problem = constant(bias, layers=layers)
    finding = SpotCheck(problem, 0).check(answer_to(problem, 0, 0))  # type: ignore[arg-type]
    assert finding.correct and f"{rate} spikes per step" in finding.unprovable


def test_answer_of_another_shape_is_reported() -> None:
    problem = Problem(CASE)
    finding = SpotCheck(problem, 0).check(Answer(np.zeros((7, 20, 48))))
    assert finding.message == "spikes have the shape [7, 20, 48], expected [20, 7, 48]"
    assert SpotCheck(problem, 0).check(Answer(None)).message == "no spikes"


def test_input_gradient_is_required_only_if_the_case_has_one() -> None:
    for wanted in (True, False):
        problem = Problem(CASE.with_(input_gradient=wanted))
        finding = SpotCheck(problem, 0).check(replace(answer_to(problem, 0, 0), input=None))
        assert finding.correct is not wanted


@pytest.mark.parametrize("part", ["weights", "biases"])
@pytest.mark.parametrize("layers", [1, 2])
def test_one_wrong_row_of_a_gradient_is_found(part: str, layers: int) -> None:
    problem = Problem(CASE.with_(layers=layers))
    right = answer_to(problem, 1, 1)
    arrays = [array.copy() for array in getattr(right, part)]
    arrays[-1][-1] *= 1.001
    assert "is off by" in SpotCheck(problem, 1).check(replace(right, **{part: arrays})).message
