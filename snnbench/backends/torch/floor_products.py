"""The three matrix products of a linear layer by the faster of torch's libraries: the floor is made of them."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from snnbench.kernels import onednn

Run = Callable[[], Any]
TRIES = 3
"""The fewest times that each library computes a product before the faster one is chosen: the first one may compile."""
TRIED_NS = 10_000_000
"""Both libraries compute in turn at least for so long: threads and CPUs that sleep slow the first products down."""
_faster: dict[tuple[str, torch.Size, torch.Size], int] = {}
"""The place of the faster library of two, by product and sizes: a process chooses once."""


def products(entering: Tensor, cotangent: Tensor, weight: Tensor) -> dict[str, Run]:
    """Runs of `entering` [M, K] `weight`^T, `cotangent`^T `entering` and `cotangent` [M, N] `weight` [N, K], by name.

    torch's own product has a preallocated result, and BLAS reads a transposed view without a copy. Where oneDNN may be
    faster, one that reads operands in its own order is tried, too.
    """
    rows, square = torch.empty_like(entering), torch.empty_like(weight)
    currents = rows if weight.shape[0] == weight.shape[1] else cotangent.new_empty(cotangent.shape)
    runs: dict[str, Run] = {
        "current": partial(torch.mm, entering, weight.T, out=currents),
        "weight_gradient": partial(torch.mm, cotangent.T, entering, out=square),
        "input_gradient": partial(torch.mm, cotangent, weight, out=rows),
    }
    if weight.device.type != "cpu" or weight.dtype != torch.float32 or not onednn.is_faster():
        return runs
    by_columns = [matrix.T.contiguous() for matrix in (cotangent, entering, weight)]
    others = {
        "current": partial(onednn.linear, entering, weight),
        "weight_gradient": partial(onednn.linear, by_columns[0], by_columns[1]),
        "input_gradient": partial(onednn.linear, cotangent, by_columns[2]),
    }
    sizes = entering.shape, weight.shape
    for name, run in runs.items():
        both = run, others[name]
        if (key := (name, *sizes)) not in _faster:
            _faster[key] = faster(both)
        runs[name] = both[_faster[key]]
    return runs


def faster(runs: Sequence[Run], clock: Callable[[], int] = time.perf_counter_ns) -> int:
    """The place of the run whose fastest time is the least; they take turns."""
    durations: list[list[int]] = [[] for _ in runs]
    began = clock()
    while len(durations[0]) < TRIES or clock() - began < TRIED_NS:
        for run, taken in zip(runs, durations, strict=True):
            started = clock()
            run()
            taken.append(clock() - started)
    fastest = [min(taken) for taken in durations]
    return fastest.index(min(fastest))
