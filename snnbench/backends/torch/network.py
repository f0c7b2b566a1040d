"""The network and the neuron that an adapter for torch builds, and the weights that it gets."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from snnbench.adapter.refusal import Unsupported
from snnbench.backends.operations import NetworkParts
from snnbench.backends.torch.operations import Operations, Step
from snnbench.cases.case import CONSTANTS, Case
from snnbench.cases.operations import Integrator, Neurons, Normalisation

Chunk = Callable[[torch.Tensor, Any], tuple[torch.Tensor, Any]]
"""A function of the input of some steps and of the states before them, to spikes and the states after them."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The harness's weight [N_out, N_in] and bias [N_out] of one layer, on the case's device in its dtype.

    A recurrent layer also has the weights [N_out, N_out] of its own spikes.
    """

    weight: torch.Tensor
    bias: torch.Tensor
    recurrent: torch.Tensor | None = None

    def linear(self, gain: float = 1.0) -> torch.nn.Linear:
        """A torch.nn.Linear with these weights times `gain`."""
        outputs, inputs = self.weight.shape
        layer = torch.nn.Linear(inputs, outputs, device="meta")  # draws no random numbers
        layer.weight = torch.nn.Parameter(self.weight * gain)
        layer.bias = torch.nn.Parameter(self.bias * gain)
        return layer

    def own(self, gain: float = 1.0) -> torch.nn.Linear | None:
        """A torch.nn.Linear of the layer's own spikes, without a bias; None if the layer is not recurrent."""
        if self.recurrent is None:
            return None
        layer = torch.nn.Linear(*self.recurrent.shape, bias=False, device="meta")
        layer.weight = torch.nn.Parameter(self.recurrent * gain)
        return layer


def trained(case: Case, neurons: int) -> dict[str, torch.nn.Parameter]:
    """The trained constants of a layer of so many neurons, by name: one number each, or one a neuron."""
    shape, dtype = (neurons,) if case.trained_each == "neuron" else (), getattr(torch, case.dtype)
    numbers = {name: getattr(case, name) for name in case.trained_constants}
    return {
        name: torch.nn.Parameter(torch.full(shape, number, dtype=dtype, device=case.device))
        for name, number in numbers.items()
    }


@dataclass(frozen=True, slots=True)
class Network:
    """The network that an adapter for torch builds.

    `forward` maps the input to spikes. `linears` are the library's linear layers, each with a `weight` and a `bias`
    that hold the harness's values times `gain`; `transposed` says that weights are kept as [N_in, N_out]. Without
    linear layers the input is currents, and the harness hands them over times `gain`. `reset` is the call that a user
    of the library makes before each pass, outside of the network: it is timed, never compiled. `by_step` says that each
    time step goes through all layers before the next. `recurrent` has for each layer None or what holds the weights of
    its own spikes as `weight`, kept as those of linear layers. `constants` are the tensors that hold the case's trained
    constants, those of the first layer first, each with the derivative of the constant by its tensor. `chunk` maps the
    input of some steps and the states that the steps before left, None at first, to spikes and the states they leave.
    """

    forward: Callable[[torch.Tensor], torch.Tensor]
    linears: Sequence[Any]
    gain: float = 1.0
    transposed: bool = False
    provider: Callable[[], str] | str = "torch"
    reset: Callable[[], None] | None = None
    by_step: bool = False
    recurrent: Sequence[Any] = ()
    constants: Sequence[tuple[torch.Tensor, float]] = ()
    chunk: Chunk | None = None

    def without_neurons(self, order: str) -> "Network":
        """The linear layers alone, on inputs in this order of the axes T, B and N: each neuron is the identity.

        Raises Unsupported for a network without linear layers.
        """
        if not self.linears:
            raise Unsupported("without linear layers nothing is left beside the neurons")
        time_axis, neuron_axis = order.index("T"), order.index("N")

        def layers(x: torch.Tensor) -> torch.Tensor:
            for linear in self.linears:
                weight = linear.weight.T if self.transposed else linear.weight.flatten(1)
                x = torch.nn.functional.linear(x, weight, linear.bias.reshape(-1))
            return x

        def forward(x: torch.Tensor) -> torch.Tensor:
            if self.by_step:
                return torch.stack([layers(step) for step in x.unbind(time_axis)], time_axis)
            return layers(x.movedim(neuron_axis, -1)).movedim(-1, neuron_axis)

        return Network(forward, self.linears, self.gain, self.transposed, chunk=lambda x, states: (forward(x), states))


@dataclass(frozen=True, slots=True)
class Neuron:
    """A library's neuron, as an adapter for torch builds it.

    `layer(neurons)` makes a layer of so many neurons: a function of currents [T, B, N], in the adapter's order, to
    spikes of the same shape. It takes the harness's currents times `gain`. `reset(layer)` is the call that a user makes
    on each layer before each pass. `joined(linear)` is for a library whose users have a linear layer and its neurons in
    one: it makes such a layer of a torch.nn.Linear, and stacks consist of these but for recurrent layers.
    `recurrent(own)` makes a layer as `layer` does, whose neurons also get their spikes of the step before, through
    `own`, a torch.nn.Linear of [N, N] without a bias. `constants(layer)` are the tensors of a layer that hold the
    case's trained constants, by the constant's name. Each is the constant itself, or comes in a pair with the
    derivative of the constant by it. `chunk(layer, currents, state)` runs a layer on the next steps of a sequence: it
    takes their currents, or the input of a joined layer, and the state that the steps before left, None at first, and
    gives spikes and the state that these steps leave. A state is a tensor or a tuple of tensors. `is_fed` says that a
    DataLoader can feed its network.
    """

    is_fed: ClassVar[bool] = True

    layer: Callable[[int], Callable[[torch.Tensor], torch.Tensor]]
    gain: float = 1.0
    provider: Callable[[], str] | str = "torch"
    reset: Callable[[Any], None] | None = None
    joined: Callable[[torch.nn.Linear], Callable[[torch.Tensor], torch.Tensor]] | None = None
    recurrent: Callable[[torch.nn.Linear], Callable[[torch.Tensor], torch.Tensor]] | None = None
    constants: Callable[[Any], Mapping[str, Any]] | None = None
    chunk: Callable[[Any, torch.Tensor, Any], tuple[torch.Tensor, Any]] | None = None

    def stack(self, weights: Sequence[Weights]) -> Network:
        """Linear layers with these weights, each followed by a layer of neurons. Raises Unsupported."""
        linears = [layer.linear(self.gain) for layer in weights]
        own = [layer.own(self.gain) for layer in weights]
        layers, steps, before = [], list[Callable[[torch.Tensor], torch.Tensor]](), []
        for linear, back in zip(linears, own, strict=True):
            is_joined = self.joined is not None and back is None
            apart = linear.out_features, back
            layers.append(self.joined(linear) if self.joined and is_joined else self._layer(*apart))
            steps += [layers[-1]] if is_joined else [linear, layers[-1]]
            before.append(None if is_joined else linear)

        def forward(x: torch.Tensor) -> torch.Tensor:
            for step in steps:
                x = step(x)
            return x

        held = [self.constants(layer) for layer in layers] if self.constants else []
        ordered = [of_layer[name] for of_layer in held for name in CONSTANTS if name in of_layer]
        return Network(
            forward,
            linears,
            self.gain,
            provider=self.provider,
            reset=self._reset_of(layers),
            recurrent=own,
            constants=[each if isinstance(each, tuple) else (each, 1.0) for each in ordered],
            chunk=self._chunk_of(before, layers),
        )

    def _chunk_of(self, before: Sequence[torch.nn.Linear | None], layers: Sequence[Any]) -> Chunk | None:
        """The stack as a function of a chunk: these layers, each after a linear layer, if it has none of its own."""
        if (run := self.chunk) is None:
            return None

        def chunk(x: torch.Tensor, states: Any) -> tuple[torch.Tensor, Any]:
            left = []
            for linear, layer, state in zip(before, layers, states or [None] * len(layers), strict=True):
                x, state = run(layer, x if linear is None else linear(x), state)
                left.append(state)
            return x, left

        return chunk

    def _layer(self, neurons: int, own: torch.nn.Linear | None) -> Callable[[torch.Tensor], torch.Tensor]:
        """A layer of so many neurons, with their own spikes through `own`, if it is given. Raises Unsupported."""
        if own is None:
            return self.layer(neurons)
        if self.recurrent is None:
            raise Unsupported("this adapter has no recurrent layer for this neuron")
        return self.recurrent(own)

    def alone(self, neurons: int) -> Network:
        """A layer of neurons on currents."""
        layer = self.layer(neurons)
        return Network(layer, [], self.gain, provider=self.provider, reset=self._reset_of([layer]))

    def network(self, plan: NetworkParts, neurons: "Mapping[str, Neuron] | None" = None) -> Network:
        """The operations of a plan, with a layer of neurons at each site, or one of the site's own `neurons`."""
        neurons = neurons or dict.fromkeys(plan.sites, self)
        gains = {name: each.gain for name, each in neurons.items()}
        operations = Operations(plan, lambda site, own: neurons[site.name]._layer(site.count, own), gains)
        resets = [each._reset_of([layer]) for each, layer in zip(neurons.values(), operations.layers, strict=True)]
        return Network(operations, [], self.gain, provider=self.provider, reset=_in_turn(resets))

    def _reset_of(self, layers: Sequence[Any]) -> Callable[[], None] | None:
        if (reset := self.reset) is None:
            return None

        def reset_all() -> None:
            for layer in layers:
                reset(layer)

        return reset_all


def _in_turn(calls: Sequence[Callable[[], None] | None]) -> Callable[[], None] | None:
    """One function that makes each of the calls in order, or None where no call is given."""
    given = [call for call in calls if call is not None]

    def all_of_them() -> None:
        for call in given:
            call()

    return all_of_them if given else None


@dataclass(frozen=True, slots=True)
class SteppedNeuron:
    """A library's neuron whose users run a network step by step, with all of its layers in each time step.

    `step(neurons)` makes a layer of so many neurons: a function of the currents [B, N] of one step and of its state,
    None at first, to spikes [B, N] and the new state. It takes the harness's currents times `gain`.
    """

    is_fed: ClassVar[bool] = True

    step: Callable[[int], Step]
    gain: float = 1.0
    provider: Callable[[], str] | str = "torch"

    def stack(self, weights: Sequence[Weights]) -> Network:
        """Linear layers with these weights, each followed by a layer of neurons."""
        linears = [layer.linear(self.gain) for layer in weights]
        layers = [self.step(linear.out_features) for linear in linears]

        def chunk(x: torch.Tensor, states: Any) -> tuple[torch.Tensor, Any]:
            states, outputs = list(states or [None] * len(layers)), []
            for spikes in x.unbind(0):
                for number, (linear, layer) in enumerate(zip(linears, layers, strict=True)):
                    spikes, states[number] = layer(linear(spikes), states[number])
                outputs.append(spikes)
            return torch.stack(outputs), states

        def forward(x: torch.Tensor) -> torch.Tensor:
            return chunk(x, None)[0]

        return Network(forward, linears, self.gain, provider=self.provider, by_step=True, chunk=chunk)

    def alone(self, neurons: int) -> Network:
        """A layer of neurons on currents."""
        layer = self.step(neurons)

        def forward(x: torch.Tensor) -> torch.Tensor:
            state, outputs = None, []
            for current in x.unbind(0):
                spikes, state = layer(current, state)
                outputs.append(spikes)
            return torch.stack(outputs)

        return Network(forward, [], self.gain, provider=self.provider)

    def network(self, plan: NetworkParts, neurons: "Mapping[str, SteppedNeuron] | None" = None) -> Network:
        """The operations of a plan, all in each time step, with one neuron for all sites or one for each.

        Raises Unsupported for the statistics of a batch, and for what has a state between steps beside these neurons.
        """
        neurons = neurons or dict.fromkeys(plan.sites, self)
        for operation in plan.operations:
            if isinstance(operation, Normalisation) and operation.mixes_images:
                raise Unsupported("step by step the statistics of a batch are those of one step: use frozen statistics")
            if isinstance(operation, Integrator) or (isinstance(operation, Neurons) and operation.recurrent):
                raise Unsupported(f"{operation.name} keeps what a network that runs step by step does not carry here")
        gains = {name: each.gain for name, each in neurons.items()}
        operations = Operations(plan, lambda site, own: neurons[site.name].step(site.count), gains, by_step=True)
        return Network(operations, [], self.gain, provider=self.provider)
