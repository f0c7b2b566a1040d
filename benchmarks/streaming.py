"""Whether a long input in pieces, with the potential carried from piece to piece, takes as long as the whole.

    python -m benchmarks streaming
    python -m benchmarks streaming --neurons 512 --steps 500 --pieces 10

The kernel `cpu` computes a layer on the whole input in one call, and on each piece in a call of its own. One table has
spikes without gradients, as for a stream of events. The other has training: a backward pass after each call, with the
gradients of weight and bias added up, and the potential detached, as in truncated backpropagation through time.

A call takes some time however small its work is. So PyTorch's linear layer alone, without neurons, does the same. Its
time shows the price of a call of PyTorch. "a further piece" is the time that each piece after the first one adds to
the time of the whole.

All ways take turns in one process. Columns are medians over the turns; a ratio is the median of the ratios within a
turn.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import Any, NamedTuple, TypeAlias

import torch
from torch.nn.functional import linear

from benchmarks.outcome import show
from benchmarks.turn import TURN_S, warm
from snnbench.kernels import linear_lif, reuse_memory

COLUMNS = (
    *("N", "whole us", "pieces us", "ratio", "a further piece us"),
    *("linear alone: ratio", "linear alone: a further piece us"),
)
SETTINGS: dict[str, Any] = {"beta": 0.9, "threshold": 1.0, "kernel": "cpu"}


def main() -> int:
    """Every size in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--neurons", type=int, nargs="+", default=[16, 64, 256, 512, 2048])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--pieces", type=int, default=4)
    parser.add_argument("--turns", type=int, default=21)
    options = parser.parse_args()
    reuse_memory()
    work = f"T={options.steps}, B={options.batch}, float32, {torch.get_num_threads()} threads"
    for words, ways in (("Spikes", (spikes_of, products_of)), ("Training", (trained, trained_products))):
        rows = [row(neurons, options, *ways) for neurons in options.neurons]
        show(f"{words} of a layer in one call and in {options.pieces}, {work}", COLUMNS, rows)
    return 0


class Layer(NamedTuple):
    """A layer, its input, and the cotangent of its spikes."""

    inputs: torch.Tensor
    cotangent: torch.Tensor
    weight: torch.Tensor
    bias: torch.Tensor


Way: TypeAlias = Callable[[Layer, int], list[torch.Tensor]]
"""A way to compute a layer in so many pieces; it returns the output of each."""


def row(neurons: int, options: argparse.Namespace, run: Way, run_linear: Way) -> tuple[str, ...]:
    """The row of one size. Exits if the pieces have other spikes than the whole."""
    torch.manual_seed(1)
    shape = options.steps, options.batch, neurons
    weight = (torch.randn(neurons, neurons) * (0.9 / (0.1 * neurons) ** 0.5)).requires_grad_()
    bias = (0.05 * torch.randn(neurons)).requires_grad_()
    layer = Layer((torch.rand(shape) < 0.1).float(), torch.randn(shape), weight, bias)
    if not torch.equal(torch.cat(run(layer, options.pieces)), torch.cat(run(layer, 1))):
        raise SystemExit(f"N={neurons}: the spikes of the pieces differ from those of the whole")
    passes = [partial(way, layer, count) for way in (run, run_linear) for count in (1, options.pieces)]
    turns = [tuple(map(microseconds, passes)) for _ in range(options.turns)]
    whole, pieces = (median(turn[column] for turn in turns) for column in (0, 1))
    (ratio, further), (linear_ratio, linear_further) = (beside(turns, first, options.pieces) for first in (0, 2))
    return (
        str(neurons),
        f"{whole:.0f}",
        f"{pieces:.0f}",
        f"{ratio:.2f}",
        f"{further:.0f}",
        f"{linear_ratio:.2f}",
        f"{linear_further:.0f}",
    )


def beside(turns: Sequence[Sequence[float]], first: int, count: int) -> tuple[float, float]:
    """The ratio of `count` pieces to the whole, and what a further piece takes; the whole is in the column `first`."""
    ratios = median(turn[first + 1] / turn[first] for turn in turns)
    return ratios, median((turn[first + 1] - turn[first]) / max(count - 1, 1) for turn in turns)


def spikes_of(layer: Layer, count: int) -> list[torch.Tensor]:
    """The spikes of each piece."""
    potential, spikes = None, []
    with torch.no_grad():
        for piece in layer.inputs.chunk(count):
            fired, potential = linear_lif(
                piece, layer.weight, layer.bias, potential=potential, return_potential=True, **SETTINGS
            )
            spikes.append(fired)
    return spikes


def products_of(layer: Layer, count: int) -> list[torch.Tensor]:
    """The currents of each piece, by PyTorch's linear layer."""
    with torch.no_grad():
        return [linear(piece, layer.weight, layer.bias) for piece in layer.inputs.chunk(count)]


def trained(layer: Layer, count: int) -> list[torch.Tensor]:
    """The spikes of each piece, and the gradients of weight and bias in their `.grad`."""
    layer.weight.grad = layer.bias.grad = potential = None
    spikes = []
    for piece, cotangent in zip(layer.inputs.chunk(count), layer.cotangent.chunk(count), strict=True):
        fired, potential = linear_lif(
            piece, layer.weight, layer.bias, potential=potential, return_potential=True, **SETTINGS
        )
        fired.backward(cotangent)
        potential = potential.detach()
        spikes.append(fired.detach())
    return spikes


def trained_products(layer: Layer, count: int) -> list[torch.Tensor]:
    """The currents of each piece, and the gradients of weight and bias in their `.grad`, by PyTorch's linear layer."""
    layer.weight.grad = layer.bias.grad = None
    currents = []
    for piece, cotangent in zip(layer.inputs.chunk(count), layer.cotangent.chunk(count), strict=True):
        current = linear(piece, layer.weight, layer.bias)
        current.backward(cotangent)
        currents.append(current.detach())
    return currents


def microseconds(run: Callable[[], Any]) -> float:
    """Of one call, the mean of a turn."""
    warm(run)
    started, count = time.perf_counter(), 0
    while not count or time.perf_counter() - started < TURN_S:
        run()
        count += 1
    return (time.perf_counter() - started) / count * 1e6


if __name__ == "__main__":
    raise SystemExit(main())
