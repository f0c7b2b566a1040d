"""The linear layer and the neuron as one pipeline over stretches of time, so that currents are used while in cache.

Forward, for each stretch: currents = inputs @ weight.T by the framework's own product; then the kernel, which adds the
bias. Backward, from the last stretch to the first: the kernel, then the gradients of weight and inputs. Only the
required gradients are computed. Without a weight it is the neuron alone, and a pass of it that keeps nothing runs in
alone.py where the kernel can. On a CPU the whole pipeline is one call of linear_cpu.py where torch exports its product.
A pass of one stretch on a GPU runs in one_stretch.py.

stretches.py has the length of a stretch, and the values that are kept for the backward pass.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from snnbench.kernels import alone, buffers, linear_cpu, one_stretch
from snnbench.kernels.choice import module
from snnbench.kernels.passes import Gradients, Layer, Wanted, state_dtype
from snnbench.kernels.stretches import kept_shape, stretch
from snnbench.kernels.sums import Sums


def forward(layer: Layer) -> tuple[Tensor, Any, Tensor]:
    """Spikes [T, B, N], the potential after the last step [B, N] and the kept tensor.

    The layer's initial potential is not changed. The last potential may be None if the layer does not need it.
    """
    inputs, weight, keep = layer.inputs, layer.weight, layer.keep
    linear = weight is not None
    if alone.serves(layer.kernel_name, linear, keep):
        return alone.forward(layer)
    if plans := linear_cpu.plans(inputs, weight, layer.neuron, layer.keep, layer.kernel_name):
        return linear_cpu.forward(layer, plans)
    if one_stretch.serves(layer):
        return one_stretch.forward(layer)
    size = layer.shape
    shape, dtype = kept_shape(inputs.device, layer.kernel_name, size, linear, keep, inputs.dtype)
    saved = buffers.empty(shape, dtype, inputs.device)
    spikes = buffers.empty(size, inputs.dtype, inputs.device)
    last = layer.start if layer.potential is None else layer.potential.clone(memory_format=torch.contiguous_format)
    run, offset, length = module(layer.kernel_name).forward, layer.offset, _length(layer)
    whole = keep in ("potential", "bfloat16")
    in_place = linear and whole and saved.dtype == inputs.dtype
    buffer = inputs.new_empty(length, *size[1:]) if linear and not in_place else None
    for number, part in enumerate(_parts(size[0], length)):
        if keep == "nothing":
            saved[number].copy_(last)
        current = _steps(_current(layer, part, _cut(saved, part) if in_place else buffer))
        distance = current if in_place else _steps(_cut(saved, part)) if whole else None
        run(current, last.view(-1), _steps(_cut(spikes, part)), distance, layer.neuron, offset)
    return spikes, last, saved


def backward(layer: Layer, cotangent: Tensor, carried: Tensor | None, saved: Tensor, wanted: Wanted) -> Gradients:
    """Gradients for `cotangent` [T, B, N] of the spikes and `carried` [B, N] of the last potential, zeros if None."""
    inputs, weight = layer.inputs, layer.weight
    if alone.serves(layer.kernel_name, weight is not None, layer.keep):
        return alone.backward(layer, cotangent, carried, saved, wanted)
    if plans := linear_cpu.plans(inputs, weight, layer.neuron, layer.keep, layer.kernel_name):
        return linear_cpu.backward(layer, plans, cotangent, carried, saved, wanted)
    if one_stretch.serves(layer) and not wanted.parameters:
        return one_stretch.backward(layer, cotangent, carried, saved, wanted)
    steps, batch, neurons = cotangent.shape
    dtype = state_dtype(inputs.dtype)
    run, length = module(layer.kernel_name).backward, _length(layer)
    if carried is None:
        gradients_ = Gradients(inputs.new_zeros((batch, neurons), dtype=dtype))
    else:
        gradients_ = Gradients(carried.to(dtype, memory_format=torch.contiguous_format, copy=True))
    summed = (wanted.bias, wanted.parameters, wanted.parameters)
    sums = Sums(*(inputs.new_zeros(batch * neurons, dtype=dtype) if required else None for required in summed))
    if wanted.input:
        gradients_.input = buffers.empty(tuple(inputs.shape), inputs.dtype, inputs.device)
    is_current = weight is None and gradients_.input is not None  # then the neuron's gradient is the input's
    gradients = None if is_current else cotangent.new_empty(length, batch, neurons)
    again = _Again(layer) if layer.keep == "nothing" else None
    for number, part in reversed(list(enumerate(_parts(steps, length)))):
        start = None
        if again is not None:
            start, distance = saved[number], again.distance(part, saved[number])
        else:
            distance = _cut(saved, part)
            if wanted.parameters:
                start = _start(layer, part, saved)
        if gradients is None:
            gradient = _cut(gradients_.input, part)
        else:
            gradient = _cut(gradients, slice(0, part.stop - part.start))
        arrays = _steps(_cut(cotangent, part)), _steps(distance), gradients_.potential.view(-1), _steps(gradient)
        run(*arrays, layer.neuron, sums._replace(start=None if start is None else start.reshape(-1)))
        if weight is not None and wanted.weight:
            gradients_.weight = _accumulate(gradients_.weight, gradient, _cut(inputs, part))
        if weight is not None and wanted.input:
            torch.mm(_rows(gradient), weight, out=_rows(_cut(gradients_.input, part)))
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
        inputs, dtype = layer.inputs, state_dtype(layer.inputs.dtype)
        shape = (_length(layer), *layer.shape[1:])
        self.spikes = inputs.new_empty(shape)
        self.current: Any = None if layer.weight is None else inputs.new_empty(shape)
        in_place = self.current is not None and inputs.dtype == dtype
        self.distances: Any = self.current if in_place else inputs.new_empty(shape, dtype=dtype)

    def distance(self, part: slice, start: Tensor) -> Tensor:
        """u - threshold [t, B, N] of the steps in `part`, from the potential `start` [B, N] on."""
        count = part.stop - part.start
        current, distance = _current(self.layer, part, self.current), _cut(self.distances, slice(0, count))
        state, spikes = start.clone().view(-1), _cut(self.spikes, slice(0, count))
        self.run(_steps(current), state, _steps(spikes), _steps(distance), self.layer.neuron, self.offset)
        return distance


def _length(layer: Layer) -> int:
    """Time steps in a stretch."""
    steps, batch, _ = layer.shape
    return stretch(layer.inputs.device, layer.kernel_name, batch, steps, layer.weight is not None, layer.keep)


def _current(layer: Layer, part: slice, to: Tensor | None) -> Tensor:
    """Currents of the steps in `part`, without the bias; products with the weight fill the first steps of `to`."""
    inputs = _cut(layer.inputs, part)
    if layer.weight is None:
        return inputs
    assert to is not None
    current = _cut(to, slice(0, part.stop - part.start))
    torch.mm(_rows(inputs), layer.weight.t(), out=_rows(current))
    return current


def _parts(steps: int, length: int) -> Iterator[slice]:
    for start in range(0, steps, length):
        yield slice(start, min(steps, start + length))


def _cut(tensor: Tensor, part: slice) -> Tensor:
    """The steps in `part`: the tensor itself if it has no others, for each view costs the host a microsecond."""
    return tensor if part.stop - part.start == tensor.shape[0] else tensor[part]


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


def _start(layer: Layer, part: slice, saved: Tensor) -> Tensor:
    """The potential [B, N] before a stretch: the step before it, after the reset."""
    if part.start == 0:
        return layer.start
    distance = saved[part.start - 1].to(state_dtype(layer.inputs.dtype))
    fired = torch.zeros_like(distance) if layer.neuron.reset == "zero" else distance
    return torch.where(torch.signbit(distance), distance + layer.neuron.threshold, fired)


def _steps(tensor: Tensor) -> Tensor:
    """[T, B, N] as [T, B * N]."""
    return tensor.view(tensor.shape[0], tensor.shape[1] * tensor.shape[2])


def _rows(tensor: Tensor) -> Tensor:
    """[T, B, N] as [T * B, N]."""
    return tensor.view(tensor.shape[0] * tensor.shape[1], tensor.shape[2])
