"""A network of torch on one problem. Every pass has its own graph, and no gradient accumulates in `.grad`."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.autograd.graph import _engine_run_backward

from snnbench import backends
from snnbench.adapter.declaration import Variant
from snnbench.adapter.refusal import Incorrect, Unsupported
from snnbench.backends import Build, operations
from snnbench.backends.layout import Layout, require_type
from snnbench.backends.operations import NetworkParts
from snnbench.backends.torch import modes
from snnbench.backends.torch.arrays import Arrays
from snnbench.backends.torch.modes import compiled, mixed
from snnbench.backends.torch.network import Network, Weights
from snnbench.backends.torch.operations import Operations
from snnbench.cases.answer import Answer, Held, Recording, times
from snnbench.cases.problem import Graph, Problem

FORMATS = ("float32", "float64", "bfloat16", "float16")
"""The number formats of networks of operations."""
Part = tuple[int, int, int]
"""The axis of time, the first step and the number of steps of a part of a sequence."""


def gradients_of(
    output: torch.Tensor, inputs: Sequence[torch.Tensor], cotangent: torch.Tensor, again: bool = False
) -> tuple[torch.Tensor, ...]:
    """The gradients of `inputs` for this cotangent of `output`; the graph is kept if it is needed `again`.

    It is `torch.autograd.grad` without its check of shapes: that check loads SymPy, and the backward pass of a loss,
    which is a number, has none. The engine raises RuntimeError if the cotangent's shape is wrong.
    """
    gradients: tuple[torch.Tensor, ...] = _engine_run_backward(
        (output,), (cotangent,), again, False, tuple(inputs), allow_unreachable=False, accumulate_grad=False
    )
    return gradients


class Session(backends.Session):
    """A network on one problem, with its tensors on the device."""

    def __init__(self, build: Build, variant: Variant, problem: Problem, device: torch.device) -> None:
        case = problem.case
        held = case.with_(dtype="float32") if variant.way == "amp" else case
        self.device, self.dtype = device, getattr(torch, held.dtype)
        self.problem, self._way = problem, variant.way
        refuse(problem, variant)
        given = operations.given(problem, variant, self._place, Weights)
        compilations_before = modes.compilations()
        self.network: Network = build(held, given, variant.built_as)
        self.forwards = self._in_way(self.network.forward)
        self._record: Any = None
        self._zeros: list[torch.Tensor] = []
        self.compiles, self._graphs_before = modes.compilations() > compilations_before, modes.graphs()
        self.scales: list[float] = []
        self.recurrent = self.network.recurrent or [None] * len(self.network.linears)
        self.parameters = [tensor for linear in self.network.linears for tensor in (linear.weight, linear.bias)]
        self.parameters += [own.weight for own in self.recurrent if own is not None]
        self.parameters += [tensor for tensor, _ in self.network.constants]
        self.layout = Layout(variant.order, variant.latency)
        if isinstance(given, NetworkParts):
            ordered = self.network.forward.parameters_in_order()
            self.parameters, self.scales = [each for each, _ in ordered], [scale for _, scale in ordered]
            self.layout = Layout(operations.leading(variant.order))
        self.unit = 1.0 if self.parameters else self.network.gain
        self.input = self._place(self._input(0)).requires_grad_(case.input_gradient)
        self.cotangent = self._place(self._given_cotangent(0))
        self._first: dict[str, torch.Tensor] = {}
        self.wanted = [*self.parameters, self.input] if case.input_gradient else self.parameters

    def load(self, which: int, cotangent: int) -> None:
        """Copy in place, so that a cache keyed on the tensor returns a stale answer and is caught."""
        with torch.no_grad():
            self.input.copy_(self._content("input", which, self._input))
        Session.load_cotangent(self, cotangent)  # that of a RankSession would tell the other ranks

    def load_cotangent(self, cotangent: int) -> None:
        """Copy in place: a forward pass keeps no reference to the cotangent."""
        with torch.no_grad():
            self.cotangent.copy_(self._content("cotangent", cotangent, self._given_cotangent))

    def inference(self) -> Any:
        """Spikes, without a graph."""
        with torch.no_grad():
            return self.run()

    def forward(self) -> Any:
        """Spikes, with the graph that they hold."""
        return self.run()

    def backward(self, saved: Any) -> Any:
        """Gradients of weights, biases and, if the case requires it, the input."""
        return self.gradients(saved)

    def train(self) -> Any:
        """Spikes and gradients."""
        spikes = self.run()
        gradients = self.gradients(spikes)
        return spikes.detach(), gradients

    def gradients(self, spikes: torch.Tensor, again: bool = False) -> Any:
        """Autograd's gradients for these spikes; their graph is kept if it is needed `again`. Raises Incorrect."""
        return self.gradients_of_part(spikes, self.wanted, None, again)

    def gradients_of_part(
        self, spikes: torch.Tensor, wanted: Sequence[torch.Tensor], part: Part | None, again: bool = False
    ) -> tuple[torch.Tensor, ...]:
        """Autograd's gradients of `wanted` for the spikes of a part of the steps, or of all. Raises Incorrect."""
        try:
            if not spikes.requires_grad:
                raise Incorrect("the spikes carry no gradient")
            return gradients_of(spikes, wanted, _part(self._cotangent_of(spikes), part), again)
        except (AttributeError, RuntimeError):
            self.layout.require(spikes, _part(self.cotangent, part).shape)  # after the fact: a pass is timed
            raise

    def synchronise(self, outputs: Any) -> None:
        """Wait for the device."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def inference_without_reset(self) -> Any:
        """Spikes of a pass that continues the last pass; None if the network has no reset."""
        if self.network.reset is None:
            return None
        with torch.no_grad():
            return self.forwards(self.input)

    def run(self) -> Any:
        """Spikes of one pass over the input."""
        return self._run(self.forwards)

    def mark(self) -> Any:
        """A CUDA event in the current stream."""
        if self.device.type != "cuda":
            return None
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def elapsed_ns(self, start: Any, end: Any) -> int:
        """Events count in milliseconds."""
        return int(start.elapsed_time(end) * 1e6)

    def answer(self, spikes: Any, gradients: Any) -> Answer:
        """The answer in the harness's order, with the gradients of the harness's own weights. Raises Incorrect."""
        return self._answer(spikes, gradients, _numpy)

    def held(self, spikes: Any, gradients: Any) -> Answer:
        """The same, where the tensors are."""
        arrays = Arrays(self.device)
        return self._answer(spikes, gradients, _plain).each(lambda tensor: Held(tensor.to(self.device), arrays))

    def arrays(self) -> Arrays | None:
        """Those of the card of a network that one process runs."""
        return Arrays(self.device) if self.device.type == "cuda" and not self.problem.case.is_divided else None

    def _answer(self, spikes: Any, gradients: Any, read: Callable[[Any], Any]) -> Answer:
        """The answer, with the tensors as `read` gives them."""
        if self.compiles and modes.graphs() == self._graphs_before:
            raise Incorrect("torch.compile compiled nothing: PyTorch's eager mode ran")
        got = self.layout.spikes(read(spikes))
        if gradients is None:
            return Answer(got)
        gradients, count = [_plain(each) for each in gradients], len(self.parameters)
        if self.scales:
            return Answer(got, [times(read(g), scale) for g, scale in zip(gradients, self.scales, strict=True)], [])
        gain, of_linears, held = self.network.gain, 2 * len(self.network.linears), self.network.constants
        of_weights = self._beside_own(gradients[0:of_linears:2], gradients[of_linears : count - len(held)])
        of_constants = zip(gradients[count - len(held) : count], held, strict=True)
        trained = [times(read(g).reshape(-1), 1 / derivative) for g, (_, derivative) in of_constants]
        weights = [times(read(g), gain) for g in of_weights]
        biases = [times(read(g).reshape(-1), gain) for g in gradients[1:of_linears:2]]
        if len(gradients) == count:
            return Answer(got, weights, biases, constants=trained)
        entering = self.layout.input_gradient(read(gradients[count]))
        return Answer(got, weights, biases, times(entering, self.unit), trained)

    def _beside_own(self, weights: Sequence[torch.Tensor], own: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Gradients [N_out, N_in] of each layer's weight, with those of a recurrent layer's own spikes beside."""
        kept = [g.T if self.network.transposed else g for g in (*weights, *own)]
        others = iter(kept[len(weights) :])
        return [
            weight if layer is None else torch.cat([weight, next(others)], 1)
            for weight, layer in zip(kept[: len(weights)], self.recurrent, strict=True)
        ]

    def recorded(self) -> Recording:
        """A pass of a network of operations, with each value and its gradient. Raises TypeError for a stack.

        The zeros that are added to the values are arguments, so a compiler cannot omit them.
        """
        network = self.network.forward
        if not isinstance(network, Operations):
            raise TypeError("a stack has no operations to record")
        if self._record is None:
            self._zeros = self._run(self._autocast(network.zeros))
            self._record = self._in_way(network.recorded)
        output, values = self._run(self._record, self._zeros)
        gradients = gradients_of(output, [*self.parameters, *self._zeros], self._cotangent_of(output))
        answer = self.answer(output, gradients[: len(self.parameters)])
        # A card's sums may have another order in each pass, and a compiler may sum a recorded pass in another order.
        repeats_bits = self.device.type == "cpu" and self._way != "compile"
        recording = Recording(answer, {}, {}, repeats_bits)
        leads = self.input.shape[:2]
        for name, value, gradient in zip(network.names, values, gradients[len(self.parameters) :], strict=True):
            seen, arrived = (self._by_step(each.unflatten(0, leads)) for each in (value, gradient))
            operations.put(recording, name, seen, arrived, network.scaled.get(name, 1.0))
        return recording

    def storage(self, spikes: Any, gradients: Any) -> list[NDArray[Any]]:
        """The tensors' memory; numbers of 16 bits as integers. Raises Incorrect."""
        return [_memory(_plain(tensor)) for tensor in (spikes, *(gradients or ()))]

    def spikes_of(self, saved: Any) -> Any:
        """The spikes in the result of `forward`."""
        return saved

    def static_bytes(self) -> int:
        """Parameters, input and cotangent."""
        return sum(t.numel() * t.element_size() for t in (*self.parameters, self.input, self.cotangent))

    def provider(self) -> str:
        """The provider that the adapter names."""
        named = self.network.provider
        return named if isinstance(named, str) else named()

    def ran(self, phase: str) -> list[str]:
        """Kernels on a CUDA device, operators on the CPU, the slowest first.

        CUPTI of CUDA 12.6 to 13.0 loses the first kernels of a session, more in each later one of a process. So on a
        device the phase runs twice in a session, with a synchronisation between.
        """
        activities, cuda = torch.profiler.ProfilerActivity, self.device.type == "cuda"
        with torch.profiler.profile(activities=[activities.CUDA if cuda else activities.CPU]) as seen:
            for _ in range(2 if cuda else 1):
                self.synchronise(self.train() if phase == "train" else self.inference())
        spent = "self_device_time_total" if cuda else "self_cpu_time_total"
        events = sorted(seen.key_averages(), key=lambda event: -getattr(event, spent))
        return [event.key for event in events]

    def _run(self, function: Callable[..., Any], *more: Any) -> Any:
        """The result of a function for the input, after the library's reset."""
        if self.network.reset:
            self.network.reset()
        return function(self.input, *more)

    def _in_way(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of the input, to be called in the variant's way."""
        return compiled(function) if self._way == "compile" else self._autocast(function)

    def _autocast(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of the input, under autocast if that is the variant's way."""
        case = self.problem.case
        is_held = self.dtype == getattr(torch, case.dtype)
        return function if is_held else mixed(function, self.device.type, getattr(torch, case.dtype))

    def _cotangent_of(self, output: torch.Tensor) -> torch.Tensor:
        """The cotangent in the format of an output; it changes once, before anything is timed."""
        if self.cotangent.dtype != output.dtype:
            self.cotangent = self.cotangent.to(output.dtype)
        return self.cotangent

    def _by_step(self, value: torch.Tensor) -> NDArray[Any]:
        """A value with time before the batch."""
        array: NDArray[Any] = _numpy(value)
        return array if self.layout.order.startswith("TB") else array.swapaxes(0, 1)

    def _input(self, which: int) -> NDArray[np.float32]:
        """The numbered input in the library's order; currents in its unit."""
        entering = self.layout.input(self.problem.input(which))
        return entering if self.unit == 1.0 else entering * np.float32(self.unit)

    def _given_cotangent(self, which: int) -> NDArray[np.float32]:
        """The numbered cotangent in the library's order."""
        return self.layout.cotangent(self.problem.cotangent(which))

    def _content(self, name: str, which: int, of: Callable[[int], NDArray[np.float32]]) -> torch.Tensor:
        """A numbered array of the content; one in another order of the batch is made on the device."""
        order = self.problem.order(which) if self.arranges else None
        if order is None:
            return torch.from_numpy(of(which))
        if name not in self._first:
            self._first[name] = torch.from_numpy(of(0)).to(self.device)
        return self._first[name].index_select(self.layout.order.index("B"), torch.from_numpy(order).to(self.device))

    def _place(self, array: Any) -> torch.Tensor:
        """A copy, also on the CPU: the problem's own arrays serve later checks."""
        return torch.from_numpy(np.asarray(array)).to(self.device, self.dtype, copy=True)


def refuse(problem: Problem, variant: Variant) -> None:
    """Refuse a network that PyTorch does not run in the variant's way. Raises Unsupported."""
    if problem.case.chunk_steps and variant.way == "cuda-graph":
        raise Unsupported("a sequence in chunks is not captured in a CUDA graph, so far")
    if not isinstance(problem, Graph):
        return
    operations.check(problem, variant, FORMATS)
    if variant.way and problem.case.is_fed:
        raise Unsupported(f"epochs do not run with the way {variant.way}, so far")
    if variant.way == "compile":
        operations.require_frozen(problem, "torch.compile")


def _part(whole: torch.Tensor, part: Part | None) -> torch.Tensor:
    return whole if part is None else whole.narrow(*part)


def _plain(tensor: Any) -> torch.Tensor:
    """A tensor that holds its numbers. Raises Incorrect."""
    plain: torch.Tensor = require_type(tensor, torch.Tensor, torch.nn.Parameter).detach()
    if plain.layout != torch.strided:
        raise Incorrect(f"an output is a {plain.layout} tensor, expected torch.strided: return plain arrays")
    return plain


def _memory(tensor: torch.Tensor) -> NDArray[Any]:
    array: NDArray[Any] = (tensor.view(torch.int16) if tensor.element_size() == 2 else tensor).numpy()
    return array


def _numpy(tensor: Any) -> Any:
    tensor = _plain(tensor).cpu()
    return (tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()).numpy()
