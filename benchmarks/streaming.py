"""Whether a long input in pieces, with the potential carried from piece to piece, takes as long as the whole.

    python -m benchmarks streaming
    python -m benchmarks streaming --neurons 512 --steps 500 --pieces 10

The kernel `cpu` computes a layer on the whole input in one call, and on each piece in a call of its own. One table has
spikes without gradients, as for a stream of events. The other has training: a backward pass after each call, with the
gradients of weight and bias added up, and the potential detached, as in truncated backpropagation through time. The two
ways take turns in one process. Columns are medians over the turns; the ratio is the median of the ratios within a turn.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any, NamedTuple

import torch

from benchmarks.outcome import show
from benchmarks.turn import TURN_S, warm
from snnbench.kernels import linear_lif, reuse_memory

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
    for words, run in (("Spikes", spikes_of), ("Training", trained)):
        rows = [row(neurons, options, run) for neurons in options.neurons]
        show(
            f"{words} of a layer in one call and in {options.pieces}, {work}",
            ("N", "whole us", "pieces us", "ratio"),
            rows,
        )
    return 0


class Layer(NamedTuple):
    """A layer, its input, and the cotangent of its spikes."""

    inputs: torch.Tensor
    cotangent: torch.Tensor
    weight: torch.Tensor
    bias: torch.Tensor


def row(neurons: int, options: argparse.Namespace, run: Callable[[Layer, int], list[torch.Tensor]]) -> tuple[str, ...]:
    """The row of one size, by `run(layer, number of pieces)`. Exits if the pieces have other spikes than the whole."""
    torch.manual_seed(1)
    shape = options.steps, options.batch, neurons
    weight = (torch.randn(neurons, neurons) * (0.9 / (0.1 * neurons) ** 0.5)).requires_grad_()
    bias = (0.05 * torch.randn(neurons)).requires_grad_()
    layer = Layer((torch.rand(shape) < 0.1).float(), torch.randn(shape), weight, bias)
    whole, in_pieces = partial(run, layer, 1), partial(run, layer, options.pieces)
    if not torch.equal(torch.cat(in_pieces()), torch.cat(whole())):
        raise SystemExit(f"N={neurons}: the spikes of the pieces differ from those of the whole")
    turns = [(microseconds(whole), microseconds(in_pieces)) for _ in range(options.turns)]
    one_call, several = (median(times) for times in zip(*turns, strict=True))
    ratio = median(later / first for first, later in turns)
    return str(neurons), f"{one_call:.0f}", f"{several:.0f}", f"{ratio:.2f}"


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
