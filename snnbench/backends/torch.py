"""PyTorch on CPU and CUDA.

Gradients are asked for with `torch.autograd.grad`, so every pass has a graph of its own and nothing accumulates in
`.grad` that would have to be cleared inside or outside of the timed region.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from snnbench.adapter import Incorrect, Unsupported
from snnbench.backends import Build, Matrix, Run
from snnbench.case import Case
from snnbench.inputs import Problem
from snnbench.layout import Layout
from snnbench.verify import Answer

DYNAMO = "torch._dynamo"  # costs a second and 100 MB to import, so it is asked only where somebody else imported it


@dataclass(frozen=True, slots=True)
class Weights:
    """The harness's weight [N_out, N_in] and bias [N_out] of one layer, on the case's device in its dtype."""

    weight: torch.Tensor
    bias: torch.Tensor

    def linear(self, gain: float = 1.0) -> torch.nn.Linear:
        """A torch.nn.Linear with these weights times `gain`."""
        outputs, inputs = self.weight.shape
        layer = torch.nn.Linear(inputs, outputs, device="meta").to_empty(device=self.weight.device)
        layer = layer.to(self.weight.dtype)
        with torch.no_grad():
            layer.weight.copy_(self.weight * gain)
            layer.bias.copy_(self.bias * gain)
        return layer


@dataclass(frozen=True, slots=True)
class Network:
    """What an adapter for torch builds.

    `forward` maps the input to spikes. `linears` are the library's linear layers, each with a `weight` and a `bias`
    that hold the harness's values times `gain`; `transposed` says that weights are kept as [N_in, N_out].
    """

    forward: Callable[[torch.Tensor], torch.Tensor]
    linears: Sequence[Any]
    gain: float = 1.0
    transposed: bool = False
    provider: Callable[[], str] | str = "torch"


class Backend:
    """PyTorch, set to the case's device and precision."""

    def __init__(self, case: Case) -> None:
        self.device, self.dtype = torch.device(case.device), getattr(torch, case.dtype)
        if self.device.type == "cpu" and case.precision != "ieee":
            raise Unsupported("tf32 exists on CUDA devices only")
        if self.device.type == "cuda" and not torch.cuda.is_available():
            raise Unsupported(f"torch {torch.__version__} sees no CUDA device; install its CUDA build")
        for settings in (torch.backends.cuda.matmul, torch.backends.cudnn.conv, torch.backends.cudnn.rnn):
            settings.fp32_precision = case.precision
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        torch.manual_seed(case.seed)

    def settings(self) -> dict[str, Any]:
        """Version, precision, threads and device in force."""
        name = torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else "cpu"
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "device": name,
            "matmul_precision": torch.backends.cuda.matmul.fp32_precision,
            "convolution_precision": torch.backends.cudnn.conv.fp32_precision,
            "threads": torch.get_num_threads(),
            "interop_threads": torch.get_num_interop_threads(),
        }

    def session(self, build: Build, variant: str, layout: Layout, problem: Problem) -> "Session":
        """Build the network. A compiler's memory of an earlier network's shapes is dropped first."""
        if DYNAMO in sys.modules:
            torch.compiler.reset()
        return Session(build, variant, layout, problem, self.device)

    def compilations(self) -> int:
        """Graphs that torch.compile has made."""
        if DYNAMO not in sys.modules:
            return 0
        counters: dict[str, dict[str, int]] = torch._dynamo.utils.counters
        return int(counters["stats"]["unique_graphs"])

    def device_bytes(self) -> dict[str, int | None]:
        """The caching allocator's own count, and what the driver says of the whole device."""
        if self.device.type != "cuda":
            return {}
        free, total = torch.cuda.mem_get_info(self.device)
        return {
            "peak": torch.cuda.max_memory_allocated(self.device),
            "in_use": torch.cuda.memory_allocated(self.device),
            "reserved": torch.cuda.memory_reserved(self.device),
            "used": total - free,
        }

    def failure_kind(self, error: BaseException) -> str | None:
        """Out of memory, or nothing known."""
        if isinstance(error, torch.OutOfMemoryError):
            return "oom-device"
        return "oom-host" if isinstance(error, MemoryError) or "can't allocate memory" in str(error) else None

    def peaks(self, entering: Matrix, cotangent: Matrix, weight: Matrix, copied_bytes: int) -> dict[str, Run]:
        """BLAS reads a transposed view as it lies."""
        x, g, w = (torch.from_numpy(array).to(self.device, self.dtype) for array in (entering, cotangent, weight))
        rows, square = torch.empty_like(x), torch.empty_like(w)
        source = torch.ones(copied_bytes, dtype=torch.uint8, device=self.device)
        target = torch.zeros_like(source)
        one = torch.ones((1, 1), dtype=self.dtype, device=self.device)
        product = torch.zeros_like(one)
        return {
            "current": lambda: torch.mm(x, w.T, out=rows),
            "weight_gradient": lambda: torch.mm(g.T, x, out=square),
            "input_gradient": lambda: torch.mm(g, w, out=rows),
            "copy": lambda: target.copy_(source),
            "call": lambda: torch.mm(one, one, out=product),
        }


class Session:
    """A network on one problem, with its tensors on the device."""

    def __init__(self, build: Build, variant: str, layout: Layout, problem: Problem, device: torch.device) -> None:
        case = problem.case
        self.device, self.dtype = device, getattr(torch, case.dtype)
        layers = [Weights(self._place(weight), self._place(bias)) for weight, bias in problem.layers()]
        self.network: Network = build(case, layers, variant)
        self.parameters = [tensor for linear in self.network.linears for tensor in (linear.weight, linear.bias)]
        self.problem, self.layout = problem, layout
        self.input = self._place(layout.input(problem.input(0))).requires_grad_(case.input_gradient)
        self.cotangent = self._place(layout.cotangent(problem.cotangent(0)))
        self.wanted = [*self.parameters, self.input] if case.input_gradient else self.parameters

    def load(self, which: int, cotangent: int) -> None:
        """In place: whoever remembers an input by its identity remembers the wrong one."""
        with torch.no_grad():
            self.input.copy_(torch.from_numpy(self.layout.input(self.problem.input(which))))
            self.cotangent.copy_(torch.from_numpy(self.layout.cotangent(self.problem.cotangent(cotangent))))

    def compile(self, phase: str) -> None:
        """PyTorch compiles nothing ahead of a call."""

    def inference(self) -> Any:
        """Spikes, without a graph."""
        with torch.no_grad():
            return self.network.forward(self.input)

    def forward(self) -> Any:
        """Spikes, with the graph that they hold."""
        return self.network.forward(self.input)

    def backward(self, kept: Any) -> Any:
        """Gradients of weights, biases and, where the case wants it, the input."""
        if not kept.requires_grad:
            raise Incorrect("the spikes carry no gradient")
        if self.cotangent.dtype != kept.dtype:  # happens once, before anything is timed
            self.cotangent = self.cotangent.to(kept.dtype)
        return torch.autograd.grad(kept, self.wanted, self.cotangent)

    def train(self) -> Any:
        """Spikes and gradients."""
        spikes = self.network.forward(self.input)
        return spikes.detach(), self.backward(spikes)

    def synchronise(self, outputs: Any) -> None:
        """Wait for the device."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

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
        """In the harness's order, the gradients those of the harness's own weights."""
        got = self.layout.spikes(_numpy(spikes))
        if gradients is None:
            return Answer(got)
        count = len(self.parameters)
        weights = [_numpy(g.T if self.network.transposed else g) * self.network.gain for g in gradients[0:count:2]]
        biases = [_numpy(g).reshape(-1) * self.network.gain for g in gradients[1:count:2]]
        entering = self.layout.input_gradient(_numpy(gradients[count])) if len(gradients) > count else None
        return Answer(got, weights, biases, entering)

    def spikes_of(self, kept: Any) -> Any:
        """The spikes in what `forward` gave."""
        return kept

    def static_bytes(self) -> int:
        """Parameters, input and cotangent."""
        return sum(t.numel() * t.element_size() for t in (*self.parameters, self.input, self.cotangent))

    def provider(self) -> str:
        """As the adapter names it."""
        named = self.network.provider
        return named if isinstance(named, str) else named()

    def _place(self, array: Any) -> torch.Tensor:
        return torch.from_numpy(np.asarray(array)).to(self.device, self.dtype)


def _numpy(tensor: torch.Tensor) -> Any:
    tensor = tensor.detach().cpu()
    return (tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()).numpy()
