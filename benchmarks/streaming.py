"""Whether a long input in pieces, with the potential carried from piece to piece, takes as long as the whole.

    python -m benchmarks streaming
    python -m benchmarks streaming --neurons 512 --steps 500 --pieces 10

The kernel `cpu` computes the spikes of a layer without gradients, as for a stream of events: of the whole input in one
call, and of each piece in a call of its own. The two take turns in one process. Columns are medians over the turns; the
ratio is the median of the ratios within a turn.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

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
    with torch.no_grad():
        rows = [row(neurons, options) for neurons in options.neurons]
    title = (
        f"Spikes of a layer in one call and in {options.pieces}, T={options.steps}, B={options.batch}, float32, "
        f"{torch.get_num_threads()} threads"
    )
    show(title, ("N", "whole us", "pieces us", "ratio"), rows)
    return 0


def row(neurons: int, options: argparse.Namespace) -> tuple[str, ...]:
    """The row of one size."""
    torch.manual_seed(1)
    inputs = (torch.rand(options.steps, options.batch, neurons) < 0.1).float()
    weight = torch.randn(neurons, neurons) * (0.9 / (0.1 * neurons) ** 0.5)
    bias = 0.05 * torch.randn(neurons)
    pieces = inputs.chunk(options.pieces)

    def whole() -> list[torch.Tensor]:
        return [linear_lif(inputs, weight, bias, **SETTINGS)]

    def in_pieces() -> list[torch.Tensor]:
        potential, spikes = None, []
        for piece in pieces:
            fired, potential = linear_lif(piece, weight, bias, potential=potential, return_potential=True, **SETTINGS)
            spikes.append(fired)
        return spikes

    if not torch.equal(torch.cat(in_pieces()), *whole()):
        raise SystemExit(f"N={neurons}: the spikes of the pieces differ from those of the whole")
    turns = [(microseconds(whole), microseconds(in_pieces)) for _ in range(options.turns)]
    one_call, several = (median(times) for times in zip(*turns, strict=True))
    ratio = median(later / first for first, later in turns)
    return str(neurons), f"{one_call:.0f}", f"{several:.0f}", f"{ratio:.2f}"


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
