"""An oracle for kernels of the LIF neuron: random problems, and plain loops that share no line with any kernel."""

from dataclasses import dataclass

import torch

from snnbench.cases.surrogate import FORMULAS
from snnbench.kernels.neuron import Neuron

FORMATS = (torch.float32, torch.bfloat16, torch.float16)
SLOPES = {
    **{"fast_sigmoid": 2.0, "sigmoid": 4.0, "atan": 2.0, "triangle": 1.0, "rectangle": 0.7},
    **{"one_sided": 1.5, "exponential": 2.0},
}
NEURONS = [
    Neuron(0.9, 0.8, reset, detach, surrogate, SLOPES[surrogate])  # type: ignore[arg-type]
    for reset in ("subtract", "zero")
    for detach in (False, True)
    for surrogate in FORMULAS
]
"""Every kind of neuron; 0.9 and 0.8 are not binary fractions, so every product is rounded."""
FEW_NEURONS = [NEURONS[8 * number % len(NEURONS)] for number in range(len(FORMULAS))]
"""Every surrogate once, and every pair of a reset and a detachment; tests/system runs all kinds."""


def identifier(neuron: Neuron) -> str:
    """A name for pytest."""
    return "-".join((neuron.reset, "detached" if neuron.detach_reset else "attached", neuron.surrogate))


@dataclass(frozen=True, slots=True)
class Problem:
    """Inputs of both passes: current and cotangent [T, M] in a storage format; start, bias and carried [M] float32."""

    current: torch.Tensor
    cotangent: torch.Tensor
    start: torch.Tensor
    bias: torch.Tensor
    carried: torch.Tensor


def problem(steps: int, columns: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Problem:
    """A random problem; about a third of the neuron-steps fire."""
    random = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=random)

    return Problem(
        current=(0.7 * normal(steps, columns) + 0.2).to(dtype),
        cotangent=normal(steps, columns).to(dtype),
        start=0.3 * normal(columns),
        bias=0.2 * normal(columns),
        carried=normal(columns),
    )


def eager(
    current: torch.Tensor, start: torch.Tensor, neuron: Neuron, bias: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Spikes, u - threshold and the last potential in float32, as eager torch rounds them: product, then sum."""
    v, spikes, distances = start, [], []
    for row in current.float():
        x = row if bias is None else row + bias
        u = neuron.beta * v + x
        s = (u >= neuron.threshold).float()
        v = u - neuron.threshold * s if neuron.reset == "subtract" else u * (1 - s)
        spikes.append(s)
        distances.append(u - neuron.threshold)
    return torch.stack(spikes), torch.stack(distances), v


@dataclass(frozen=True, slots=True)
class Gradients:
    """Gradients of the currents [T, M], and of each column's start, bias, beta and threshold [M], in float64."""

    current: torch.Tensor
    start: torch.Tensor
    bias: torch.Tensor
    beta: torch.Tensor
    threshold: torch.Tensor


def gradients(neuron: Neuron, saved: torch.Tensor, inputs: Problem) -> Gradients:
    """torch's autograd gradients of a float64 loop that is forced through the potentials in `saved` [T, M].

    So rounding in `saved` does not count as an error of the backward pass. The spikes are the sign bits of `saved`.
    """
    distances, spikes = saved.double(), (~torch.signbit(saved)).double()
    columns = saved.shape[1]
    current = torch.zeros(saved.shape, dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(columns, dtype=torch.float64, requires_grad=True)
    start = inputs.start.double().requires_grad_()
    beta = torch.full((columns,), float32(neuron.beta), dtype=torch.float64, requires_grad=True)
    threshold = torch.full((columns,), float32(neuron.threshold), dtype=torch.float64, requires_grad=True)
    slopes = FORMULAS[neuron.surrogate](distances, float32(neuron.slope), float32(neuron.threshold), torch)

    v, fired = start, []
    for x, distance, s, slope in zip(current, distances, spikes, slopes, strict=True):
        u = forced(beta * v + x + bias, distance + threshold.detach())
        s = forced(slope * (u - threshold), s)
        through = s.detach() if neuron.detach_reset else s
        v = u - threshold * through if neuron.reset == "subtract" else u * (1 - through)
        fired.append(s)
    loss = (torch.stack(fired) * inputs.cotangent.double()).sum() + (v * inputs.carried.double()).sum()
    return Gradients(*torch.autograd.grad(loss, (current, start, bias, beta, threshold)))


def forced(computed: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """`value`, with the derivatives of `computed`."""
    return value + (computed - computed.detach())


def float32(number: float) -> float:
    """The nearest float32."""
    return float(torch.tensor(number, dtype=torch.float32))


def distance(actual: torch.Tensor, expected: torch.Tensor) -> float:
    """Norm of the difference relative to the norm of `expected`; infinite if a value is NaN."""
    difference = float((actual.double() - expected).norm() / expected.norm())
    return difference if difference == difference else float("inf")
