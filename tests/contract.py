"""The contract of every kernel module (snnbench/kernels/__init__.py), as checks of a given module.

An assertion here names the formats at fault; the test's name holds the neuron.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from types import ModuleType

import torch

from snnbench.kernels import lif_ref
from snnbench.kernels.neuron import Neuron
from snnbench.kernels.sums import Sums
from tests import oracle
from tests.oracle import FORMATS, NEURONS, Gradients, Problem

FLOAT32_GRADIENT = 5e-6
"""Relative to the Euclidean norm: the sum of some hundred roundings to 24 bits, with a margin."""
BFLOAT16_KEPT_GRADIENT = 5e-3
"""The same with u - threshold in 8 bits and a surrogate without jumps."""
PAIRS = [(stored, kept) for stored in FORMATS for kept in FORMATS if kept in (stored, torch.float32)] + [
    (torch.float32, torch.bfloat16),
    (torch.float32, torch.float16),
]
"""Storage format and format of `kept`."""


@dataclass(frozen=True, slots=True)
class Kernels:
    """A kernel module, the device of its tensors, and a size that is awkward for it.

    `bfloat16_error` is the allowed error of rounding to bfloat16, in units in the last place.
    """

    module: ModuleType
    device: str = "cpu"
    steps: int = 7
    columns: int = 37
    bfloat16_error: float = 0.5

    def problem(self, dtype: torch.dtype = torch.float32, seed: int = 0) -> Problem:
        """A problem of the awkward size."""
        return oracle.problem(self.steps, self.columns, dtype, seed)

    def forward(
        self, inputs: Problem, neuron: Neuron, saved_dtype: torch.dtype | None = torch.float32, biased: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Spikes, the kept distances (in that format; an empty tensor for None) and the last potential."""
        current, potential = inputs.current.to(self.device), inputs.start.to(self.device, copy=True)
        spikes = torch.full_like(current, 7.0)
        saved = None if saved_dtype is None else torch.full_like(current, 7.0, dtype=saved_dtype)
        bias = inputs.bias.to(self.device) if biased else None
        self.module.forward(current, potential, spikes, saved, neuron, bias)
        return spikes.cpu(), torch.empty(0) if saved is None else saved.cpu(), potential.cpu()

    def backward(self, inputs: Problem, saved: torch.Tensor, neuron: Neuron) -> Gradients:
        """All gradients. Each sum starts from 2, and the 2 is subtracted again."""
        saved, start = saved.to(self.device), inputs.start.to(self.device)
        cotangent, carried = inputs.cotangent.to(self.device), inputs.carried.to(self.device, copy=True)
        gradient = torch.full_like(cotangent, 7.0)
        sums = [torch.full_like(carried, 2.0) for _ in range(3)]
        self.module.backward(cotangent, saved, carried, gradient, neuron, Sums(*sums, start))
        return Gradients(gradient.cpu(), carried.cpu(), *(one.cpu() - 2.0 for one in sums))


def some_pairs(neuron: Neuron) -> list[tuple[torch.dtype, torch.dtype]]:
    """float32, and two further pairs, by the kind of neuron: each surrogate and each reset meets all pairs."""
    first, *others = PAIRS
    number = NEURONS.index(neuron)
    return [first, *(others[(number + further) % len(others)] for further in (0, len(others) // 2))]


def check_synapse(kernels: Kernels, neuron: Neuron, alpha: float = 0.8) -> None:
    """With a synaptic current the pass is that of the filtered current, and its gradient is filtered back."""
    module, inputs = kernels.module, kernels.problem()
    charge, filtered = torch.zeros_like(inputs.start), []
    for x in inputs.current:
        charge = alpha * charge + x
        filtered.append(charge)
    found = []
    for current, decay in ((torch.stack(filtered), 0.0), (inputs.current, alpha)):
        current, potential = current.to(kernels.device), torch.zeros_like(inputs.start, device=kernels.device)
        spikes, saved, gradient = (torch.full_like(current, 7.0) for _ in range(3))
        module.forward(current, potential, spikes, saved, neuron, alpha=decay)
        carried = torch.zeros_like(potential)
        summed = Sums(torch.zeros_like(carried), None, None, carried.clone())
        module.backward(inputs.cotangent.to(kernels.device), saved, carried, gradient, neuron, summed, alpha=decay)
        found.append([each.cpu() for each in (spikes, saved, potential, gradient, summed.bias)])
    (*plain, of_filtered, _), (*ours, got, by_bias) = found
    assert all(torch.equal(one, other) for one, other in zip(plain, ours, strict=True))
    expected, later = torch.zeros_like(of_filtered, dtype=torch.float64), 0.0
    for t in range(len(expected) - 1, -1, -1):
        later = expected[t] = of_filtered[t].double() + alpha * later
    assert (got - expected).norm() <= FLOAT32_GRADIENT * expected.norm()
    assert (by_bias - expected.sum(0)).norm() <= FLOAT32_GRADIENT * expected.sum(0).norm()


def check_forward(
    kernels: Kernels, neuron: Neuron, biased: bool, pairs: Sequence[tuple[torch.dtype, torch.dtype]] = PAIRS
) -> None:
    """Spikes and potential equal the eager float32 loop's bit for bit; so does `kept`, rounded to its format."""
    for stored, saved_dtype in [*pairs, *((stored, None) for stored in FORMATS if (stored, stored) in pairs)]:
        inputs = kernels.problem(stored)
        spikes, distances, last = oracle.eager(inputs.current, inputs.start, neuron, inputs.bias if biased else None)
        output, saved, potential = kernels.forward(inputs, neuron, saved_dtype, biased)
        assert 0.1 < float(spikes.mean()) < 0.9
        assert torch.equal(output.float(), spikes), (stored, saved_dtype)
        assert torch.equal(potential, last), (stored, saved_dtype)
        if saved_dtype is not None:
            units = {torch.float32: 0.0, torch.float16: 0.5, torch.bfloat16: kernels.bfloat16_error}[
                saved_dtype
            ] * torch.finfo(saved_dtype).eps
            assert torch.equal(~torch.signbit(saved), spikes.bool()), (stored, saved_dtype)
            assert bool(((saved.double() - distances).abs() <= units * distances.abs()).all()), (stored, saved_dtype)


def check_backward(kernels: Kernels, neuron: Neuron, pairs: Sequence[tuple[torch.dtype, torch.dtype]] = PAIRS) -> None:
    """All gradients match autograd's in float64 for the same kept potentials, in every format."""
    for stored, saved_dtype in pairs:
        inputs = kernels.problem(stored)
        saved = oracle.eager(inputs.current, inputs.start, neuron)[1].to(saved_dtype)
        gradients, expected = kernels.backward(inputs, saved, neuron), oracle.gradients(neuron, saved, inputs)
        for field in fields(expected):
            rounded = stored != torch.float32 and field.name == "current"
            error = oracle.distance(getattr(gradients, field.name), getattr(expected, field.name))
            assert error < (torch.finfo(stored).eps if rounded else FLOAT32_GRADIENT), (field.name, stored, saved_dtype)


def check_both_passes(kernels: Kernels, neuron: Neuron) -> None:
    """Spikes and gradients match the plain loop's in float64."""
    inputs = kernels.problem(seed=1)
    current, start = inputs.current.double().requires_grad_(), inputs.start.double().requires_grad_()
    spikes, last = lif_ref.lif(current, neuron, start)
    loss = (spikes * inputs.cotangent.double()).sum() + (last * inputs.carried.double()).sum()
    by_current, by_start = torch.autograd.grad(loss, (current, start))

    output, saved, _ = kernels.forward(inputs, neuron)
    gradients = kernels.backward(inputs, saved, neuron)
    assert torch.equal(output.double(), spikes)
    assert oracle.distance(gradients.current, by_current) < FLOAT32_GRADIENT
    assert oracle.distance(gradients.start, by_start) < FLOAT32_GRADIENT
    if neuron.surrogate in ("fast_sigmoid", "sigmoid", "atan"):  # the others jump, or bend, and rounding may cross that
        half = kernels.backward(inputs, kernels.forward(inputs, neuron, torch.bfloat16)[1], neuron)
        assert oracle.distance(half.current, by_current) < BFLOAT16_KEPT_GRADIENT


def check_three_axes(kernels: Kernels, neuron: Neuron) -> None:
    """A kernel for GPUs takes [T, B, N] in place of [T, M], with the same result to the bit."""
    flat = replace(kernels, columns=36).problem()
    shapes = {1: (4, 9), 2: (kernels.steps, 4, 9)}
    tensors = {field.name: getattr(flat, field.name) for field in fields(flat)}
    whole = replace(flat, **{name: tensor.view(shapes[tensor.ndim]) for name, tensor in tensors.items()})
    expected, results = kernels.forward(flat, neuron, biased=True), kernels.forward(whole, neuron, biased=True)
    assert all(torch.equal(ours.view_as(theirs), theirs) for ours, theirs in zip(results, expected, strict=True))
    gradients, others = kernels.backward(whole, results[1], neuron), kernels.backward(flat, expected[1], neuron)
    for field in fields(others):
        theirs = getattr(others, field.name)
        assert torch.equal(getattr(gradients, field.name).view_as(theirs), theirs), field.name


def check_float64(module: ModuleType, neuron: Neuron) -> None:
    """In float64, spikes and gradients are the plain loop's, to the rounding of float64."""
    given = oracle.problem(40, 19)
    current, start = given.current.double(), given.start.double()
    spikes, saved, potential = torch.empty_like(current), torch.empty_like(current), start.clone()
    module.forward(current, potential, spikes, saved, neuron)
    carried, gradient = given.carried.double(), torch.empty_like(current)
    module.backward(given.cotangent.double(), saved, carried, gradient, neuron)
    leaves = current.clone().requires_grad_(), start.clone().requires_grad_()
    expected, last = lif_ref.lif(leaves[0], neuron, leaves[1])
    loss = (expected * given.cotangent.double()).sum() + (last * given.carried.double()).sum()
    by_current, by_start = torch.autograd.grad(loss, leaves)
    assert torch.equal(spikes, expected)
    assert oracle.distance(gradient, by_current) < 1e-13
    assert oracle.distance(carried, by_start) < 1e-13


def check_size(kernels: Kernels, neuron: Neuron) -> None:
    """Both passes, with all options, at the size of `kernels`."""
    inputs = kernels.problem()
    spikes, _, last = oracle.eager(inputs.current, inputs.start, neuron, inputs.bias)
    output, saved, potential = kernels.forward(inputs, neuron, biased=True)
    assert torch.equal(output, spikes) and torch.equal(potential, last)
    gradients, expected = kernels.backward(inputs, saved, neuron), oracle.gradients(neuron, saved, inputs)
    for field in fields(expected):
        error = oracle.distance(getattr(gradients, field.name), getattr(expected, field.name))
        assert error < FLOAT32_GRADIENT, field.name


def check_in_place(kernels: Kernels, stored: torch.dtype) -> None:
    """`kept` may overwrite the current, and the gradient may overwrite `kept`; unwanted sums change nothing."""
    neuron, inputs = NEURONS[0], kernels.problem(stored)
    spikes, saved, _ = kernels.forward(inputs, neuron, stored, biased=True)
    apart = kernels.backward(inputs, saved, neuron)

    current, potential = inputs.current.to(kernels.device, copy=True), inputs.start.to(kernels.device, copy=True)
    fired = torch.empty_like(current)
    kernels.module.forward(current, potential, fired, current, neuron, inputs.bias.to(kernels.device))
    assert torch.equal(fired.cpu(), spikes) and torch.equal(current.cpu(), saved)
    carried = inputs.carried.to(kernels.device, copy=True)
    kernels.module.backward(inputs.cotangent.to(kernels.device), current, carried, current, neuron)
    assert torch.equal(current.cpu(), apart.current) and torch.equal(carried.cpu(), apart.start)


def check_nothing_else_is_written(kernels: Kernels, neuron: Neuron) -> None:
    """A row before and a row behind every array [T, M] stay as they are, and so do the inputs."""
    inputs = kernels.problem()

    def framed(rows: torch.Tensor) -> torch.Tensor:
        frame = torch.full((1, rows.shape[1]), 7.0)
        return torch.cat((frame, rows, frame)).to(kernels.device)

    current, cotangent = framed(inputs.current), framed(inputs.cotangent)
    spikes, saved, gradient = framed(inputs.current), framed(inputs.current), framed(inputs.current)
    vectors = [inputs.start.to(kernels.device, copy=True) for _ in range(2)]
    kernels.module.forward(current[1:-1], vectors[0], spikes[1:-1], saved[1:-1], neuron)
    kernels.module.backward(cotangent[1:-1], saved[1:-1], vectors[1], gradient[1:-1], neuron)
    for tensor in (current, cotangent, spikes, saved, gradient):
        assert bool((tensor[[0, -1]] == 7.0).all())
    assert torch.equal(current.cpu()[1:-1], inputs.current) and torch.equal(cotangent.cpu()[1:-1], inputs.cotangent)


def check_threshold(kernels: Kernels) -> None:
    """A potential on the threshold fires; one unit in the last place below it does not, and neither zero does."""
    below = torch.nextafter(torch.tensor(1.0), torch.tensor(0.0)).item()
    zeros = torch.zeros(4)
    inputs = Problem(torch.tensor([[1.0, below, -0.0, 0.0]]), torch.ones(1, 4), zeros, zeros, zeros)
    for saved_dtype in FORMATS:
        spikes, saved, potential = kernels.forward(inputs, Neuron(0.5, 1.0), saved_dtype)
        assert spikes.tolist() == [[1, 0, 0, 0]]
        assert torch.signbit(saved).tolist() == [[False, True, True, True]]
        assert potential.tolist() == [0.0, below, 0.0, 0.0]


def check_minus_zero(kernels: Kernels) -> None:
    """-0 in `kept` did not fire: a negative distance too small for a format is rounded to -0."""
    zeros, ones = torch.zeros(2), torch.ones(2)
    inputs = Problem(torch.zeros(1, 2), torch.zeros(1, 2), zeros, zeros, ones)
    for saved_dtype in FORMATS:
        saved = torch.tensor([[0.0, -0.0]], dtype=saved_dtype)
        assert kernels.backward(inputs, saved, Neuron(0.5, 1.0, "zero", True)).current.tolist() == [[0.0, 1.0]]


def check_nothing_to_do(kernels: Kernels, steps: int, columns: int) -> None:
    """Without steps or columns everything stays as it is."""
    inputs = oracle.problem(steps, columns)
    assert torch.equal(kernels.forward(inputs, NEURONS[0])[2], inputs.start)
    gradients = kernels.backward(inputs, torch.zeros(steps, columns), NEURONS[0])
    assert torch.equal(gradients.start, inputs.carried)
    assert not (gradients.bias.any() or gradients.beta.any() or gradients.threshold.any())


def check_runs_agree(kernels: Kernels) -> None:
    """Two runs on the same inputs agree in every bit."""
    inputs = kernels.problem()
    first, second = (kernels.backward(inputs, kernels.forward(inputs, NEURONS[0])[1], NEURONS[0]) for _ in range(2))
    for field in fields(first):
        assert torch.equal(getattr(first, field.name), getattr(second, field.name))
