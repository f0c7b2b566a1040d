"""Tests of networks: every site fires, and the floor counts every convolution."""

from typing import Any

import numpy as np
import pytest

from snnbench.cases import network_reference
from snnbench.cases.operations import INPUT, Neurons
from snnbench.cases.windows import Convolution
from snnbench.proof.tolerance import RATE_WINDOW
from snnbench.worker import floor
from snnbench.workloads import models, network
from tests.fakes import profile
from tests.networks import SMALL


def values_of(problem: network.Problem) -> dict[str, Any]:
    """The value of every operation in float64, on input 0."""
    inputs = problem.input(0).astype(np.float64)
    return network_reference.run(problem, inputs)


@pytest.mark.parametrize("name", models.MODELS)
@pytest.mark.parametrize("reset", ["subtract", "zero"])
def test_every_site_fires(name: Any, reset: str) -> None:
    case = SMALL.with_(model=name, image="cifar10", width=8, normalisation="frozen", **profile(reset))
    for problem in (network.Problem(case), network.Problem(case.with_(normalisation="batch")), *network.exams(case)):
        values = values_of(problem)
        for operation in problem.operations():
            if isinstance(operation, Neurons):
                rate = values[operation.name].mean()
                assert RATE_WINDOW[0] <= rate <= RATE_WINDOW[1], f"{operation.name}: {rate}"


@pytest.mark.parametrize("name", models.MODELS)
def test_currents_of_the_exam_are_exact(name: Any) -> None:
    (problem,) = network.exams(SMALL.with_(model=name))
    values = values_of(problem)
    for operation in problem.operations():
        if isinstance(operation, Neurons):
            currents = values[operation.of[0]]
            assert np.array_equal(64 * currents, np.round(64 * currents)) and np.abs(currents).max() <= 3.5


def test_models_have_the_sites_of_their_papers() -> None:
    sites = {name: 0 for name in models.MODELS}
    for name in models.MODELS:
        case = SMALL.with_(model=name, width=64, image="cifar10")
        sites[name] = sum(isinstance(operation, Neurons) for operation in network.parts(case).operations)
    resnets = {"spiking-resnet18": 17, "spiking-resnet34": 33, "spiking-resnet50": 49}
    assert sites == resnets | {"sew-resnet18": 20, "spikformer": 17, "vgg": 6, "convolutional": 2}
    assert SMALL.with_(model="spiking-resnet18", width=64, image="cifar10").neurons == 47_104
    assert SMALL.with_(model="spiking-resnet50", width=64, image="cifar10").neurons == 196_096


def test_floor_counts_each_convolution() -> None:
    case = SMALL.with_(model="spiking-resnet18", width=64, image="cifar10")
    counts = network.products(case, "train")
    convolutions = [each for each in network.parts(case).operations if isinstance(each, Convolution)]
    assert len(convolutions) == 20 and sum(counts.values()) == 3 * 20 - 1, "the image needs no gradient"
    assert sum(network.products(case, "inference").values()) == 20
    forward = sum(2 * case.time_steps * case.batch * np.prod(each.shape) * each.terms for each in convolutions)
    assert floor.flops(case, "inference") == forward
    kernels = {name.partition(".")[0] for name in counts}
    assert set(network.convolutions(case)) == kernels


def test_site_is_a_problem_of_neurons_alone() -> None:
    problem = network.Problem(SMALL)
    operation = next(each for each in problem.operations() if isinstance(each, Neurons))
    current = np.ones((6, 3, operation.count))
    site = problem.site(operation, current, current)
    assert site.case.neurons == operation.count and site.input(0) is current
    assert operation.of != (INPUT,)
