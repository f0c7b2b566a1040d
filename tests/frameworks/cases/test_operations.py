"""Tests of operations: values and gradients are those of PyTorch's own functions, in whole and in part.

The modules that the harness makes of them have the same values.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from snnbench.backends.torch.operations import _module
from snnbench.cases.operations import (
    Attention,
    Average,
    Flatten,
    Linear,
    Neurons,
    Normalisation,
    Operation,
    Scaling,
    Sum,
)
from snnbench.cases.windows import Convolution, MaximumPool, WindowSum

F = torch.nn.functional
IMAGES, CHANNELS, SIDE = 6, 5, 9
IMAGE = (CHANNELS, SIDE, SIDE)


def convolution(shape: tuple[int, ...], size: tuple[int, ...], **options: Any) -> Convolution:
    """A convolution of CHANNELS channels with these options, and else with stride 1, no padding and no dilation."""
    axes = len(size)
    every: dict[str, Any] = {"stride": (1,) * axes, "padding": (0,) * axes, "dilation": (1,) * axes} | options
    return Convolution(name="x", of=("a",), shape=shape, inputs=CHANNELS, size=size, **every)


def _attended(queries: Any, keys: Any, values: Any, subscripts: str) -> Any:
    return 0.25 * torch.einsum(subscripts, *(each.flatten(2) for each in (queries, keys, values))).reshape(
        queries.shape
    )


CASES: dict[str, tuple[Operation, Callable[..., Any]]] = {
    "convolution": (
        convolution((4, 9, 9), size=(3, 3), padding=(1, 1)),
        lambda x, w: F.conv2d(x, w, None, 1, 1),
    ),
    "strided": (
        convolution((4, 5, 5), size=(7, 7), stride=(2, 2), padding=(3, 3)),
        lambda x, w: F.conv2d(x, w, None, 2, 3),
    ),
    "projection": (
        convolution((4, 5, 5), size=(1, 1), stride=(2, 2)),
        lambda x, w: F.conv2d(x, w, None, 2),
    ),
    "oblong": (
        convolution((4, 4, 5), size=(3, 2), stride=(2, 1), padding=(1, 0), dilation=(2, 4), biased=True),
        lambda x, w, b: F.conv2d(x, w, b, (2, 1), (1, 0), (2, 4)),
    ),
    "convolution of one axis": (
        convolution((4, 4), size=(3,), stride=(2,), padding=(1,), dilation=(2,), biased=True),
        lambda x, w, b: F.conv1d(x, w, b, 2, 1, 2),
    ),
    "normalisation": (
        Normalisation(name="x", of=("a",), shape=IMAGE),
        lambda x, w, b: F.batch_norm(x, None, None, w, b, True, 0.0, 1e-5),
    ),
    "frozen": (
        Normalisation(name="x", of=("a",), shape=IMAGE, variance=0.3),
        lambda x, w, b: F.batch_norm(
            x, torch.zeros(5).double(), torch.full((5,), 0.3).double(), w, b, False, 0.0, 1e-5
        ),
    ),
    "pool": (
        MaximumPool(name="x", of=("a",), shape=(CHANNELS, 5, 5), size=3, stride=2, padding=1),
        lambda x: F.max_pool2d(x, 3, 2, 1),
    ),
    "window sum": (
        WindowSum(name="x", of=("a",), shape=(CHANNELS, 5, 8), size=(3, 2), stride=(2, 1), padding=(1, 0)),
        lambda x: F.avg_pool2d(x, (3, 2), (2, 1), (1, 0), divisor_override=1),
    ),
    "window mean": (
        WindowSum(name="x", of=("a",), shape=(CHANNELS, 5), size=(3,), stride=(2,), padding=(1,), is_mean=True),
        lambda x: F.avg_pool1d(x, 3, 2, 1),
    ),
    "average": (Average(name="x", of=("a",), shape=(CHANNELS,)), lambda x: x.mean((2, 3))),
    "sum": (Sum(name="x", of=("a", "b"), shape=IMAGE), lambda x, y: x + y),
    "attention": (
        Attention(name="x", of=("a", "b", "c"), shape=IMAGE, heads=1, scale=0.25),
        lambda q, k, v: _attended(q, k, v, "idp,idr,ier->iep"),
    ),
    "attention of a head for each channel": (
        Attention(name="x", of=("a", "b", "c"), shape=IMAGE, heads=CHANNELS, scale=0.25),
        lambda q, k, v: _attended(q, k, v, "idp,idr,idr->idp"),
    ),
    "linear": (Linear(name="x", of=("a",), shape=(4,), inputs=CHANNELS), F.linear),
    "no bias": (Linear(name="x", of=("a",), shape=(4,), inputs=CHANNELS, biased=False), F.linear),
    "flatten": (Flatten(name="x", of=("a",), shape=(math.prod(IMAGE),)), lambda x: x.flatten(1)),
    "scaling": (Scaling(name="x", of=("a",), shape=IMAGE), lambda x, w: x * w),
    "scaling with a bias": (Scaling(name="x", of=("a",), shape=IMAGE, biased=True), lambda x, w, b: x * w + b),
}
PLACES = {"convolution of one axis": (SIDE,), "window mean": (SIDE,), "linear": (), "no bias": ()}
"""The places of the images that enter, where they are not SIDE x SIDE."""


def drawn(name: str) -> tuple[list[Any], list[Any], Any]:
    """Entering values, parameters and a cotangent. Values are spikes, so a pool has equal maxima."""
    operation, random = CASES[name][0], np.random.default_rng(3)
    shape = (IMAGES, CHANNELS, *PLACES.get(name, (SIDE, SIDE)))
    entering = [(random.random(shape) < 0.4).astype(np.float64) for _ in operation.of]
    parameters = [random.standard_normal(size) for size in operation.parameters.values()]
    return entering, parameters, random.standard_normal((IMAGES, *operation.shape))


@pytest.mark.parametrize("name", CASES)
def test_operation_is_the_one_of_pytorch(name: str) -> None:
    operation, function = CASES[name]
    entering, parameters, cotangent = drawn(name)
    leaves = [torch.tensor(array, requires_grad=True) for array in (*entering, *parameters)]
    value = function(*leaves)
    gradients = torch.autograd.grad(value, leaves, torch.tensor(cotangent))
    np.testing.assert_allclose(operation.value(entering, parameters), value.detach(), atol=1e-12)
    ours = [
        *operation.backward(entering, parameters, cotangent),
        *operation.gradients(entering, parameters, cotangent),
    ]
    for got, expected in zip(ours, gradients, strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-11)


@pytest.mark.parametrize("name", CASES)
def test_some_channels_by_themselves_are_equal(name: str) -> None:
    operation, _ = CASES[name]
    entering, parameters, cotangent = drawn(name)
    channels = [0, 3]
    part = [value[:, channels] for value in entering] if operation.channelwise else entering
    some = [parameter[channels] for parameter in parameters]
    whole = operation.value(entering, parameters)
    np.testing.assert_allclose(operation.value_of(channels, part, some), whole[:, channels], atol=1e-12)
    gradients = operation.gradients(entering, parameters, cotangent)
    for got, expected in zip(operation.gradients(part, some, cotangent[:, channels]), gradients, strict=True):
        np.testing.assert_allclose(got, expected[channels], atol=1e-12)


@pytest.mark.parametrize("name", [name for name, (operation, _) in CASES.items() if not operation.mixes_images])
def test_some_images_by_themselves_are_equal(name: str) -> None:
    operation, _ = CASES[name]
    entering, parameters, cotangent = drawn(name)
    some = [value[1:3] for value in entering]
    whole = operation.backward(entering, parameters, cotangent)
    for got, expected in zip(operation.backward(some, parameters, cotangent[1:3]), whole, strict=True):
        np.testing.assert_allclose(got, expected[1:3], atol=1e-12)


@pytest.mark.parametrize("name", [name for name in CASES if name != "sum"])
def test_module_of_pytorch_has_the_value(name: str) -> None:
    operation, _ = CASES[name]
    entering, parameters, _ = drawn(name)
    module = _module(operation, [torch.tensor(array) for array in parameters], 3.0)
    assert [each for each, _ in module.named_parameters()] == list(operation.parameters)
    value = module(*map(torch.tensor, entering)).detach()
    expected = operation.value(entering, [3.0 * array for array in parameters])
    expected = 3.0 * expected if isinstance(operation, Attention) else expected
    np.testing.assert_allclose(value, expected, atol=1e-11)


def test_sums_that_cancel_have_the_size_of_their_parts() -> None:
    operation, _ = CASES["convolution"]
    (entering,), parameters, cotangent = drawn("convolution")
    twice, opposite = np.concatenate([entering] * 2), np.concatenate([cotangent, -cotangent])
    (gradient,) = operation.gradients([twice], parameters, opposite)
    (size,) = operation.gradient_sizes([twice], parameters, opposite)
    (half,) = operation.gradient_sizes([entering], parameters, cotangent)
    assert np.linalg.norm(gradient) < 1e-12 and 1.1 * half > size >= half > 1
    operation, _ = CASES["normalisation"]
    given = drawn("normalisation")
    assert operation.gradient_sizes(*given) == [np.linalg.norm(each) for each in operation.gradients(*given)]


@pytest.mark.parametrize("name", ["linear", "scaling with a bias"])
def test_size_of_a_sum_over_images_is_that_of_its_terms(name: str) -> None:
    """Whatever their signs; it is about the norm if the signs are random."""
    operation, _ = CASES[name]
    entering, parameters, cotangent = drawn(name)
    sizes = operation.gradient_sizes(entering, parameters, cotangent)
    assert sizes == operation.gradient_sizes(entering, parameters, np.abs(cotangent))
    norms = [np.linalg.norm(each) for each in operation.gradients(entering, parameters, cotangent)]
    np.testing.assert_allclose(sizes, norms, rtol=0.3)


def test_statistics_of_a_batch_make_a_cotangent_cancel() -> None:
    """A channel with the values -1, -1, 1, 1. The rest of a cotangent has no mean, and no part along the value."""
    batch = Normalisation(name="n", of=("x",), shape=(1, 1, 1), epsilon=0.0)
    value = np.array([-1.0, -1.0, 1.0, 1.0]).reshape(4, 1, 1, 1)
    ones = [np.ones(1), np.zeros(1)]
    cotangent = np.array([4.0, 2.0, 1.0, 1.0]).reshape(4, 1, 1, 1)
    (gradient,) = batch.backward([value], ones, cotangent)
    assert gradient.ravel().tolist() == [1.0, -1.0, 0.0, 0.0]
    assert batch.cancellation([value], ones, cotangent) == pytest.approx(math.sqrt(22 / 2))
    frozen = replace(batch, variance=1.0)
    assert frozen.cancellation([value], ones, cotangent) == 1.0
    assert batch.cancellation([value], ones, np.ones((4, 1, 1, 1))) == 1.0, "nothing remains"


def test_neurons_have_no_value_by_image() -> None:
    neurons = Neurons(name="x", of=("a",), shape=IMAGE)
    assert neurons.count == math.prod(IMAGE)
    with pytest.raises(TypeError, match="no value by image"):
        neurons.value([np.zeros((1, *IMAGE))], [])
    with pytest.raises(TypeError, match="no gradient by image"):
        neurons.backward([np.zeros((1, *IMAGE))], [], np.zeros((1, *IMAGE)))
