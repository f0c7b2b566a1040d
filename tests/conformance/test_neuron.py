"""Tests of the neurons by hand-computed steps, and of the bound for rounding by a neuron in float32."""

from typing import Any

import numpy as np
import pytest

from snnbench.conformance import neuron
from snnbench.conformance.graph import Array, Node
from snnbench.conformance.interpretation import DIFFERENCES, DOCUMENTED, Interpretation
from snnbench.conformance.neuron import steps

HALF = {"tau": 2.0, "r": 1.0, "v_leak": 0.0, "v_threshold": 1.0, "v_reset": 0.0}
"""With dt = 1 the potential keeps a half, and a half of the current charges it."""


def outputs(
    kind: str,
    current: Any,
    *differences: tuple[str, str],
    dt: float = 1.0,
    back: Node | None = None,
    **changes: float,
) -> list[float]:
    given = np.array(current, np.float64).reshape(-1, 1, 1)
    parameters = {name: np.array([value]) for name, value in {**HALF, **changes}.items()}
    answers = steps(
        Node("n", kind, parameters, back=back), Interpretation(differences), dt, given, np.zeros_like(given)
    )
    return [float(answer.output[0, 0]) for answer in answers]


def test_li_moves_by_a_half_to_its_current() -> None:
    assert outputs("LI", [4, 0, 8]) == [2, 1, 4.5]
    assert outputs("LI", [4, 0, 8], r=2.0) == [4, 2, 9]
    assert outputs("LI", [0, 0], v_leak=4.0) == [2, 3]


def test_lif_fires_above_its_threshold_and_resets() -> None:
    assert outputs("LIF", [2, 2, 4, 1]) == [0, 1, 1, 0]  # u: 1 (not above), 1.5, 2, 0.5
    assert outputs("LIF", [4, 3], v_reset=-1.0) == [1, 0]  # u: 2, then -0.5 + 1.5 = 1
    assert outputs("LIF", [4, 3.5], v_reset=-1.0) == [1, 1]


def test_if_integrates_without_a_leak() -> None:
    assert outputs("IF", [1, 1, 1], dt=0.5) == [0, 0, 1]  # u: 0.5, 1 (not above), 1.5


def test_spikes_come_back_one_step_later() -> None:
    back = Node("n", "Affine", {"weight": np.array([[-2.0]]), "bias": np.array([1.0])})
    assert outputs("IF", [1, 1, 1, 1], back=back, r=0.6) == [1, 0, 1, 0]  # u: 1.2, 0, 1.2, 0


def test_if_that_leaks_keeps_nine_tenths() -> None:
    assert outputs("IF", [2, 0.3, 2], ("decay", "fixed"), dt=0.5) == [0, 1, 0]  # u: 1 (not above), 0.9 + 0.15, 1


def test_membrane_of_cubalif_takes_the_current_of_its_step() -> None:
    synapse: Any = {"tau_syn": 2.0, "tau_mem": 2.0, "w_in": 2.0, "v_threshold": 100.0}
    assert outputs("CubaLI", [4, 0], **synapse) == [2, 2]  # I: 4, 2; v: 2, 1 + 1
    assert outputs("CubaLI", [4, 0], ("order", "before"), **synapse) == [0, 2]


@pytest.mark.parametrize(
    ("differences", "expected"),
    [
        ([("step", "steps")], [1, 0, 1, 0]),
        ([("gain", "unscaled")], [1, 1, 1, 0]),
        ([("spikes", "several"), ("gain", "unscaled")], [2, 2, 4, 1]),
        ([("latency", "late")], [0, 0, 1, 1]),
        ([("reset", "subtract")], [0, 1, 1, 1]),
        ([("reset", "none")], [0, 1, 1, 1]),
        ([("decay", "absent")], [2, 2, 4, 1]),
    ],
)
def test_reading_differs_as_its_words_say(differences: Any, expected: list[float]) -> None:
    dt = 2.0 if ("step", "steps") in differences else 1.0
    current = [4, 0, 3, 1] if ("step", "steps") in differences else [2, 2, 4, 1]
    assert outputs("LIF", current, *differences, dt=dt) == expected


def test_late_subtraction_follows_the_decay() -> None:
    # u: 3 fires; then 1.5 + 0.1 - 1, where a subtraction before the decay leaves 1 + 0.1
    assert outputs("LIF", [6, 0.2, 2.0], ("reset", "late-subtract")) == [1, 0, 1]
    assert outputs("LIF", [6, 0.2, 2.0], ("reset", "subtract")) == [1, 1, 1]


def test_potential_that_stays_above_the_threshold_raises_it() -> None:
    # u: 3 fires and leaves 2; 1.5 is not above 2, and stays; 0.75 + 1.5 is above 2
    assert outputs("LIF", [6, 1, 3], ("reset", "held")) == [1, 0, 1]
    assert outputs("LIF", [6, 1, 3], ("reset", "subtract")) == [1, 1, 1]


def test_every_difference_changes_some_neuron() -> None:
    values: Any = {"tau_syn": 3.5, "tau_mem": 2.5, "w_in": 1.5, "v_leak": 0.3, "v_reset": -0.2}

    def output(kind: str, r: float, *differences: tuple[str, str]) -> list[float]:
        back = Node("n", "Scale", {"scale": np.array([0.5])}) if kind == "IF" else None
        return outputs(kind, np.random.default_rng(0).uniform(0, 4, 60), *differences, dt=0.5, r=r, back=back, **values)

    for aspect, names in DIFFERENCES.items():
        for name in names:
            cases = [("CubaLIF", 2.0), ("CubaLIF", 6.0), ("IF", 0.2), ("LI", 1.0)]
            assert any(output(*case, (aspect, name)) != output(*case) for case in cases), (aspect, name)


def in_float32(current: Array, dt: float, parameters: dict[str, Any]) -> tuple[Array, Array]:
    """Spikes and potentials of LIF as a library in float32 computes them."""
    given = {name: value.astype(np.float32) for name, value in parameters.items()}
    beta = np.float32(1) - np.float32(dt) / given["tau"]
    v, spikes, potentials = np.zeros(current.shape[1:], np.float32), [], []
    for x in current.astype(np.float32):
        v = beta * v + (np.float32(1) - beta) * given["r"] * x
        spikes.append(v > given["v_threshold"])
        potentials.append(v)
        v = np.where(spikes[-1], given["v_reset"], v)
    return np.array(spikes, np.float64), np.array(potentials, np.float64)


def test_rounding_of_float32_stays_within_the_bound() -> None:
    random = np.random.default_rng(1)
    current = random.uniform(0, 4, (300, 8, 64))
    parameters = {name: np.full(64, value) for name, value in {**HALF, "tau": 0.0123}.items()}
    node, exact = Node("n", "LIF", parameters), np.abs(current) * 2.0**-24
    spikes, _ = in_float32(current, 1e-3, parameters)
    judged = steps(node, DOCUMENTED, 1e-3, current, exact, spikes)
    differing = near = 0
    for t, answer in enumerate(judged):
        wrong = answer.output != spikes[t]
        assert (wrong <= answer.tolerance).all()
        differing, near = differing + int(wrong.sum()), near + int(answer.tolerance.sum())
    assert near < 30, "the bound would excuse too many spikes"
    free = {**parameters, "v_threshold": np.full(64, 1e9)}
    _, potentials = in_float32(current, 1e-3, free)
    integrator = steps(Node("n", "LI", free), DOCUMENTED, 1e-3, current, exact)
    assert all((np.abs(potentials[t] - answer.output) <= answer.tolerance).all() for t, answer in enumerate(integrator))


def test_bound_counts_every_term_of_a_step() -> None:
    unit = np.ones(1)
    y, error = neuron._Filter(-0.5 * unit, 2 * unit, -3 * unit).step(4 * unit, 0.25 * unit, unit, 0.125 * unit)
    assert y == -0.5 * 4 + 2 - 3
    assert error == 0.5 * 0.25 + 2 * 0.125 + 8 * 2.0**-23 * (4 + 2 + 3)


def test_bound_counts_the_subtraction_of_the_threshold() -> None:
    node, unit = Node("n", "LIF", {"v_threshold": np.full(1, -2.0)}), np.ones(1)
    v, error, later = neuron._reset(node, Interpretation((("reset", "subtract"),)), 0.5 * unit, 0.125 * unit, 3 * unit)
    assert (v, error, later) == (0.5 + 6, 0.125 + 8 * 2.0**-23 * 6, 0)


def test_spike_near_the_threshold_only_may_differ() -> None:
    given = np.array([2.0, 2.0, 0.0, 1.9]).reshape(-1, 1, 1)  # u: 1, 1.5, 0, 0.95
    parameters = {name: np.array([value]) for name, value in HALF.items()}
    answers = steps(Node("n", "LIF", parameters), DOCUMENTED, 1.0, given, np.zeros_like(given))
    assert [float(answer.tolerance[0, 0]) for answer in answers] == [1, 0, 0, 0]


def test_reset_to_zero_and_subtraction_leave_their_potential() -> None:
    assert outputs("LIF", [4, 2.5], ("reset", "zero"), v_reset=-1.0) == [1, 1]  # u: 2, then 0 + 1.25
    assert outputs("LIF", [6, 0, 0], ("reset", "subtract")) == [1, 0, 0]  # u: 3, then 1 (not above), 0.5


@pytest.mark.parametrize(("u", "tolerance"), [(2000.0001, 1.0), (2000.1, 0.0), (2500.0, 0.0)])
def test_several_spikes_are_doubtful_near_a_multiple_of_a_high_threshold(u: float, tolerance: float) -> None:
    """Eight roundings of a threshold of 1000 are 0.00095."""
    node = Node("n", "LIF", {"v_threshold": np.array([1000.0])})
    step = neuron._fired(node, Interpretation([("spikes", "several")]), np.array([u]), np.zeros(1))
    assert (step.output.item(), step.tolerance.item()) == (2.0, tolerance)
