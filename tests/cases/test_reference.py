"""Tests of the reference against traces computed by hand, and against an independent derivation of its gradients."""

import math
from collections.abc import Callable
from typing import get_args

import numpy as np
import pytest

from snnbench.cases import reference
from snnbench.cases.case import PROFILES, Case, Surrogate
from snnbench.cases.surrogate import FORMULAS
from snnbench.cases.trace import Trace
from snnbench.workloads.linear_lif import Problem
from snnbench.workloads.linear_lif import exam as exam_problem
from tests.fakes import CASE, CUT, profile

HALF = CASE.with_(beta=0.5, threshold=1.0)
CURRENT = [0.75, 0.75, 0.0, 3.0, 0.25]

DERIVATIVES: dict[str, Callable[[float, float, float], float]] = {
    "fast_sigmoid": lambda d, a, _: (1 + a * abs(d)) ** -2,
    "sigmoid": lambda d, a, _: a * math.exp(-a * d) / (1 + math.exp(-a * d)) ** 2,
    "atan": lambda d, a, _: a / 2 / (1 + (math.pi * a * d / 2) ** 2),
    "triangle": lambda d, a, _: 1 - a * abs(d) if a * abs(d) < 1 else 0.0,
    "rectangle": lambda d, a, _: 1.0 if -1 < 2 * a * d < 1 else 0.0,
    "one_sided": lambda d, a, threshold: 1 / threshold if 2 * a * d >= -1 else 0.0,
    "exponential": lambda d, a, _: a * math.exp(-a * d if d > 0 else a * d),
}
"""Surrogate -> derivative at a distance from the threshold, with a slope, in scalars and other words."""


def column(values: list[float]) -> np.ndarray:
    """One neuron's values over time, [T, 1, 1]."""
    return np.array(values, np.float64).reshape(-1, 1, 1)


@pytest.mark.parametrize(
    ("reset", "potentials", "spikes"),
    [
        # u: .75, .375+.75, (1.125-1)/2+0, .03125+3, (3.03125-1)/2+.25, the last one above 1 again
        ("subtract", [0.75, 1.125, 0.0625, 3.03125, 1.265625], [0, 1, 0, 1, 1]),
        ("zero", [0.75, 1.125, 0.0, 3.0, 0.25], [0, 1, 0, 1, 0]),
        ("none", [0.75, 1.125, 0.5625, 3.28125, 1.890625], [0, 1, 0, 1, 1]),
    ],
)
def test_trace_agrees_with_a_hand_computation(reset: str, potentials: list[float], spikes: list[float]) -> None:
    trace = reference.forward(column(CURRENT), HALF.with_(reset=reset))
    assert trace.potential.ravel().tolist() == potentials
    assert trace.spikes.ravel().tolist() == spikes
    assert trace.decayed.ravel().tolist() == (np.array(potentials) - CURRENT).tolist()


def test_potential_on_the_threshold_fires() -> None:
    trace = reference.forward(column([1.0, np.nextafter(1.0, 0.0)]), HALF.with_(beta=0.0))
    assert trace.spikes.ravel().tolist() == [1, 0]


def test_forced_spikes_reset_and_the_neurons_own_do_not() -> None:
    trace = reference.forward(column([0.5, 0.5, 4.0]), HALF, forced=column([1, 0, 0]))
    assert trace.potential.ravel().tolist() == [0.5, 0.25, 4.125]  # (.5-1)/2+.5, .25/2+4
    assert trace.spikes.ravel().tolist() == [1, 0, 0]


@pytest.mark.parametrize("name", PROFILES)
def test_zero_and_one_steps(name: str) -> None:
    case = HALF.with_(**profile(name), surrogate="fast_sigmoid")
    nothing = np.empty((0, 2, 3))
    trace = reference.forward(nothing, case)
    assert trace.spikes.shape == trace.potential.shape == reference.backward(nothing, trace, case).shape == (0, 2, 3)
    trace = reference.forward(column([2.0]), case)
    assert trace.spikes.item() == 1
    assert reference.backward(column([3.0]), trace, case).item() == 3.0 / 4  # 1 / (1 + |2 - 1|)^2


@pytest.mark.parametrize("slope", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("surrogate", get_args(Surrogate))
def test_surrogates_are_their_formulas(surrogate: Surrogate, slope: float) -> None:
    distances = np.array([-3.0, -1.0, -0.4, -0.125, 0.0, 0.125, 0.4, 1.0, 3.0])
    expected = [DERIVATIVES[surrogate](d, slope, 1.25) for d in distances]
    np.testing.assert_allclose(FORMULAS[surrogate](distances, slope, 1.25), expected, rtol=1e-14, atol=2.0**-52)
    assert FORMULAS[surrogate](distances.astype(np.float32), slope, 1.25).dtype == np.float32


def test_every_surrogate_of_a_case_has_a_formula() -> None:
    assert set(FORMULAS) == set(get_args(Surrogate)) == set(DERIVATIVES)


def tangents(current: list[float], case: Case) -> np.ndarray:
    """ds[t] / dx[j] as [T, T]: every direction carried forward through the three lines of the neuron by itself."""
    steps = len(current)
    jacobian = np.zeros((steps, steps))
    slope_at, attached = DERIVATIVES[case.surrogate], 0.0 if case.detach_reset else 1.0
    for j in range(steps):
        v = dv = 0.0
        for t in range(steps):
            u, du = case.beta * v + current[t], case.beta * dv + (t == j)
            s = 1.0 if u >= case.threshold else 0.0
            ds = slope_at(u - case.threshold, case.slope, case.threshold) * du
            if case.reset == "subtract":
                v, dv = u - case.threshold * s, du - attached * case.threshold * ds
            elif case.reset == "none":
                v, dv = u, du
            else:
                v, dv = u * (1 - s), du * (1 - s) - attached * u * ds
            jacobian[t, j] = ds
    return jacobian


@pytest.mark.parametrize("steps", [1, 2, 13])
@pytest.mark.parametrize("surrogate", get_args(Surrogate))
@pytest.mark.parametrize("name", PROFILES)
def test_backpropagation_agrees_with_forward_differentiation(name: str, surrogate: Surrogate, steps: int) -> None:
    case = CASE.with_(**profile(name), surrogate=surrogate, slope=0.75, threshold=1.25)
    generator = np.random.default_rng(steps)
    current, cotangent = generator.normal(0.4, 0.8, steps), generator.normal(size=steps)
    trace = reference.forward(column(current.tolist()), case)
    assert steps < 10 or 0 < trace.spikes.sum() < steps
    got = reference.backward(column(cotangent.tolist()), trace, case).ravel()
    np.testing.assert_allclose(got, cotangent @ tangents(current.tolist(), case), rtol=1e-12, atol=1e-14)


def test_every_profile_has_its_own_gradient() -> None:
    current, cotangent = column([0.9, 0.9, 0.4, 1.7, 0.2, 0.8]), column([0.3, -1.1, 0.7, 0.9, 0.2, 1.0])
    gradients = set()
    for name in PROFILES:
        case = CASE.with_(**profile(name))
        gradients.add(reference.backward(cotangent, reference.forward(current, case), case).round(9).tobytes())
    assert len(gradients) == len(PROFILES)


def network_tangent(
    layers: list[tuple[np.ndarray, np.ndarray]],
    inputs: np.ndarray,
    direction: tuple[list[tuple[np.ndarray, np.ndarray]], np.ndarray],
    case: Case,
) -> np.ndarray:
    """How the spikes [T, B, N] of a network move in a direction of (weights and biases, input), carried forward."""
    steps, attached = len(inputs), 0.0 if case.detach_reset else 1.0
    slope_at = np.vectorize(DERIVATIVES[case.surrogate])
    s, ds = inputs, direction[1]
    for (weight, bias), (d_weight, d_bias) in zip(layers, direction[0], strict=True):
        x, dx = s @ weight.T + bias, ds @ weight.T + s @ d_weight.T + d_bias
        v = dv = np.zeros(x.shape[1:])
        s, ds = np.empty_like(x), np.empty_like(x)
        for t in range(steps):
            u, du = case.beta * v + x[t], case.beta * dv + dx[t]
            s[t] = np.where(u >= case.threshold, 1.0, 0.0)
            ds[t] = slope_at(u - case.threshold, case.slope, case.threshold) * du
            if case.reset == "subtract":
                v, dv = u - case.threshold * s[t], du - attached * case.threshold * ds[t]
            elif case.reset == "none":
                v, dv = u, du
            else:
                v, dv = u * (1 - s[t]), du * (1 - s[t]) - attached * u * ds[t]
    return ds


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("name", PROFILES)
def test_network_gradients_agree_with_forward_differentiation(name: str, depth: int) -> None:
    case = CASE.with_(**profile(name), time_steps=6, batch=2, neurons=5, layers=depth)
    problem = Problem(case)
    layers = [(w.astype(np.float64), b.astype(np.float64)) for w, b in problem.layers()]
    inputs, cotangent = problem.input(0).astype(np.float64), problem.cotangent(0).astype(np.float64)
    traces = reference.network_forward(layers, inputs, case)
    got = reference.network_backward(layers, inputs, traces, cotangent, case)
    generator = np.random.default_rng(depth)
    for _ in range(4):
        moves = [(generator.normal(size=w.shape), generator.normal(size=b.shape)) for w, b in layers]
        entering = generator.normal(size=inputs.shape)
        expected = (network_tangent(layers, inputs, (moves, entering), case) * cotangent).sum()
        parts = [np.vdot(got.weights[k], moves[k][0]) + np.vdot(got.biases[k], moves[k][1]) for k in range(depth)]
        assert sum(parts) + np.vdot(got.input, entering) == pytest.approx(expected, rel=1e-10)


def exact_traces(problem: Problem, dtype: type, order: np.ndarray) -> list[Trace]:
    """The network in plain arithmetic of one format, terms of each sum taken one by one in the given order."""
    case = problem.case
    beta, threshold, unit = dtype(case.beta), dtype(case.threshold), dtype(1)
    entering, traces = problem.input(0).astype(dtype), []
    for weight, bias in problem.layers():
        current = np.zeros(entering.shape, dtype) + bias.astype(dtype)
        for j in order:
            current += entering[:, :, j, None] * weight.astype(dtype)[:, j]
        potential, spikes, decayed = (np.zeros_like(current) for _ in range(3))
        v = np.zeros_like(current[0])
        for t, x in enumerate(current):
            decayed[t] = beta * v
            potential[t] = u = decayed[t] + x
            spikes[t] = s = (u >= threshold).astype(dtype)
            v = {"subtract": u - threshold * s, "zero": u * (unit - s), "none": u}[case.reset]
        assert v.dtype == dtype
        traces.append(Trace(potential, spikes, decayed))
        entering = spikes
    return traces


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("seed", range(5))
def test_exam_arithmetic_is_exact(name: str, layers: int, seed: int) -> None:
    problem = exam_problem(CASE.with_(**profile(name), seed=seed), layers)
    case, generator = problem.case, np.random.default_rng(seed)
    numbers = np.arange(case.neurons)
    single = exact_traces(problem, np.float32, numbers)
    shuffled = exact_traces(problem, np.float32, generator.permutation(numbers))
    double = exact_traces(problem, np.float64, numbers)
    wide = [(w.astype(np.float64), b.astype(np.float64)) for w, b in problem.layers()]
    own = reference.network_forward(wide, problem.input(0).astype(np.float64), case)
    assert len(own) == layers
    for number in range(layers):
        assert np.array_equal(single[number].potential, double[number].potential)
        assert np.array_equal(single[number].potential, shuffled[number].potential)
        assert np.array_equal(double[number].potential, own[number].potential)
        assert np.array_equal(single[number].spikes, own[number].spikes)
        assert np.abs(own[number].potential - case.threshold).min() >= 2.0**-13
        assert np.abs(own[number].potential).max() < 8
        assert 0.05 < own[number].spikes.mean() < 0.6


def test_exam_arithmetic_is_inexact_at_another_decay() -> None:
    problem = exam_problem(CASE, 1)
    problem = Problem(problem.case.with_(beta=0.9), exact=True)
    numbers = np.arange(problem.case.neurons)
    single, double = (exact_traces(problem, dtype, numbers)[0].potential for dtype in (np.float32, np.float64))
    assert not np.array_equal(single, double)


@pytest.mark.parametrize("name", PROFILES)
def test_cut_gradient_is_that_of_each_chunk_by_itself(name: str) -> None:
    whole, cut = CASE.with_(**profile(name)), CASE.with_(**profile(name), **CUT)
    current, cotangent = np.random.default_rng(5).normal(0.3, 1, (2, whole.time_steps, 4, 6))
    trace = reference.forward(current, cut)
    assert np.array_equal(trace.spikes, reference.forward(current, whole).spikes)
    chunks = [slice(start, start + cut.chunk_steps) for start in range(0, cut.time_steps, cut.chunk_steps)]
    parts = [Trace(trace.potential[each], trace.spikes[each], trace.decayed[each]) for each in chunks]
    alone = [reference.backward(cotangent[each], part, whole) for each, part in zip(chunks, parts, strict=True)]
    assert np.array_equal(reference.backward(cotangent, trace, cut), np.concatenate(alone))
    carried = reference.backward(cotangent, trace, cut.with_(carried_gradient=True))
    assert np.array_equal(carried, reference.backward(cotangent, trace, whole))
    assert not np.array_equal(carried, np.concatenate(alone))
