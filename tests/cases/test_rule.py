"""Tests of rules against traces computed by hand, and of gradients against finite differences of a smooth stand-in."""

import numpy as np
import pytest

from snnbench.cases import reference
from snnbench.cases.case import PROFILES
from snnbench.cases.rule import Rule, rule_of
from snnbench.proof.tolerance import of_potentials
from tests.fakes import CASE, profile

PLAIN = Rule(beta=0.5, threshold=1.0, reset="subtract", detach_reset=False, surrogate="fast_sigmoid", slope=1.0)


def changed(**changes: object) -> Rule:
    numbers = {name: getattr(PLAIN, name) for name in Rule.__dataclass_fields__}
    return Rule(**(numbers | changes))


def column(*values: float) -> np.ndarray:
    """One neuron's values over time, [T, 1, 1]."""
    return np.array(values).reshape(-1, 1, 1)


@pytest.mark.parametrize("name", PROFILES)
def test_rule_of_a_case_is_its_neuron(name: str) -> None:
    case = CASE.with_(**profile(name))
    rule = rule_of(case)
    assert (rule.beta, rule.threshold, rule.reset, rule.detach_reset) == (0.91, 1.0, *PROFILES[name])
    assert (rule.synapse, rule.gain, rule.most_spikes, rule.taken_off) == (0.0, 1.0, 1, 1.0)
    assert rule_of(rule) is rule


@pytest.mark.parametrize(
    ("rule", "current", "potentials", "spikes"),
    [
        # i: .5, .25+.5, .375; u: .5, .25+.75, (1-1)/2+.375
        (changed(synapse=0.5), [0.5, 0.5, 0.0], [0.5, 1.0, 0.375], [0, 1, 0]),
        (changed(gain=0.25), [2.0, 2.0, 4.0], [0.5, 0.75, 1.375], [0, 0, 1]),
        # the threshold comes off undecayed: 2 * .5 = 1 a spike later
        (changed(reset_by=2.0), [1.0, 0.5, 0.0], [1.0, 0.0, 0.0], [1, 0, 0]),
        (changed(reset="zero").resetting_after_decay(), [1.0, 0.5, 0.0], [1.0, 0.0, 0.0], [1, 0, 0]),
        # 3.5 holds three thresholds, and -2 holds none
        (changed(most_spikes=9), [3.5, 0.0, -2.25], [3.5, 0.25, -2.125], [3, 0, 0]),
        (changed(most_spikes=2), [3.5, 0.0, 0.0], [3.5, 0.75, 0.375], [2, 0, 0]),
        (changed(most_spikes=2, reset="zero"), [3.5, 0.5, 0.0], [3.5, 0.5, 0.25], [2, 0, 0]),
        (changed(reset="none"), [1.0, 0.5, 0.0], [1.0, 1.0, 0.5], [1, 1, 0]),
        # 5 is refused for two steps; the earlier potential decays on
        (changed(refractory=2), [1.5, 5.0, 5.0, 0.75], [1.5, 0.25, 0.125, 0.8125], [1, 0, 0, 0]),
        # in quarters, towards zero: 0.9 becomes 0.75; half of that becomes 0.25 (and -0.9 becomes -0.75)
        (changed(unit=0.25), [0.9, 0.0, -0.9], [0.75, 0.25, -0.75], [0, 0, 0]),
    ],
)
def test_trace_agrees_with_a_hand_computation(
    rule: Rule, current: list[float], potentials: list[float], spikes: list[int]
) -> None:
    trace = reference.forward(column(*current), rule)
    assert trace.potential.ravel().tolist() == potentials
    assert trace.spikes.ravel().tolist() == spikes


@pytest.mark.parametrize(("u", "distance"), [(1.1, 0.1), (0.2, 0.3), (1.3, 0.2), (9.0, 7.5)])
def test_distance_is_that_to_the_nearest_multiple_of_the_threshold(u: float, distance: float) -> None:
    assert changed(threshold=0.5, most_spikes=3).distance(np.array(u)) == pytest.approx(distance)


def test_spike_of_another_program_resets_below_the_potential_of_a_reset() -> None:
    rule = changed(reset="zero", unit=0.25, resets_at=1.0)
    assert rule.after_reset(np.array([0.75, 0.75, 1.0]), np.array([1.0, 0.0, 0.0])).tolist() == [0.0, 0.75, 0.0]


def test_gradient_agrees_with_a_hand_computation() -> None:
    rule = changed(synapse=0.5, gain=2.0, reset_by=4.0, surrogate="rectangle")
    # u = .75, .375 + .75 = 1.125: the second fires, and both are within a half of the threshold
    trace = reference.forward(column(0.375, 0.1875), rule)
    assert trace.potential.ravel().tolist() == [0.75, 1.125]
    # gu[1] = 1; gu[0] = (1 - 4 * .5) * 1 + .5 = -.5; gi[1] = 1, gi[0] = -.5 + .5 * 1 = 0; dL/dx = 2 gi
    assert reference.backward(column(1.0, 1.0), trace, rule).ravel().tolist() == [0.0, 2.0]


def test_gradient_without_reset_and_refused_input() -> None:
    rule = changed(surrogate="rectangle", surrogate_gain=3.0, refractory=1, reset_in_backward=False)
    # u = 1.25 fires; then the input is refused, and .25 / 2 is left; then .0625 + 1 fires
    trace = reference.forward(column(1.25, 9.0, 1.0), rule)
    assert trace.potential.ravel().tolist() == [1.25, 0.125, 1.0625]
    # gu[2] = 3; gu[1] = 0 + .5 * 3 (but nothing came in); gu[0] = 3 + .5 * 1.5, the spike there for nothing
    assert reference.backward(column(1.0, 1.0, 1.0), trace, rule).ravel().tolist() == [3.75, 0.0, 3.0]


def test_gradient_holds_the_amount_that_a_reset_to_zero_removes() -> None:
    rule = changed(reset="zero", surrogate="rectangle", holds_removed=True)
    # u = 1.25 fires and leaves 0; then 1 fires
    trace = reference.forward(column(1.25, 1.0), rule)
    assert trace.potential.ravel().tolist() == [1.25, 1.0]
    # gu[1] = 1, gv[0] = .5; gu[0] = (1 - 1.25 * .5) * 1 + .5: the spike removes 1.25 and keeps the rest of the gradient
    assert reference.backward(column(1.0, 1.0), trace, rule).ravel().tolist() == [0.875, 1.0]


def test_weights_are_rounded_to_the_nearest_step_ties_to_even() -> None:
    given = np.array([0.1, 0.125, 0.375, -0.3])
    assert changed(weight_step=0.25).weights(given).tolist() == [0.0, 0.0, 0.5, -0.25]
    assert changed().weights(given).tolist() == given.tolist()


def test_fixed_point_with_a_synapse_is_refused() -> None:
    with pytest.raises(ValueError, match="has no synapse"):
        changed(unit=0.5, synapse=0.5)


def test_fixed_point_state_is_off_by_whole_units() -> None:
    rule = changed(unit=0.25, threshold=10.0)
    current = column(0.3, 0.5, 0.3, 0.3)
    margin = of_potentials(reference.forward(current, rule), rule, "float32", current, column(*[0.01] * 4))
    # 0.5 may have been a little less: off by one unit; half of it, rounded up, stays
    assert margin.ravel().tolist() == [0.0, 0.25, 0.25, 0.25]


@pytest.mark.parametrize(
    ("most", "potential", "distance"),
    [(1, 3.25, 2.25), (1, 0.5, 0.5), (9, 3.25, 0.25), (9, 2.75, 0.25), (9, -4.0, 5.0), (2, 3.25, 1.25)],
)
def test_distance_is_to_the_next_number_of_spikes(most: int, potential: float, distance: float) -> None:
    assert changed(most_spikes=most).distance(np.array([potential])).tolist() == [distance]


def test_possible_numbers_of_spikes() -> None:
    possible = changed(most_spikes=2).possible(np.array([0, 1, 2, 3, 0.5, -1, np.nan, np.inf]))
    assert possible.tolist() == [True, True, True, False, False, False, False, False]
    assert rule_of(CASE).possible(np.array([0, 1, 2])).tolist() == [True, True, False]


def test_neuron_may_reset_without_a_spike() -> None:
    rule = changed(reset="zero", unit=0.25, threshold=1.0025, resets_at=1.0)
    # 1 resets without a spike, 1.25 with one, and 0.75 stays
    trace = reference.forward(column(1.0, 0.0, 1.25, 0.75, 0.0), rule)
    assert trace.potential.ravel().tolist() == [1.0, 0.0, 1.25, 0.75, 0.25]
    assert trace.spikes.ravel().tolist() == [0, 0, 1, 0, 0]
    for reset, unit in (("subtract", 0.25), ("zero", 0.0)):
        with pytest.raises(ValueError, match="fixed point that resets to zero"):
            changed(reset=reset, unit=unit, resets_at=1.0)


def test_doubtful_silent_reset_makes_the_state_uncertain() -> None:
    rule = changed(reset="zero", unit=0.25, threshold=1.0025, resets_at=1.0)
    current = column(1.0, 0.0, 0.3)
    margin = of_potentials(reference.forward(current, rule), rule, "float32", current, column(0.01, 0.0, 0.0))
    # The first may have been 0.75, and then stays. Half of 1.25 is carried and truncated, with one unit more.
    assert margin.ravel().tolist() == [0.25, 0.75, 0.5]
    certain = column(0.9, 0.0, 0.3)
    margin = of_potentials(reference.forward(certain, rule), rule, "float32", certain, column(0.01, 0.0, 0.0))
    assert margin.ravel().tolist() == [0.0, 0.0, 0.0]
