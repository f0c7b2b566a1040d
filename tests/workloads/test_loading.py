"""Tests of the workloads loading and training: sizes, floors, and networks whose every site fires."""

import numpy as np
import pytest

from snnbench import workloads
from snnbench.cases import network_reference
from snnbench.cases.operations import Neurons
from snnbench.datasets import frames, generated
from snnbench.proof.tolerance import RATE_WINDOW
from snnbench.worker import floor
from snnbench.workloads import loading
from tests.fakes import profile
from tests.feeding.small import LEARNING, SMALL


def test_sizes_of_a_case() -> None:
    assert (SMALL.batches, SMALL.samples_in_pass, SMALL.classes) == (4, 16, 20)
    assert SMALL.neurons == 64 and SMALL.shape == (50, 4, 20)
    assert SMALL.steps is None and LEARNING.steps == ("adam", 0.01)
    assert SMALL.kind == "loading generated-shd, naive, subtract"
    assert workloads.decode(LEARNING.as_dict()) == LEARNING


def test_floor_counts_products_of_all_batches() -> None:
    assert loading.products(SMALL, "epoch") == {"current": 4, "weight_gradient": 4, "input_gradient": 4}
    assert loading.products(SMALL, "train") == {"current": 1, "weight_gradient": 1, "input_gradient": 1}
    assert loading.products(SMALL, "loader") == {}
    assert floor.flops(SMALL, "epoch") == 12 * 2 * 200 * 32**2
    parameters = 100 * 32 + 32 + 32**2 + 32 + 32 * 20 + 20
    assert floor.least_bytes(SMALL, "loader") == 4 * 4 * 200 * 100
    assert floor.least_bytes(SMALL, "epoch") == 4 * 4 * (200 * 100 + 200 * 20 + 2 * parameters)


@pytest.mark.parametrize("reset", ["subtract", "zero"])
@pytest.mark.parametrize("beta", [0.5, 0.9, 0.9375, 1.0])
@pytest.mark.parametrize("steps", [50, 100, 250])
def test_every_site_fires(reset: str, beta: float, steps: int) -> None:
    """On frames of generated words, and in the exam."""
    case = SMALL.with_(beta=beta, time_steps=steps, width=64, layers=3, batch=2, **profile(reset))
    words = [generated.sample(0, "train", number, 20) for number in range(2)]
    batch = np.stack([frames.frames(times, units, steps) for times, units, _ in words], 1)
    (exam,) = loading.exams(case)
    for problem, inputs in ((loading.Problem(case), batch), (exam, exam.input(0))):
        parts = problem.operations()
        values = network_reference.run(parts, problem.parameters(), inputs.astype(np.float64), problem.case)
        for operation in parts:
            if isinstance(operation, Neurons):
                rate = values[operation.name].mean()
                assert RATE_WINDOW[0] <= rate <= RATE_WINDOW[1], f"{operation.name}: {rate}"
