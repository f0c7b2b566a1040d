"""Tests of operation counts: one network counted by hand, the limits, and the cases that share a forward pass."""

from typing import Any

import numpy as np
import pytest

from snnbench.analysis import operation_counts
from snnbench.analysis.operation_counts import by_work, count, dense, forward_work, network, of_problem
from snnbench.cases.operations import Linear
from snnbench.cases.windows import Convolution
from snnbench.workloads import lif, linear_lif, loading
from snnbench.workloads import network as networks
from tests.fakes import CASE, DIVIDED, LIF, profile
from tests.networks import RESNET, SMALL
from tests.small_epochs import SMALL as FED

SPIKES = ((1, 0), (0, 0), (1, 1))
"""Inputs of three steps."""


def two_neurons(inputs: tuple[tuple[float, float], ...], reset: str = "zero") -> linear_lif.Problem:
    """Two neurons with a decay of a half; a weight is 0."""
    case = CASE.with_(**profile(reset), neurons=2, batch=1, time_steps=len(inputs), beta=0.5, threshold=1.0)
    problem = linear_lif.Problem(case)
    problem._drawn["layers", 0] = [(np.array([[1, 0], [0.5, 1]], np.float32), np.zeros(2, np.float32))]
    entering = np.array(inputs, np.float32)[:, None]
    problem.put(0, entering, entering)
    return problem


def test_counts_of_two_neurons_by_hand() -> None:
    """The potentials after the reset are (0, 1/2), (0, 1/4) and (0, 0); the first input has two weights."""
    counts = of_problem(two_neurons(SPIKES))
    assert (counts.footprint_bytes, counts.parameters) == (24, 6)
    assert (counts.dense_operations, counts.dense_neuron_operations) == (12, 24)
    traced = counts.traced
    assert traced is not None and counts.reason == ""
    assert (traced.samples, traced.connection_sparsity, traced.activation_sparsity) == (1, 0.25, 0.5)
    assert (traced.effective_acs, traced.effective_macs) == (5, 0)
    assert (traced.membrane_updates, traced.effective_neuron_operations) == (4, 16)


@pytest.mark.parametrize(
    ("inputs", "acs", "macs"),
    [
        (((1, 0), (0, 0), (1, 0.5)), 2, 3),
        (((-1, 0), (0, 0), (1, 1)), 5, 0),
        (((2, 0), (0, 0), (0, 0.5)), 0, 3),
        (((0, 0), (0, 0), (0, 0)), 0, 0),
    ],
)
def test_step_with_another_number_than_spikes_has_macs(inputs: Any, acs: int, macs: int) -> None:
    traced = of_problem(two_neurons(inputs)).traced
    assert traced and (traced.effective_acs, traced.effective_macs) == (acs, macs)


def test_neuron_without_a_reset_has_no_price() -> None:
    counts = of_problem(two_neurons(SPIKES, "none"))
    assert counts.traced and counts.traced.membrane_updates == 6
    assert (counts.dense_neuron_operations, counts.traced.effective_neuron_operations) == (None, None)


def test_samples_are_averaged() -> None:
    problem = two_neurons(SPIKES)
    more = linear_lif.Problem(problem.case.with_(batch=2))
    more._drawn["layers", 0] = problem.layers()
    entering = np.concatenate([problem.input(0), np.zeros_like(problem.input(0))], 1)
    more.put(0, entering, entering)
    alone, both = of_problem(problem), of_problem(more)
    assert alone.dense_operations == both.dense_operations
    assert alone.traced and both.traced and both.traced.effective_acs == alone.traced.effective_acs / 2
    assert both.traced.membrane_updates == (4 + 2) / 2, "without a current only the first step counts"


@pytest.mark.parametrize(("dtype", "bytes_each"), [("float64", 8), ("float32", 4), ("bfloat16", 2), ("float16", 2)])
def test_footprint_has_the_size_of_the_number_format(dtype: Any, bytes_each: int) -> None:
    counts = count(CASE.with_(dtype=dtype))
    assert counts.footprint_bytes == bytes_each * (CASE.neurons**2 + CASE.neurons)


def test_neurons_alone_have_no_connections() -> None:
    counts = count(LIF)
    assert (counts.footprint_bytes, counts.dense_operations) == (0, 0)
    assert counts.traced and counts.traced.connection_sparsity is None and counts.traced.effective_acs == 0
    assert 0 < counts.traced.activation_sparsity < 1


@pytest.mark.parametrize("case", [SMALL, RESNET, RESNET.with_(image="mnist")])
def test_dense_operations_of_convolutions(case: networks.Case) -> None:
    """The pairs are those that a convolution of ones with a kernel of ones counts."""
    problem = networks.Problem(case)
    channels, side, _ = networks.IMAGES[case.image]
    shapes = {"input": (channels, side, side)}
    expected = 0.0
    for operation in network(problem):
        if isinstance(operation, Convolution | Linear):
            ones = [np.ones(shape) for shape in operation.parameters.values()]
            ones[1:] = [np.zeros_like(bias) for bias in ones[1:]]
            expected += operation.value([np.ones((1, *shapes[operation.of[0]]))], ones).sum()
        shapes[operation.name] = operation.shape
    assert dense(case, network(problem)) == expected


def test_stack_is_one_network() -> None:
    names = [operation.name for operation in network(linear_lif.Problem(CASE.with_(layers=2)))]
    assert names == ["layer 1 linear", "layer 1 neurons", "layer 2 linear", "layer 2 neurons"]
    assert [type(operation).__name__ for operation in network(lif.Problem(LIF))] == ["Neurons"]


def test_part_of_a_large_batch_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    products = CASE.time_steps * CASE.neurons**2
    monkeypatch.setattr(operation_counts, "MOST_PRODUCTS", 3 * products)
    part, whole = count(CASE), count(CASE, whole=True)
    assert part.traced and part.traced.samples == 3 and part.reason == f"the first 3 of {CASE.batch} samples"
    assert whole.traced and whole.traced.samples == CASE.batch and whole.reason == ""
    assert part.dense_operations == whole.dense_operations
    assert part.traced.activation_sparsity != whole.traced.activation_sparsity


@pytest.mark.parametrize(
    ("limit", "case", "reason"),
    [
        ("MOST_PRODUCTS", CASE, "not computed: a sample has 4.6e+04 products and 1.9e+03 values, over the limit"),
        ("MOST_VALUES", LIF, "not computed: a sample has"),
        ("MOST_DRAWN", CASE, "not computed: 9.1e+03 numbers to draw, and the limit is"),
        ("MOST_VALUES", SMALL, "not computed: the batch is too large, and its statistics need all samples"),
    ],
)
def test_large_case_says_why_it_is_not_computed(
    limit: str, case: Any, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operation_counts, limit, 10)
    counts = count(case)
    assert counts.traced is None and counts.reason.startswith(reason)
    assert counts.dense_neuron_operations == count(case, whole=True).dense_neuron_operations


@pytest.mark.parametrize("whole", [False, True])
def test_input_of_a_dataset_is_not_counted(whole: bool) -> None:
    counts = count(FED, whole)
    assert isinstance(FED, loading.Case) and counts.traced is None and counts.parameters > 0
    assert counts.reason == "not computed: the input is read from the files of a dataset"


@pytest.mark.parametrize(
    "change",
    [
        {"device": "cuda"},
        {"threads": 9},
        {"surrogate": "atan", "slope": 2.0},
        {"detach_reset": True},
        {"input_gradient": False},
    ],
)
def test_cases_with_one_forward_pass_are_counted_once(change: dict[str, Any]) -> None:
    other = CASE.with_(**change)
    assert by_work([CASE, other, CASE]) == {forward_work(CASE): [CASE, other]}
    assert count(forward_work(CASE)).traced == count(other).traced


@pytest.mark.parametrize("change", [{"seed": 8}, {"neurons": 9}, {"dtype": "float64"}, {"precision": "tf32"}])
def test_cases_with_other_forward_passes_are_counted_apart(change: dict[str, Any]) -> None:
    assert len(by_work([CASE, CASE.with_(**change)])) == 2


def test_divided_case_is_counted_as_a_whole() -> None:
    divided = count(DIVIDED.with_(devices=2)).traced
    assert divided == count(DIVIDED).traced
