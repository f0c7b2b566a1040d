"""Tests of operations in JAX: their values and gradients are those of the definition."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from snnbench.backends.jax.operations import Operations
from snnbench.backends.operations import NetworkParts
from snnbench.cases.operations import INPUT
from tests.frameworks.cases.test_operations import CASES, drawn


@pytest.mark.parametrize("name", [name for name, (operation, _) in CASES.items() if len(operation.of) == 1])
def test_operation_in_jax_is_the_one_defined(name: str) -> None:
    """The network is the operation alone, on two time steps of three samples."""
    entering, parameters, cotangent = drawn(name)
    operation = replace(CASES[name][0], of=(INPUT,))

    def value_of(params: Any, images: jax.Array) -> jax.Array:
        _, values = network.recorded(params, {}, images.reshape(2, 3, *images.shape[1:]))
        return values[operation.name]

    with jax.enable_x64(True):
        parts = NetworkParts([operation], {operation.name: parameters}, "TBN", {})
        network = Operations(parts, lambda _: lambda current: current, {})
        images = jax.numpy.asarray(entering[0])
        value, back = jax.vjp(value_of, network.params, images)
        of_params, of_images = back(jax.numpy.asarray(cotangent))
    np.testing.assert_allclose(value, operation.value(entering, parameters), atol=1e-11)
    got = [of_images, *of_params.get(operation.name, [])]
    expected = [
        *operation.backward(entering, parameters, cotangent),
        *operation.gradients(entering, parameters, cotangent),
    ]
    for ours, theirs in zip(got, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-11)
