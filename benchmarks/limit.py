"""What bounds the layer's kernel on this CPU: the parts of its time beyond the bare products, for each size.

    python -m benchmarks limit                                   # N = 16 to 2048, T = 100, B = 16
    python -m benchmarks limit --neurons 1 --steps 1 --batch 1

A training pass with the gradients of weight, bias and inputs is timed as a user calls it, and inside of its two C
calls. In turns with it, in one process, these calls are timed with a product that does nothing, and the same without
the inputs' gradient. The floor is the three products by the faster of torch's libraries. Parts, each the median over
the turns of a difference of two times:

    outside     all but the C calls: autograd, the operators in C++, and memory
    neurons     the C calls without products and without the inputs' gradient
    phases      what the inputs' gradient adds to them: tasks of two phases in each stretch wait for each other
    products    the products in the C calls beyond the floor: one thread each, in stretches, by columns

For comparison, `empty` is a pass of a torch.autograd.Function in Python with the same tensors, which computes nothing,
after the products.
"""

import argparse
import ctypes
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.outcome import show
from benchmarks.turn import TURN_S, warm
from snnbench.backends.torch.floor_products import products
from snnbench.backends.torch.session import gradients_of
from snnbench.kernels import Neuron, buffers, compiler, linear_cpu, linear_lif, reuse_memory

NEURON = Neuron(0.9, 1.0)
NOTHING = Path(__file__).with_name("nothing.c")
TIMED = NOTHING.with_name("timed.c")
COLUMNS = (
    "N",
    "threads",
    "floor us",
    "pass us",
    "x floor",
    "outside us",
    "neurons us",
    "phases us",
    "products us",
    "empty us",
)


class Empty(torch.autograd.Function):  # type: ignore[misc]
    """What autograd itself costs in a pass of the layer: the memory of results, and no work."""

    @staticmethod
    def forward(ctx: Any, inputs: torch.Tensor, weight: torch.Tensor | None, *others: Any) -> torch.Tensor:
        """Spikes [T, B, N] without values."""
        ctx.save_for_backward(inputs, weight, *others)
        neurons = inputs.shape[2] if weight is None else len(weight)
        return buffers.empty((*inputs.shape[:2], neurons), inputs.dtype, inputs.device)

    @staticmethod
    def backward(ctx: Any, cotangent: torch.Tensor) -> Any:
        """Gradients without values."""
        return tuple(
            None if each is None else buffers.empty(tuple(each.shape), each.dtype, each.device)
            for each in ctx.saved_tensors
        )


def main() -> int:
    """Take every size apart."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--neurons", type=int, nargs="+", default=[16, 32, 64, 128, 256, 512, 1024, 2048])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--turns", type=int, default=21)
    options = parser.parse_args()
    if not linear_cpu.has_products():
        raise SystemExit("this build of torch does not export its products: the layer runs in the pipeline here")
    reuse_memory()
    rows = [taken_apart(neurons, options) for neurons in options.neurons]
    title = (
        f"The layer's training pass, T={options.steps}, B={options.batch}, float32, {torch.get_num_threads()} threads"
    )
    show(title, COLUMNS, rows)
    return 0


def taken_apart(neurons: int, options: argparse.Namespace) -> tuple[str, ...]:
    """The row of one size."""
    torch.manual_seed(1)
    shape = (options.steps, options.batch, neurons)
    inputs = (torch.rand(shape) < 0.1).float().requires_grad_()
    weight = (torch.randn(neurons, neurons) * (0.9 / (0.1 * neurons) ** 0.5)).requires_grad_()
    bias = (0.05 * torch.randn(neurons)).requires_grad_()
    cotangent = torch.randn(shape)
    kind = NEURON.reset, NEURON.detach_reset, NEURON.surrogate
    library = linear_cpu.loaded(*kind, torch.float32, torch.float32)

    def train(leaves: tuple[torch.Tensor, ...]) -> None:
        spikes = linear_lif(inputs, weight, bias, beta=NEURON.beta, threshold=NEURON.threshold, kernel="cpu")
        gradients_of(spikes, leaves, cotangent)

    runs = products(inputs.detach().view(-1, neurons), cotangent.view(-1, neurons), weight.detach())

    def floor() -> None:
        for run in runs.values():
            run()

    leaves = (weight, bias, inputs)

    def empty() -> None:
        spikes = Empty.apply(inputs, weight, bias, *[None] * 7)
        gradients_of(spikes, leaves, cotangent)

    names = ("floor", "pass", "calls", "empty", "idle", "idle, weights only")
    turns: dict[str, list[float]] = {name: [] for name in names}

    def measure() -> None:
        turns["floor"].append(seconds(floor))
        whole, inside = seconds_inside(lambda: train(leaves))
        turns["pass"].append(whole)
        turns["calls"].append(inside)
        turns["empty"].append(seconds(empty, floor))
        with without_products(library):
            turns["idle"].append(seconds_inside(lambda: train(leaves))[1])
            turns["idle, weights only"].append(seconds_inside(lambda: train(leaves[:2]))[1])

    for _ in range(options.turns + 1):
        measure()

    for ours in turns.values():
        del ours[0]  # the first turn warms
    parts = (
        difference(turns["pass"], turns["calls"]),
        median(turns["idle, weights only"]),
        difference(turns["idle"], turns["idle, weights only"]),
        difference(each_difference(turns["calls"], turns["idle"]), turns["floor"]),
        median(turns["empty"]),
    )
    ratio = median(ours / floor for ours, floor in zip(turns["pass"], turns["floor"], strict=True))
    threads = linear_cpu.threads(options.steps * options.batch, neurons, neurons, torch.get_num_threads(), 1)
    whole = f"{1e6 * median(turns['floor']):.0f}", f"{1e6 * median(turns['pass']):.0f}", f"{ratio:.2f}"
    return str(neurons), str(threads), *whole, *(f"{1e6 * part:.0f}" for part in parts)


def each_difference(longer: Sequence[float], shorter: Sequence[float]) -> list[float]:
    """The difference of two times within each turn."""
    return [a - b for a, b in zip(longer, shorter, strict=True)]


def difference(longer: Sequence[float], shorter: Sequence[float]) -> float:
    """The median of the differences within a turn."""
    return float(median(each_difference(longer, shorter)))


def seconds(run: Callable[[], None], before: Callable[[], None] = lambda: None) -> float:
    """Seconds of one run, the mean of a turn; `before` is called before each, outside the clock."""
    warm(run)
    spent, count, ends = 0.0, 0, time.perf_counter() + TURN_S
    while not count or time.perf_counter() < ends:
        before()
        started = time.perf_counter()
        run()
        spent += time.perf_counter() - started
        count += 1
    return spent / count


def seconds_inside(run: Callable[[], None]) -> tuple[float, float]:
    """Seconds of one run, and of these inside of the kernel's C calls, the means of a turn."""
    with clock() as spent_ns:
        warm(run)
        spent_ns()
        started, count = time.perf_counter(), 0
        while not count or time.perf_counter() - started < TURN_S:
            run()
            count += 1
        return (time.perf_counter() - started) / count, spent_ns() / 1e9 / count


@contextmanager
def clock() -> Iterator[Callable[[], int]]:
    """A clock around each C call of the kernel; it returns the nanoseconds since the last reading."""
    timed, functions = compiler.library(TIMED, {}), linear_cpu.functions
    timed.spent_ns.restype = ctypes.c_int64

    def timed_functions(library: Any) -> tuple[int, int]:
        timed.use(*map(ctypes.c_void_p, functions(library)))
        return linear_cpu.addresses(timed.timed_forward, timed.timed_backward)

    linear_cpu.functions = timed_functions
    linear_cpu._plans.cache_clear()
    try:
        yield timed.spent_ns
    finally:
        linear_cpu.functions = functions
        linear_cpu._plans.cache_clear()


@contextmanager
def without_products(library: Any) -> Iterator[None]:
    """The kernel with a product that does nothing."""
    nothing = compiler.library(NOTHING, {})
    linear_cpu.use(library, nothing.nothing, None)
    try:
        yield
    finally:
        linear_cpu.use(library, linear_cpu.product(torch.float32), linear_cpu.tile())
