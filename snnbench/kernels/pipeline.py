"""The linear layer and the neuron as one pipeline over stretches of time, so that currents are used while in cache.

Forward, for each stretch: currents = inputs @ weight.T by the framework's own product; then the kernel, which adds the
bias. Backward, from the last stretch to the first: the kernel, then the gradients of weight and inputs. Only the
required gradients are computed. Without a weight it is the neuron alone.

Values kept for the backward pass:

    potential   u - threshold of every step in the state's format, in place of the currents: exact, 4 bytes
    bfloat16    the same rounded to 16 bits, 2 bytes: spikes are exact, gradients to 1e-3
    nothing     the potential before each stretch; currents are computed again, with the product: exact, about 0 bytes
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from snnbench.kernels import buffers
from snnbench.kernels.choice import module
from snnbench.kernels.neuron import Neuron

KEEPS = ("potential", "bfloat16", "nothing")
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
CPU_ROWS = 1024
"""The most rows of a product (steps times batch) in a stretch on the CPU: enough for the product, few enough for a
cache. With 768 a pass at N = 512 took a tenth longer, with 2048 and more a twentieth."""
GPU_STEPS = 64
"""The most steps in a recomputed stretch on other devices."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which gradients are required."""

    input: bool
    weight: bool
    bias: bool
    parameters: bool


@dataclass(slots=True)
class Gradients:
    """dL/d of each field, None if it is not required. `beta` and `threshold` are single numbers."""

    potential: torch.Tensor
    input: Any = None
    weight: Any = None
    bias: Any = None
    beta: Any = None
    threshold: Any = None


def state_dtype(dtype: torch.dtype) -> torch.dtype:
    """The format of the state for currents in `dtype`."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def stretch(device: torch.device, kernel_name: str, batch: int, steps: int, linear: bool, keep: str) -> int:
    """Time steps in a stretch, chosen so that all stretches have about the same length."""
    if device.type == "cpu" and (linear or keep == "nothing" or kernel_name == "torch"):
        most = max(1, CPU_ROWS // max(1, batch))
    elif keep == "nothing":
        most = GPU_STEPS
    else:
        most = max(1, steps)
    return max(1, -(-steps // max(1, -(-steps // most))))


def kept_shape(
    device: torch.device, kernel_name: str, shape: tuple[int, int, int], linear: bool, keep: str, dtype: torch.dtype
) -> tuple[tuple[int, ...], torch.dtype]:
    """Shape and format of `forward`'s kept tensor for `shape` [T, B, N]; `keep` is one of KEEPS, "" for inference."""
    steps, batch, neurons = shape
    if not keep:
        return (0,), dtype
    if keep == "nothing":
        length = stretch(device, kernel_name, batch, steps, linear, keep)
        return (-(-steps // length), batch, neurons), state_dtype(dtype)
    return shape, torch.bfloat16 if keep == "bfloat16" else state_dtype(dtype)


def forward(
    inputs: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    potential: torch.Tensor,
    neuron: Neuron,
    keep: str,
    kernel_name: str,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Spikes [T, B, N], the potential after the last step [B, N] and the kept tensor, for `inputs` [T, B, N_in].

    The initial `potential` [B, N] is not changed.
    """
    steps, batch = inputs.shape[:2]
    neurons = potential.shape[-1]
    linear, size = weight is not None, (steps, batch, neurons)
    shape, dtype = kept_shape(inputs.device, kernel_name, size, linear, keep, inputs.dtype)
    spikes = buffers.empty(size, inputs.dtype, inputs.device)
    saved = buffers.empty(shape, dtype, inputs.device)
    last = potential.clone(memory_format=torch.contiguous_format)
    run = module(kernel_name).forward
    offset = _spread(bias, batch, last.dtype)
    length = stretch(inputs.device, kernel_name, batch, steps, linear, keep)
    whole = keep in ("potential", "bfloat16")
    in_place = linear and whole and saved.dtype == inputs.dtype
    buffer = None if weight is None or in_place else inputs.new_empty(length, batch, neurons)
    for number, part in enumerate(_parts(steps, length)):
        if keep == "nothing":
            saved[number].copy_(last)
        current = (
            inputs[part] if weight is None else _product(inputs[part], weight, saved[part] if in_place else buffer)
        )
        distance = _steps(saved[part]) if whole else None
        run(_steps(current), last.view(-1), _steps(spikes[part]), distance, neuron, offset)
    return spikes, last, saved


def backward(
    cotangent: torch.Tensor,
    carried: torch.Tensor,
    inputs: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    potential: torch.Tensor,
    saved: torch.Tensor,
    neuron: Neuron,
    keep: str,
    kernel_name: str,
    wanted: Wanted,
) -> Gradients:
    """Gradients for `cotangent` [T, B, N] of the spikes and `carried` [B, N] of the last potential."""
    steps, batch, neurons = cotangent.shape
    kernel = module(kernel_name)
    length = stretch(inputs.device, kernel_name, batch, steps, weight is not None, keep)
    gradients_ = Gradients(carried.to(potential.dtype, memory_format=torch.contiguous_format, copy=True))
    summed = (wanted.bias, wanted.parameters, wanted.parameters)
    sums: list[Any] = [potential.new_zeros(batch * neurons) if one else None for one in summed]
    if wanted.input:
        gradients_.input = buffers.empty(tuple(inputs.shape), inputs.dtype, inputs.device)
    alone = weight is None and gradients_.input is not None  # then the neuron's gradient is the input's
    gradients = None if alone else cotangent.new_empty(length, batch, neurons)
    again = _Again(inputs, weight, bias, potential, neuron, kernel, length) if keep == "nothing" else None
    for number, part in reversed(list(enumerate(_parts(steps, length)))):
        start = None
        if again is not None:
            start, distance = saved[number], again.distance(part, saved[number])
        else:
            distance = saved[part]
            if wanted.parameters:
                start = _start(part, potential, saved, neuron)
        gradient = gradients_.input[part] if gradients is None else gradients[: part.stop - part.start]
        carrying, starting = gradients_.potential.view(-1), None if start is None else start.reshape(-1)
        kernel.backward(_steps(cotangent[part]), _steps(distance), carrying, _steps(gradient), neuron, *sums, starting)
        if weight is not None and wanted.weight:
            gradients_.weight = _accumulate(gradients_.weight, gradient, inputs[part])
        if weight is not None and wanted.input:
            torch.mm(_rows(gradient), weight, out=_rows(gradients_.input[part]))
    if weight is not None and wanted.weight:
        gradients_.weight = (
            torch.zeros_like(weight) if gradients_.weight is None else gradients_.weight.to(weight.dtype)
        )
    if wanted.bias:
        gradients_.bias = sums[0].view(batch, neurons).sum(0)
    if wanted.parameters:
        gradients_.beta, gradients_.threshold = sums[1].sum(), sums[2].sum()
    return gradients_


class _Again:
    """Recomputation of potentials that were not kept, stretch by stretch, in reused buffers."""

    def __init__(
        self,
        inputs: torch.Tensor,
        weight: torch.Tensor | None,
        bias: torch.Tensor | None,
        potential: torch.Tensor,
        neuron: Neuron,
        kernel: Any,
        length: int,
    ) -> None:
        self.inputs, self.weight, self.neuron, self.kernel = inputs, weight, neuron, kernel
        shape = (length, *potential.shape)
        self.offset = _spread(bias, len(potential), potential.dtype)
        self.spikes = inputs.new_empty(shape)
        self.current: Any = None if weight is None else inputs.new_empty(shape)
        in_place = self.current is not None and inputs.dtype == potential.dtype
        self.distances: Any = self.current if in_place else potential.new_empty(shape)

    def distance(self, part: slice, start: torch.Tensor) -> torch.Tensor:
        """u - threshold [t, B, N] of the steps in `part`, from the potential `start` [B, N] on."""
        count = part.stop - part.start
        inputs, distance = self.inputs[part], self.distances[:count]
        current = inputs if self.weight is None else _product(inputs, self.weight, self.current)
        state = start.clone().view(-1)
        spikes = self.spikes[:count]
        self.kernel.forward(_steps(current), state, _steps(spikes), _steps(distance), self.neuron, self.offset)
        return distance


def _parts(steps: int, length: int) -> Iterator[slice]:
    for start in range(0, steps, length):
        yield slice(start, min(steps, start + length))


def _product(inputs: torch.Tensor, weight: torch.Tensor, to: torch.Tensor | None) -> torch.Tensor:
    """inputs [t, B, N_in] @ weight.T into the first t steps of `to`."""
    assert to is not None
    current = to[: len(inputs)]
    torch.mm(_rows(inputs), weight.t(), out=_rows(current))
    return current


def _accumulate(so_far: torch.Tensor | None, gradient: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
    """The weight's gradient with one more stretch added; 16-bit formats are summed in float32."""
    left, right = _rows(gradient).t(), _rows(inputs)
    if so_far is None:
        # With `out=` autocast does not round the product.
        product = torch.mm(left, right, out=left.new_empty(left.shape[0], right.shape[1]))
        return product.to(state_dtype(product.dtype))
    if so_far.dtype == left.dtype:
        return so_far.addmm_(left, right)
    return so_far.add_(torch.mm(left, right, out=left.new_empty(so_far.shape)))


def _start(part: slice, potential: torch.Tensor, saved: torch.Tensor, neuron: Neuron) -> torch.Tensor:
    """The potential [B, N] before a stretch: the step before it, after the reset."""
    if part.start == 0:
        return potential
    distance = saved[part.start - 1].to(potential.dtype)
    fired = torch.zeros_like(distance) if neuron.reset == "zero" else distance
    return torch.where(torch.signbit(distance), distance + neuron.threshold, fired)


def _spread(bias: torch.Tensor | None, batch: int, dtype: torch.dtype) -> torch.Tensor | None:
    """The bias [N] for every column [B * N]."""
    return None if bias is None else bias.to(dtype).repeat(batch)


def _steps(tensor: torch.Tensor) -> torch.Tensor:
    """[T, B, N] as [T, B * N]."""
    return tensor.view(tensor.shape[0], tensor.shape[1] * tensor.shape[2])


def _rows(tensor: torch.Tensor) -> torch.Tensor:
    """[T, B, N] as [T * B, N]."""
    return tensor.view(tensor.shape[0] * tensor.shape[1], tensor.shape[2])
