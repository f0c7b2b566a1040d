"""Test that the convolution of a NIR graph is the one of PyTorch."""

from pathlib import Path

import numpy as np
import torch

from snnbench.conformance.graph import read
from snnbench.conformance.network import Network
from tests.conformance.test_comparison import DT, output
from tests.nir_graphs import inputs, write


def test_convolution_is_that_of_pytorch(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    weight, bias = random.normal(size=(4, 2, 3, 2)).astype(np.float32), random.normal(size=4).astype(np.float32)
    options = {"stride": [2, 1], "padding": [1, 0], "dilation": [1, 2]}
    ends = {"input": {"type": "Input", "shape": [4, 7, 6]}, "output": {"type": "Output", "shape": [4, 4, 4]}}
    node = {"type": "Conv2d", "weight": weight, "bias": bias, "groups": 2, **options}
    edges = [("input", "map"), ("map", "output")]
    graph = read(write(tmp_path / "a.nir", {**ends, "map": node}, edges))
    given = inputs(graph, 3, batch=2)
    got = output(Network(graph, given, DT))
    whole = {name: tuple(values) for name, values in options.items()}
    tensors = [torch.tensor(array, dtype=torch.float64) for array in (given.reshape(6, 4, 7, 6), weight, bias)]
    expected = torch.nn.functional.conv2d(*tensors, groups=2, **whole).reshape(3, 2, 4, 4, 4)
    np.testing.assert_allclose(got, expected.numpy(), rtol=1e-12, atol=1e-12)
