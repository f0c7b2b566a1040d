"""A network of operations as PyTorch's own modules, with a library's neuron at every site.

A network runs layer by layer: each operation takes all time steps, with time and batch as one axis of images. At a site
the two are axes of their own again, and all places of all channels are one axis of neurons, in the library's order.
These are views, unless the order has the neurons before time. With neurons of single steps it runs step by step: all
operations in each time step, whose images are the samples of the batch.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from snnbench.backends.operations import NetworkParts, scales
from snnbench.cases.operations import (
    INPUT,
    Attention,
    Average,
    Flatten,
    Integrator,
    Linear,
    Neurons,
    Normalisation,
    Operation,
    Scaling,
    Sum,
)
from snnbench.cases.windows import Convolution, MaximumPool, WindowSum

Layer = Callable[[torch.Tensor], torch.Tensor]
"""Neurons in all time steps: from currents [T, B, N], in the library's order, to spikes."""
Step = Callable[[torch.Tensor, Any], tuple[torch.Tensor, Any]]
"""Neurons in one time step: from currents [B, N] and a state, None at first, to spikes and the new state."""
Placed = Mapping[str, list[torch.Tensor]]
"""The parameters of each operation, on the device."""
CONVOLUTIONS = {1: nn.Conv1d, 2: nn.Conv2d}
"""The module of a convolution, by its number of axes."""


class Operations(nn.Module):  # type: ignore[misc]  # torch has no types here
    """The operations of a plan, whose input is in an order such as "BTN": N stands for [channels, side, side].

    `layer(site, own)` makes the neurons of a site, with their own spikes through the torch.nn.Linear `own` if they are
    recurrent. They take a current times their gain. So the gain is in the operation before a site, and in a shortcut of
    spikes. If the network is to run `by_step`, `layer` makes a Step. `recorded` is a pass that also returns each value.
    It adds zeros to each value, and their gradient is the value's.
    """

    def __init__(
        self,
        plan: NetworkParts,
        layer: Callable[[Neurons, nn.Linear | None], Any],
        gains: Mapping[str, float],
        by_step: bool = False,
    ) -> None:
        super().__init__()
        operations, parameters, order = plan.operations, plan.parameters, plan.order
        self.operations, self.order, self.by_step = operations, order, by_step
        self.leading = order.replace("N", "")
        self.time_axis = self.leading.index("T")
        self._states: list[Any] = []
        self.scaled = scales(operations, gains)
        self.modules_of: dict[str, nn.Module] = {
            each.name: _own(each.count, parameters[each.name][0] * gains[each.name])
            for each in operations
            if isinstance(each, Neurons) and each.recurrent
        }
        self.factors = self.scaled | {name: gains[name] for name in self.modules_of}
        sites_of = [each for each in operations if isinstance(each, Neurons)]
        self.layers = [layer(each, self.modules_of.get(each.name)) for each in sites_of]
        sites = 0
        self.names = [INPUT, *(operation.name for operation in operations)]
        self.steps: list[Callable[..., torch.Tensor]] = []
        for operation in operations:
            if isinstance(operation, Neurons):
                site = self._stepped_site(sites) if by_step else self._site(self.layers[sites])
                self.steps.append(site)
                sites += 1
            elif isinstance(operation, Integrator):
                self.steps.append(self._integrator(operation))
            elif isinstance(operation, Sum):
                self.steps.append(self._sum(operation))
            else:
                scale = self.scaled.get(operation.name, 1.0)
                module = _module(operation, parameters.get(operation.name, ()), scale)
                self.modules_of[operation.name] = module
                self.steps.append(module)
        self.parts = nn.ModuleList(self.modules_of.values())
        numbers = {name: number for number, name in enumerate(self.names)}
        self.takes = [[numbers[name] for name in operation.of] for operation in operations]
        last = {number: step for step, taken in enumerate(self.takes) for number in taken}
        self.ends = [[number for number in set(taken) if last[number] == step] for step, taken in enumerate(self.takes)]

    def parameters_in_order(self) -> list[tuple[torch.Tensor, float]]:
        """Each parameter of the harness, and the number by which it was multiplied."""
        return [
            (parameter, self.factors.get(operation.name, 1.0))
            for operation in self.operations
            if operation.parameters
            for parameter in self.modules_of[operation.name].parameters()
        ]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The output, its first two axes those of `x`. A value is dropped after its last use."""
        self._leads = x.shape[:2]
        if not self.by_step:
            output: torch.Tensor = self._output(x.flatten(0, 1)).unflatten(0, self._leads)
            return output
        self._states = [None] * len(self.layers)
        outputs = [self._output(images) for images in x.unbind(self.time_axis)]
        self._states = []  # they would hold the pass's graph until the next pass
        return torch.stack(outputs, self.time_axis)

    def recorded(self, x: torch.Tensor, zeros: Sequence[torch.Tensor]) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """The output of `forward`, and the value of each of `names`. `zeros` are added to these values."""
        self._leads = x.shape[:2]
        if not self.by_step:
            values = self._values(x.flatten(0, 1), zeros)
        else:
            self._states = [None] * len(self.layers)
            by_step = zip(*[each.unflatten(0, self._leads).unbind(self.time_axis) for each in zeros], strict=True)
            steps = zip(x.unbind(self.time_axis), by_step, strict=True)
            of_steps = [self._values(images, zeros_of_step) for images, zeros_of_step in steps]
            self._states = []
            values = [torch.stack(each, self.time_axis).flatten(0, 1) for each in zip(*of_steps, strict=True)]
        return values[-1].unflatten(0, self._leads), values

    def zeros(self, x: torch.Tensor) -> list[torch.Tensor]:
        """Zeros for `recorded`, each of the format that its value has in a pass over `x`."""
        self._leads = x.shape[:2]
        self._states = [None] * len(self.layers)
        with torch.no_grad():
            values = self._values(x.select(self.time_axis, 0) if self.by_step else x.flatten(0, 1))
        count = self._leads.numel()
        return [value.new_zeros((count, *value.shape[1:]), requires_grad=True) for value in values]

    def _output(self, images: torch.Tensor) -> torch.Tensor:
        """The value of the last operation for images."""
        values: list[Any] = [images]
        for step, taken, ends in zip(self.steps, self.takes, self.ends, strict=True):
            values.append(step(*[values[number] for number in taken]))
            for number in ends:
                values[number] = None
        output: torch.Tensor = values[-1]
        return output

    def _values(self, images: torch.Tensor, zeros: Sequence[torch.Tensor] | None = None) -> list[torch.Tensor]:
        """The images and the value of every operation for them, with `zeros` added to each."""
        values = [images if zeros is None else images + zeros[0]]
        for number, (step, taken) in enumerate(zip(self.steps, self.takes, strict=True), start=1):
            value = step(*[values[other] for other in taken])
            values.append(value if zeros is None else value + zeros[number])
        return values

    def _site(self, layer: Layer) -> Layer:
        given = f"{self.leading}N"
        there = [given.index(axis) for axis in self.order]
        back = [self.order.index(axis) for axis in given]

        def site(current: torch.Tensor) -> torch.Tensor:
            by_step = current.unflatten(0, self._leads).flatten(2)
            if self.order == given:
                return layer(by_step).reshape(current.shape)
            return layer(by_step.permute(there)).permute(back).reshape(current.shape)

        return site

    def _stepped_site(self, number: int) -> Layer:
        def site(current: torch.Tensor) -> torch.Tensor:
            spikes, self._states[number] = self.layers[number](current.flatten(1), self._states[number])
            return spikes.reshape(current.shape)

        return site

    def _integrator(self, operation: Integrator) -> Layer:
        alpha, beta, axis = operation.alpha, operation.beta, self.time_axis

        def potentials(current: torch.Tensor) -> torch.Tensor:
            synaptic = total = torch.zeros((), dtype=current.dtype, device=current.device)
            steps = []
            for x in current.unflatten(0, self._leads).unbind(axis):
                synaptic = alpha * synaptic + x if alpha else x
                total = beta * total + synaptic
                steps.append(total)
            return torch.stack(steps, axis).flatten(0, 1)

        return potentials

    def _sum(self, operation: Sum) -> Callable[..., torch.Tensor]:
        gain = self.scaled.get(operation.name, 1.0)
        first, second = (gain if name not in self.scaled else 1.0 for name in operation.of)
        if first != 1.0:
            raise ValueError("the first term of a sum is a branch, which ends in a normalisation")
        return lambda branch, shortcut: torch.add(branch, shortcut, alpha=second)


def _own(neurons: int, weight: torch.Tensor) -> nn.Linear:
    """The linear layer of a site's own spikes, without a bias."""
    own = nn.Linear(neurons, neurons, bias=False, device="meta")
    own.weight = nn.Parameter(weight)
    return own


class _Attention(nn.Module):  # type: ignore[misc]  # torch has no types here
    """Spiking self-attention over the places of images, times a `scale`."""

    def __init__(self, operation: Attention, scale: float) -> None:
        super().__init__()
        self.heads, self.scale, self.shape = operation.heads, operation.scale * scale, operation.shape

    def forward(self, *entering: torch.Tensor) -> torch.Tensor:
        """The products of queries, keys and values."""
        queries, keys, values = (each.flatten(2).unflatten(1, (self.heads, -1)) for each in entering)
        by_head = values @ (keys.mT @ queries)
        return (by_head * self.scale).reshape(-1, *self.shape)


class _Scaling(nn.Module):  # type: ignore[misc]  # torch has no types here
    """Each number of an image times one of `weight`, plus one of `bias` if it is `biased`."""

    def __init__(self, biased: bool) -> None:
        super().__init__()
        self.biased = biased

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The products, and the bias."""
        products = x * self.weight
        return products + self.bias if self.biased else products


def _module(operation: Operation, parameters: Sequence[torch.Tensor], scale: float) -> nn.Module:
    """PyTorch's module of an operation, with these parameters times `scale`."""
    match operation:
        case Convolution():
            kind = CONVOLUTIONS[len(operation.size)]
            sizes = operation.size, operation.stride, operation.padding, operation.dilation
            channels = operation.inputs, operation.shape[0]
            module: nn.Module = kind(*channels, *sizes, bias=operation.biased, device="meta")
        case Normalisation():
            module = nn.BatchNorm2d(
                operation.shape[0], operation.epsilon, track_running_stats=operation.variance is not None, device="meta"
            )
            if operation.variance is not None:
                module.running_mean = torch.zeros_like(parameters[0])
                module.running_var = torch.full_like(parameters[0], operation.variance)
                module.eval()
        case MaximumPool():
            return nn.MaxPool2d(operation.size, operation.stride, operation.padding)
        case WindowSum():
            return _window_sum(operation)
        case Attention():
            return _Attention(operation, scale)
        case Average():
            return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
        case Linear():
            module = nn.Linear(operation.inputs, operation.shape[0], bias=operation.biased, device="meta")
        case Flatten():
            return nn.Sequential(nn.Flatten(), nn.Unflatten(1, operation.shape))
        case Scaling():
            module = _Scaling(operation.biased)
        case _:
            raise TypeError(f"{operation.name}: PyTorch's module of a {type(operation).__name__} is not known here")
    for name, parameter in zip(operation.parameters, parameters, strict=True):
        setattr(module, name, nn.Parameter(parameter if scale == 1.0 else parameter * scale))
    return module


def _window_sum(operation: WindowSum) -> nn.Module:
    """PyTorch's module of an average over two axes; one axis of places is the second of two."""
    divisor = {"divisor_override": operation.divisor}
    if len(operation.size) == 2:
        return nn.AvgPool2d(operation.size, operation.stride, operation.padding, **divisor)
    (size,), (stride,), (padding,) = operation.size, operation.stride, operation.padding
    pool = nn.AvgPool2d((1, size), (1, stride), (0, padding), **divisor)
    return nn.Sequential(nn.Unflatten(1, (-1, 1)), pool, nn.Flatten(2))
