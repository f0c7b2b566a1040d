"""Tests of the pass without neurons: what it runs, how it alternates with the whole pass, and when it has no time."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from snnbench.adapter.declaration import Variant
from snnbench.adapter.pins import Pins
from snnbench.adapter.refusal import Unsupported
from snnbench.backends import numpy
from snnbench.backends.torch import Backend, Network, Neuron, SteppedNeuron
from snnbench.cases.case import Case
from snnbench.measures.neuron_share.harness import neuron_shares
from snnbench.measures.neuron_share.worker import LinearLayers
from snnbench.proof import linear_layers
from snnbench.proof.passes import answer_of
from snnbench.worker.measure import Work
from snnbench.worker.timing import Phase
from snnbench.workloads.linear_lif import Problem
from tests.fakes import CASE, LIF, request

MS = 1_000_000
ORDERS = ("TBN", "BTN", "BNT")


def layer(current: torch.Tensor) -> torch.Tensor:
    """A neuron of which nothing must be left."""
    raise AssertionError("the neuron ran")


def whole(case: Case, weights: Any, variant: str) -> Network:
    return Neuron(lambda neurons: layer, gain=2.0).stack(weights)


def stepped(case: Case, weights: Any, variant: str) -> Network:
    return SteppedNeuron(lambda neurons: lambda current, state: (layer(current), state)).stack(weights)


def variant_of(order: str = "TBN") -> Variant:
    return Variant(about="", built_as="default", pins=Pins(), backend="torch", order=order)


def layers(build: Any = whole, case: Any = CASE, variant: Variant | None = None, **other: Any) -> LinearLayers:
    """The network of this build without its neurons."""
    lengths = {"repetitions": 10, "min_repetition_ns": 10 * MS, "max_phase_ns": 1000 * MS}
    asking = request("time", case, further=("neuron_share",), **lengths)
    given: dict[str, Any] = {"backend": Backend(case), "problem": Problem(case), "session": None} | other
    return LinearLayers(Work(asking, build=build, variant=variant or variant_of(), settle=lambda: None, **given))


@pytest.mark.parametrize(("build", "order"), [(stepped, "TBN"), *((whole, order) for order in ORDERS)])
@pytest.mark.parametrize("depth", [1, 3])
def test_pass_without_neurons_is_that_of_the_linear_layers(build: Any, order: str, depth: int) -> None:
    case = CASE.with_(layers=depth)
    problem = Problem(case)
    session: Any = Backend(case).session(
        Backend(case).without_neurons(build, variant_of(order)), variant_of(order), problem
    )
    answer = answer_of("train", session)
    assert linear_layers.complaint(problem, session.network.gain, answer) == ""
    assert answer.spikes is not None and answer.spikes.shape == problem.input(0).shape
    assert linear_layers.complaint(problem, 1.001 * session.network.gain, answer).startswith(
        "without neurons the outputs"
    )


WRONG: dict[str, Any] = {
    "outputs": lambda answer: answer.spikes,
    "gradients of the input": lambda answer: answer.input,
    "gradients of layer 1's weights": lambda answer: answer.weights[0],
    "gradients of layer 2's weights": lambda answer: answer.weights[1],
    "gradients of layer 1's biases": lambda answer: answer.biases[0],
    "gradients of layer 2's biases": lambda answer: answer.biases[1],
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_entry_of_linear_layers_is_named(name: str) -> None:
    problem = Problem(CASE.with_(layers=2))
    backend, variant = Backend(problem.case), variant_of()
    session: Any = backend.session(backend.without_neurons(whole, variant), variant, problem)
    answer = answer_of("train", session)
    wrong = WRONG[name](answer)
    added = 1e-3 * float(np.max(np.abs(wrong)))
    wrong[(0,) * wrong.ndim] += added
    complaint = linear_layers.complaint(problem, session.network.gain, answer)
    assert complaint == f"without neurons the {name} are off by up to {added:.3g}"


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_linear_layers_in_16_bits_are_right_and_no_more(dtype: str) -> None:
    problem = Problem(CASE.with_(dtype=dtype, layers=2))
    backend, variant = Backend(problem.case), variant_of()
    session: Any = backend.session(backend.without_neurons(whole, variant), variant, problem)
    answer = answer_of("train", session)
    assert linear_layers.complaint(problem, session.network.gain, answer) == ""
    assert "the outputs are off" in linear_layers.complaint(problem, 1.2 * session.network.gain, answer)


def test_pairs_alternate_and_last_as_long_as_requested() -> None:
    """The whole pass takes 8 ms, and a pass without neurons 2 ms."""
    now = 0
    order: list[str] = []
    without = layers()
    session: Any = without._session
    real = session.train

    def advance(name: str, ns: int) -> None:
        nonlocal now
        now += ns
        order.append(name)

    def linear() -> Any:
        advance("linear", 2 * MS)
        return real()

    session.train = linear
    nothing: Any = lambda *_: None  # noqa: E731
    phase = Phase(lambda _: advance("whole", 8 * MS), nothing, lambda: 0, nothing, nothing)
    pairs = without.beside("train", phase, 3, clock=lambda: now)
    assert pairs is not None and without.settings({}) == {}
    assert (pairs.passes, pairs.whole_passes) == (5, 3)
    assert pairs.repetitions_ns == [10 * MS] * 10 and pairs.whole_ns == [24 * MS] * 10
    measured = {name: getattr(pairs, name) for name in pairs.__slots__}
    assert neuron_shares(measured) == [0.75] * 10
    first = order.index("whole")
    assert order[first : first + 16] == ["whole"] * 3 + ["linear"] * 10 + ["whole"] * 3, "each time in the other order"


def test_late_library_has_linear_layers_that_are_not_late() -> None:
    late = replace(variant_of(), latency=1)
    without = layers(variant=late)
    nothing: Any = lambda *_: None  # noqa: E731
    assert without.beside("train", Phase(nothing, nothing, lambda: 0, nothing, nothing), 1)
    assert without.settings({}) == {}


def test_phase_backward_has_no_pass_without_neurons() -> None:
    nothing: Any = lambda *_: None  # noqa: E731
    phase = Phase(nothing, nothing, lambda: 0, nothing, nothing, prepare=lambda: None)
    assert layers().beside("backward", phase, 1) is None


def test_reason_says_why_there_is_no_pass_without_neurons() -> None:
    nothing: Any = object()
    without = layers(backend=numpy.Backend(CASE)).settings({})
    assert without == {"neuron_share": "not measured: this backend cannot leave neurons out"}
    from snnbench.workloads import lif

    alone = layers(case=LIF, problem=lif.Problem(LIF))
    assert "only a stack of linear layers" in alone.reason

    def full(case: Case, weights: Any, variant: str) -> Network:
        raise MemoryError

    assert "no memory" in layers(full).reason and layers(full).beside("train", nothing, 1) is None


def test_error_of_a_library_is_not_hidden() -> None:
    def broken(case: Case, weights: Any, variant: str) -> Network:
        raise ValueError("no such layer")

    with pytest.raises(ValueError, match="no such layer"):
        layers(broken)


def test_wrong_pass_without_neurons_has_no_time() -> None:
    """A library whose linear layers hold other weights than the harness gave: nothing is measured."""

    def scaled(case: Case, weights: Any, variant: str) -> Network:
        network = whole(case, weights, variant)
        with torch.no_grad():
            network.linears[0].weight *= 1.01
        return network

    without = layers(scaled)
    nothing: Any = lambda *_: None  # noqa: E731
    assert without.beside("train", Phase(nothing, nothing, lambda: 0, nothing, nothing), 1) is None
    assert "not measured: without neurons the outputs are off" in without.settings({})["neuron_share"]


def test_neurons_alone_have_nothing_without_neurons() -> None:
    with pytest.raises(Unsupported, match="nothing is left"):
        Neuron(lambda neurons: layer).alone(4).without_neurons("TBN")


def test_share_may_be_negative() -> None:
    """A fused kernel with products of its own may beat the framework's linear layers."""
    pairs = {"passes": 1, "repetitions_ns": [3, 3, 3], "whole_passes": 2, "whole_ns": [4, 4, 4]}
    assert np.allclose(neuron_shares(pairs), -0.5)
