"""Tests of the workloads loading and training: sizes, floors, and networks whose every site fires."""

import hashlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from typer.testing import CliRunner

from snnbench import workloads
from snnbench.adapter import reading
from snnbench.adapter.refusal import Unsupported
from snnbench.cases import network_reference
from snnbench.cases.operations import Neurons
from snnbench.cli import app
from snnbench.datasets import frames, generated
from snnbench.environments import store
from snnbench.proof.tolerance import RATE_WINDOW
from snnbench.worker import floor
from snnbench.workloads import loading
from tests.fakes import profile
from tests.small_epochs import LEARNING, ROOT, SMALL


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
        values = network_reference.run(problem, inputs.astype(np.float64))
        for operation in parts:
            if isinstance(operation, Neurons):
                rate = values[operation.name].mean()
                assert RATE_WINDOW[0] <= rate <= RATE_WINDOW[1], f"{operation.name}: {rate}"


def test_neuron_of_another_framework_is_refused() -> None:
    adapter = ModuleType("other")
    adapter.neuron = lambda case, variant: object()  # type: ignore[attr-defined]
    with pytest.raises(Unsupported, match="feeds a loop of PyTorch only"):
        loading.builder(adapter)(SMALL, None, "default")


def test_environment_has_the_packages_of_the_workload() -> None:
    adapter = reading.read(ROOT / "adapters" / "torch-loop.py")
    plain, fed = (store.plan(adapter, "unbind", False, name) for name in ("linear_lif", "loading"))
    assert set(fed.requirements) - set(plain.requirements) == set(loading.PACKAGES)
    assert [override.partition(";")[0] for override in fed.overrides] == ["librosa"]
    assert fed.key != plain.key
    assert plain.key == store.plan(adapter, "unbind", False).key


def test_file_with_another_checksum_is_refused(tmp_path: Path) -> None:
    path = generated.make(SMALL.source.dataset, "train", 2, 0, tmp_path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    right, wrong = (
        CliRunner().invoke(app, ["data", "check", str(path), "--checksum", given]) for given in (digest, "0" * 64)
    )
    assert right.exit_code == 0 and digest in right.output
    assert wrong.exit_code != 0 and "has the sha256" in str(wrong.exception)
