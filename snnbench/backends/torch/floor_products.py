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
TRIED_FLOPS, FEWEST_TRIED = 2**31, 512
"""A long product is tried on its first rows, as many as take about so many FLOPs, but not fewer: 10 ms of two cores."""
_faster: dict[tuple[str, torch.Size, torch.Size], int] = {}
"""The place of the faster library of two, by product and sizes: a process chooses once."""


def products(entering: Tensor, cotangent: Tensor, weight: Tensor) -> dict[str, Run]:
    """Runs of `entering` [M, K] `weight`^T, `cotangent`^T `entering` and `cotangent` [M, N] `weight` [N, K], by name.

    torch's own product has a preallocated result, and BLAS reads a transposed view without a copy. Where oneDNN may be
    faster, one that reads operands in its own order is tried, too, on the first rows of a long product.
    """
    runs = _of_torch(entering, cotangent, weight)
    if weight.device.type != "cpu" or weight.dtype != torch.float32 or not onednn.is_faster():
        return runs
    others = _of_onednn(entering, cotangent, weight)
    rows = max(FEWEST_TRIED, TRIED_FLOPS // (2 * weight.numel()))
    few = entering[:rows], cotangent[:rows], weight
    sizes = entering.shape, weight.shape
    for name, run in runs.items():
        if (key := (name, *sizes)) not in _faster:
            _faster[key] = faster((_of_torch(*few)[name], _of_onednn(*few)[name]))
        runs[name] = (run, others[name])[_faster[key]]
    return runs


def _of_torch(entering: Tensor, cotangent: Tensor, weight: Tensor) -> dict[str, Run]:
    rows, square = torch.empty_like(entering), torch.empty_like(weight)
    currents = rows if weight.shape[0] == weight.shape[1] else cotangent.new_empty(cotangent.shape)
    return {
        "current": partial(torch.mm, entering, weight.T, out=currents),
        "weight_gradient": partial(torch.mm, cotangent.T, entering, out=square),
        "input_gradient": partial(torch.mm, cotangent, weight, out=rows),
    }


def _of_onednn(entering: Tensor, cotangent: Tensor, weight: Tensor) -> dict[str, Run]:
    return {
        "current": partial(onednn.linear, entering, weight),
        "weight_gradient": partial(onednn.linear, cotangent.T.contiguous(), entering.T.contiguous()),
        "input_gradient": partial(onednn.linear, cotangent, weight.T.contiguous()),
    }


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
