"""Tests of a pass in one stretch, as on a GPU, with the kernel `torch` in place of a GPU's."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from snnbench.kernels import Neuron, lif_torch, one_stretch, pipeline, stretches
from snnbench.kernels.passes import Gradients, Layer, Wanted, prepared
from snnbench.kernels.sums import Sums
from tests.frameworks.kernels.test_kernels import problem
from tests.oracle import FEW_NEURONS, distance, identifier

NEURON = Neuron(0.9, 1.0)
STEPS, BATCH, ENTERING, NEURONS = 9, 3, 5, 11
FIELDS = ("potential", "input", "weight", "bias")


def of_first_shape(run: Any) -> Any:
    """A kernel that, like those for GPUs, reads the numbers of steps and columns of its first tensor only."""

    def kernel(first: Any, state: Any, second: Any, third: Any, *rest: Any) -> None:
        first = first.view(first.shape[0], -1)
        run(first, *views(first, state, second, third), *map(flat, rest))

    return kernel


def views(first: Any, *others: Any) -> list[Any]:
    """Tensors of M numbers as [M], larger ones as the first [T, M]."""
    columns = first.shape[1]
    return [None if one is None else one.view(-1) if one.numel() == columns else one.view_as(first) for one in others]


def flat(argument: Any) -> Any:
    """Sums [M] of a backward pass; all else is as it was."""
    if isinstance(argument, Sums):
        return Sums(*(None if total is None else total.view(-1) for total in argument))
    return argument


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel `cuda` by torch's operations."""
    kernel = SimpleNamespace(forward=of_first_shape(lif_torch.forward), backward=of_first_shape(lif_torch.backward))
    monkeypatch.setattr(one_stretch, "module", lambda name: kernel)


def layer(kernel: str, dtype: Any, keep: str, neuron: Neuron = NEURON, **absent: bool) -> tuple[Layer, Any, Any]:
    """A layer, and the cotangents of its spikes and of its last potential."""
    given = {name: value.to(dtype) for name, value in problem(STEPS, BATCH, ENTERING, NEURONS).items()}
    tensors = [None if absent.get(name) else given[name] for name in ("inputs", "weight", "bias", "potential")]
    if absent.get("weight"):
        tensors[0] = given["cotangent"] + 1
    carried = None if absent.get("carried") else given["carried"]
    return prepared(*tensors, neuron, keep, kernel), given["cotangent"], carried


def pass_of(module: Any, kernel: str, *arguments: Any, wanted: Wanted, **absent: bool) -> tuple[Any, Any, Gradients]:
    """Spikes, the last potential and the gradients, by one module."""
    given, cotangent, carried = layer(kernel, *arguments, **absent)
    spikes, last, saved = module.forward(given)
    return spikes, last, module.backward(given, cotangent, carried, saved, wanted)


ALL = Wanted(True, True, True, False, True)


@pytest.mark.parametrize(
    "absent", [(), ("bias",), ("potential", "carried"), ("weight",), ("weight", "potential")], ids=str
)
@pytest.mark.parametrize("keep", ["potential", "nothing"])
@pytest.mark.parametrize("neuron", FEW_NEURONS, ids=identifier)
def test_numbers_equal_the_numbers_of_the_pipeline(neuron: Neuron, keep: str, absent: tuple[str, ...]) -> None:
    given: dict[str, Any] = dict.fromkeys(absent, True)
    wanted = ALL._replace(weight="weight" not in absent, bias="bias" not in absent)
    spikes, last, gradients = pass_of(one_stretch, "cuda", torch.float64, keep, neuron, wanted=wanted, **given)
    expected = pass_of(pipeline, "torch", torch.float64, "potential", neuron, wanted=wanted, **given)
    assert torch.equal(spikes, expected[0]) and 0 < spikes.mean() < 1
    assert distance(last, expected[1]) < 1e-12
    for name in FIELDS:
        ours, theirs = getattr(gradients, name), getattr(expected[2], name)
        assert (ours is None) == (theirs is None), name
        assert ours is None or distance(ours, theirs) < 1e-12, name


@pytest.mark.parametrize("left_out", ["input", "weight", "bias"])
def test_gradient_without_use_is_left_out(left_out: str) -> None:
    wanted = ALL._replace(**{left_out: False})
    _, _, gradients = pass_of(one_stretch, "cuda", torch.float32, "potential", wanted=wanted)
    assert {name for name in FIELDS if getattr(gradients, name) is None} == {left_out}


@pytest.mark.parametrize(
    ("dtype", "keep"),
    [("float32", "bfloat16"), ("bfloat16", "potential"), ("float16", "bfloat16"), ("bfloat16", "nothing")],
)
def test_formats_equal_the_formats_of_the_pipeline(dtype: str, keep: str) -> None:
    spikes, last, gradients = pass_of(one_stretch, "cuda", getattr(torch, dtype), keep, wanted=ALL)
    others = pass_of(pipeline, "torch", getattr(torch, dtype), keep, wanted=ALL)
    assert (spikes.dtype, last.dtype) == (others[0].dtype, others[1].dtype)
    for name in FIELDS:
        ours, theirs = getattr(gradients, name), getattr(others[2], name)
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape, name
        assert distance(ours.float(), theirs.float()) < 0.05, name


def test_autocast_rounds_no_product() -> None:
    expected = pass_of(one_stretch, "cuda", torch.float32, "potential", wanted=ALL)
    with torch.autocast("cpu", torch.bfloat16):
        spikes, last, gradients = pass_of(one_stretch, "cuda", torch.float32, "potential", wanted=ALL)
    assert torch.equal(spikes, expected[0]) and torch.equal(last, expected[1])
    assert all(torch.equal(getattr(gradients, name), getattr(expected[2], name)) for name in FIELDS)


def test_inference_keeps_nothing() -> None:
    given, *_ = layer("cuda", torch.float32, "")
    spikes, _, saved = one_stretch.forward(given)
    assert saved.numel() == 0 and torch.equal(spikes, pipeline.forward(given._replace(kernel_name="torch"))[0])


def test_recomputation_keeps_a_potential() -> None:
    given, *_ = layer("cuda", torch.float32, "nothing")
    _, last, saved = one_stretch.forward(given)
    assert torch.equal(saved[0], given.start) and not torch.equal(last, given.start)


def test_recomputation_of_many_steps_is_left_to_the_pipeline() -> None:
    tensors = torch.zeros(stretches.GPU_STEPS + 1, 2, ENTERING), torch.zeros(NEURONS, ENTERING), None, None, NEURON
    assert not one_stretch.serves(prepared(*tensors, "nothing", "cuda"))
    assert one_stretch.serves(prepared(*tensors, "potential", "cuda"))
    assert one_stretch.serves(prepared(tensors[0][1:], *tensors[1:], "nothing", "cuda"))


@pytest.mark.parametrize("shape", [(0, 3, 5), (9, 0, 5), (9, 3, 0)])
def test_pass_without_work_is_left_to_the_pipeline(shape: tuple[int, int, int]) -> None:
    weight = torch.zeros(NEURONS, shape[2])
    assert not one_stretch.serves(prepared(torch.zeros(shape), weight, None, None, NEURON, "potential", "cuda"))
