"""The backend for NumPy: for the reference, and for adapters with their own forward and backward pass."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snnbench import backends
from snnbench.adapter.declaration import Variant
from snnbench.adapter.refusal import Unsupported
from snnbench.backends import Build, Matrix, Run, repeated
from snnbench.backends.layout import Layout, require_type
from snnbench.cases.answer import Answer
from snnbench.cases.case import Case
from snnbench.cases.outcome import FailureKind
from snnbench.cases.problem import Problem


@dataclass(frozen=True, slots=True)
class Network:
    """`forward(input) -> (spikes, kept)`; `backward(kept, cotangent) -> (weights, biases, input gradient)`.

    With trained constants their gradients are the fourth: [1] or [N] each, those of the first layer first.
    """

    forward: Callable[[Any], tuple[Any, Any]]
    backward: Callable[[Any, Any], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Neuron:
    """A layer of neurons of any number.

    `forward(currents [T, B, N]) -> (spikes, kept)`; `backward(kept, cotangent) -> gradient of the currents`.
    """

    forward: Callable[[Any], tuple[Any, Any]]
    backward: Callable[[Any, Any], Any]

    def stack(self, weights: Sequence[Any]) -> Network:
        """Linear layers of these (weight, bias), each followed by a layer of neurons."""

        def forward(x: Any) -> tuple[Any, Any]:
            saved = []
            for weight, bias in weights:
                spikes, inner = self.forward(x @ weight.T + bias)
                saved.append((x, inner))
                x = spikes
            return x, saved

        def backward(saved: Any, cotangent: Any) -> tuple[list[Any], list[Any], Any]:
            by_weight, by_bias = [], []
            for (weight, _), (x, inner) in zip(reversed(weights), reversed(saved), strict=True):
                current = self.backward(inner, cotangent)
                by_weight.append(np.tensordot(current, x, ((0, 1), (0, 1))))
                by_bias.append(current.sum((0, 1)))
                cotangent = current @ weight
            return by_weight[::-1], by_bias[::-1], cotangent

        return Network(forward, backward)

    def alone(self, neurons: int) -> Network:
        """A layer of neurons on currents."""
        return Network(self.forward, lambda saved, cotangent: ([], [], self.backward(saved, cotangent)))


class Backend(backends.Backend):
    """NumPy on the CPU, in float32 or float64."""

    def __init__(self, case: Case) -> None:
        if case.device != "cpu":
            raise Unsupported("NumPy runs on the CPU only")
        if case.dtype not in ("float32", "float64") or case.precision != "ieee":
            raise Unsupported("NumPy adapters compute in float32 or float64, IEEE")
        self.dtype = case.dtype

    def settings(self) -> dict[str, Any]:
        """NumPy's version."""
        return {"numpy": np.__version__}

    def refuse(self, problem: Problem, variant: Variant) -> None:
        """Refuse a sequence in chunks: a network of NumPy functions gives no state. Raises Unsupported."""
        if problem.case.chunk_steps:
            raise Unsupported("a sequence in chunks: networks of NumPy carry no state from one call to the next")

    def session(self, build: Build, variant: Variant, problem: Problem) -> "Session":
        """Build the network."""
        return Session(build, variant, problem)

    def failure_kind(self, error: BaseException) -> FailureKind | None:
        """Out of memory, or nothing known."""
        return "oom-host" if isinstance(error, MemoryError) else None

    def peaks(
        self, entering: Matrix, cotangent: Matrix, weight: Matrix, copied_bytes: int, rows: int | None = None
    ) -> dict[str, Run]:
        """Runs with preallocated results; BLAS reads a transposed view without a copy."""
        whole = repeated(entering, rows), repeated(cotangent, rows), repeated(weight, rows and cotangent.shape[1])
        x, g, w = (array.astype(self.dtype, copy=False) for array in whole)
        value, flat, square = np.empty_like(g), np.empty_like(x), np.empty_like(w)
        source, target = np.ones(copied_bytes, np.uint8), np.zeros(copied_bytes, np.uint8)
        scalar, product = np.ones((1, 1), self.dtype), np.zeros((1, 1), self.dtype)

        def copy() -> Any:
            np.copyto(target, source)
            return target

        return {
            "current": lambda: np.matmul(x, w.T, out=value),
            "weight_gradient": lambda: np.matmul(g.T, x, out=square),
            "input_gradient": lambda: np.matmul(g, w, out=flat),
            "copy": copy,
            "call": lambda: np.matmul(scalar, scalar, out=product),
        }


class Session(backends.Session):
    """A network of NumPy functions on one problem."""

    def __init__(self, build: Build, variant: Variant, problem: Problem) -> None:
        dtype = problem.case.dtype
        self.layers = [(weight.astype(dtype), bias.astype(dtype)) for weight, bias in problem.layers()]
        self.network: Network = build(problem.case, self.layers, variant.built_as)
        self.problem = problem
        self.layout = layout = Layout(variant.order, variant.latency)
        self.input = layout.input(problem.input(0)).astype(dtype)
        self.cotangent = layout.cotangent(problem.cotangent(0)).astype(dtype)

    def load(self, which: int, cotangent: int) -> None:
        """Copy in place, so that a cache keyed on the array returns a stale answer and is caught."""
        self.input[...] = self.layout.input(self.problem.input(which))
        self.load_cotangent(cotangent)

    def load_cotangent(self, cotangent: int) -> None:
        """Copy in place."""
        self.cotangent[...] = self.layout.cotangent(self.problem.cotangent(cotangent))

    def inference(self) -> Any:
        """Spikes."""
        return self.network.forward(self.input)[0]

    def forward(self) -> Any:
        """Spikes and the values that the network keeps."""
        return self.network.forward(self.input)

    def backward(self, saved: Any) -> Any:
        """Gradients."""
        return self.network.backward(saved[1], self.cotangent)

    def train(self) -> Any:
        """Spikes and gradients."""
        spikes, saved = self.network.forward(self.input)
        return spikes, self.network.backward(saved, self.cotangent)

    def answer(self, spikes: Any, gradients: Any) -> Answer:
        """The answer in the harness's order. Raises Incorrect."""
        self.storage(spikes, gradients)
        if gradients is None:
            return Answer(self.layout.spikes(spikes))
        weights, biases, entering, *trained = gradients
        back = None if entering is None else self.layout.input_gradient(entering)
        return Answer(self.layout.spikes(spikes), weights, biases, back, *trained)

    def storage(self, spikes: Any, gradients: Any) -> list[NDArray[Any]]:
        """The arrays themselves. Raises Incorrect."""
        weights, biases, entering, *trained = gradients or ([], [], None)
        arrays = [spikes, *(weights or ()), *(biases or ()), *([] if entering is None else [entering])]
        arrays += [each for constants in trained for each in constants]
        return [require_type(each, np.ndarray) for each in arrays]

    def static_bytes(self) -> int:
        """Weights, biases, input and cotangent."""
        return self.input.nbytes + self.cotangent.nbytes + sum(w.nbytes + b.nbytes for w, b in self.layers)

    def provider(self) -> str:
        """NumPy."""
        return "numpy"
