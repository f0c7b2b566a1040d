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
from torch import Tensor

from snnbench.kernels import buffers
from snnbench.kernels.choice import module
from snnbench.kernels.neuron import Neuron
from snnbench.kernels.sums import Sums

KEEPS = ("potential", "bfloat16", "nothing")
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
CPU_ROWS = 1024
"""The most rows of a product (steps times batch) in a stretch on the CPU: enough for the product, few enough for a
cache. With 768 a pass at N = 512 took a tenth longer, with 2048 and more a twentieth."""
GPU_STEPS = 64
"""The most steps in a recomputed stretch on other devices."""


@dataclass(frozen=True, slots=True)
class Layer:
    """All that determines a layer's output: `inputs` [T, B, N_in], parameters, and the initial `potential` [B, N].

    Without a `weight` [N, N_in] the inputs are the currents; `bias` [N] may be None, too. `inputs`, `weight` and
    `potential` are contiguous, and the potential is in the state's format. `keep` is one of KEEPS, "" for inference.
    """

    inputs: Tensor
    weight: Tensor | None
    bias: Tensor | None
    potential: Tensor
    neuron: Neuron
    keep: str
    kernel_name: str

    @property
    def length(self) -> int:
        """Time steps in a stretch."""
        steps, batch, _ = self.inputs.shape
        return stretch(self.inputs.device, self.kernel_name, batch, steps, self.weight is not None, self.keep)

    @property
    def offset(self) -> Tensor | None:
        """The bias [N] for every column [B * N]."""
        return None if self.bias is None else self.bias.to(self.potential.dtype).repeat(len(self.potential))

    def current(self, part: slice, to: Tensor | None) -> Tensor:
        """Currents of the steps in `part`, without the bias; products with the weight fill the first steps of `to`."""
        inputs = self.inputs[part]
        if self.weight is None:
            return inputs
        assert to is not None
        current = to[: len(inputs)]
        torch.mm(_rows(inputs), self.weight.t(), out=_rows(current))
        return current


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

    potential: Tensor
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


def forward(layer: Layer) -> tuple[Tensor, Tensor, Tensor]:
    """Spikes [T, B, N], the potential after the last step [B, N] and the kept tensor.

    The layer's initial potential is not changed.
    """
    inputs, keep = layer.inputs, layer.keep
    steps, batch = inputs.shape[:2]
    neurons = layer.potential.shape[-1]
    linear, size = layer.weight is not None, (steps, batch, neurons)
    shape, dtype = kept_shape(inputs.device, layer.kernel_name, size, linear, keep, inputs.dtype)
    spikes = buffers.empty(size, inputs.dtype, inputs.device)
    saved = buffers.empty(shape, dtype, inputs.device)
    last = layer.potential.clone(memory_format=torch.contiguous_format)
    run, offset, length = module(layer.kernel_name).forward, layer.offset, layer.length
    whole = keep in ("potential", "bfloat16")
    in_place = linear and whole and saved.dtype == inputs.dtype
    buffer = inputs.new_empty(length, batch, neurons) if linear and not in_place else None
    for number, part in enumerate(_parts(steps, length)):
        if keep == "nothing":
            saved[number].copy_(last)
        current = layer.current(part, saved[part] if in_place else buffer)
        distance = _steps(saved[part]) if whole else None
        run(_steps(current), last.view(-1), _steps(spikes[part]), distance, layer.neuron, offset)
    return spikes, last, saved


def backward(layer: Layer, cotangent: Tensor, carried: Tensor, saved: Tensor, wanted: Wanted) -> Gradients:
    """Gradients for `cotangent` [T, B, N] of the spikes and `carried` [B, N] of the last potential."""
    inputs, weight, potential = layer.inputs, layer.weight, layer.potential
    steps, batch, neurons = cotangent.shape
    run, length = module(layer.kernel_name).backward, layer.length
    gradients_ = Gradients(carried.to(potential.dtype, memory_format=torch.contiguous_format, copy=True))
    summed = (wanted.bias, wanted.parameters, wanted.parameters)
    sums = Sums(*(potential.new_zeros(batch * neurons) if one else None for one in summed))
    if wanted.input:
        gradients_.input = buffers.empty(tuple(inputs.shape), inputs.dtype, inputs.device)
    alone = weight is None and gradients_.input is not None  # then the neuron's gradient is the input's
    gradients = None if alone else cotangent.new_empty(length, batch, neurons)
    again = _Again(layer) if layer.keep == "nothing" else None
    for number, part in reversed(list(enumerate(_parts(steps, length)))):
        start = None
        if again is not None:
            start, distance = saved[number], again.distance(part, saved[number])
        else:
            distance = saved[part]
            if wanted.parameters:
                start = _start(part, potential, saved, layer.neuron)
        gradient = gradients_.input[part] if gradients is None else gradients[: part.stop - part.start]
        arrays = _steps(cotangent[part]), _steps(distance), gradients_.potential.view(-1), _steps(gradient)
        run(*arrays, layer.neuron, sums._replace(start=None if start is None else start.reshape(-1)))
        if weight is not None and wanted.weight:
            gradients_.weight = _accumulate(gradients_.weight, gradient, inputs[part])
        if weight is not None and wanted.input:
            torch.mm(_rows(gradient), weight, out=_rows(gradients_.input[part]))
    if weight is not None and wanted.weight:
        gradients_.weight = (
            torch.zeros_like(weight) if gradients_.weight is None else gradients_.weight.to(weight.dtype)
        )
    if sums.bias is not None:
        gradients_.bias = sums.bias.view(batch, neurons).sum(0)
    if sums.beta is not None and sums.threshold is not None:
        gradients_.beta, gradients_.threshold = sums.beta.sum(), sums.threshold.sum()
    return gradients_


class _Again:
    """Recomputation of potentials that were not kept, stretch by stretch, in reused buffers."""

    def __init__(self, layer: Layer) -> None:
        self.layer, self.run, self.offset = layer, module(layer.kernel_name).forward, layer.offset
        inputs, potential = layer.inputs, layer.potential
        shape = (layer.length, *potential.shape)
        self.spikes = inputs.new_empty(shape)
        self.current: Any = None if layer.weight is None else inputs.new_empty(shape)
        in_place = self.current is not None and inputs.dtype == potential.dtype
        self.distances: Any = self.current if in_place else potential.new_empty(shape)

    def distance(self, part: slice, start: Tensor) -> Tensor:
        """u - threshold [t, B, N] of the steps in `part`, from the potential `start` [B, N] on."""
        count = part.stop - part.start
        current, distance = self.layer.current(part, self.current), self.distances[:count]
        state, spikes = start.clone().view(-1), self.spikes[:count]
        self.run(_steps(current), state, _steps(spikes), _steps(distance), self.layer.neuron, self.offset)
        return distance


def _parts(steps: int, length: int) -> Iterator[slice]:
    for start in range(0, steps, length):
        yield slice(start, min(steps, start + length))


def _accumulate(so_far: Tensor | None, gradient: Tensor, inputs: Tensor) -> Tensor:
    """The weight's gradient with one more stretch added; 16-bit formats are summed in float32."""
    left, right = _rows(gradient).t(), _rows(inputs)
    if so_far is None:
        # With `out=` autocast does not round the product.
        product = torch.mm(left, right, out=left.new_empty(left.shape[0], right.shape[1]))
        return product.to(state_dtype(product.dtype))
    if so_far.dtype == left.dtype:
        return so_far.addmm_(left, right)
    return so_far.add_(torch.mm(left, right, out=left.new_empty(so_far.shape)))


def _start(part: slice, potential: Tensor, saved: Tensor, neuron: Neuron) -> Tensor:
    """The potential [B, N] before a stretch: the step before it, after the reset."""
    if part.start == 0:
        return potential
    distance = saved[part.start - 1].to(potential.dtype)
    fired = torch.zeros_like(distance) if neuron.reset == "zero" else distance
    return torch.where(torch.signbit(distance), distance + neuron.threshold, fired)


def _steps(tensor: Tensor) -> Tensor:
    """[T, B, N] as [T, B * N]."""
    return tensor.view(tensor.shape[0], tensor.shape[1] * tensor.shape[2])


def _rows(tensor: Tensor) -> Tensor:
    """[T, B, N] as [T * B, N]."""
    return tensor.view(tensor.shape[0] * tensor.shape[1], tensor.shape[2])
