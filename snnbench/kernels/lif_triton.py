"""The neuron of neuron.py in Triton: one pass over time forward, one backward, for NVIDIA and AMD.

A program owns a strip of columns for all steps and keeps their potential (backward: dL/dv) in registers. A plain loop
over time has one load in flight and is bound by the latency of memory. So ROWS steps are loaded at once, then computed.

Saved for backward: u - threshold, whose sign bit is the spike. Bytes per neuron-step with float32 storage: 12 forward
(current, spikes, saved; 8 without saved) and 12 backward (cotangent, saved, gradient); 10 each with saved in 16 bits; 6
each with everything in 16 bits. `saved` may overwrite the current and the gradient may overwrite `saved`.

Speed on an H100: benchmarks/README.md.
"""

import linecache
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from snnbench.kernels.formula import TRITON, surrogate
from snnbench.kernels.neuron import Neuron
from snnbench.kernels.sums import NO_SUMS, Sums


def forward(
    current: Tensor,
    potential: Tensor,
    spikes: Tensor,
    saved: Tensor | None,
    neuron: Neuron,
    bias: Tensor | None = None,
    alpha: float = 0.0,
) -> None:
    """Run `neuron` over `current` [T, M] from `potential` [M] float32, which is v after the last step on return.

    It writes `spikes` [T, M], 0 or 1, and, unless None, `saved` [T, M] = u - threshold, which may be `current` itself.
    All are contiguous, in float32, bfloat16 or float16. `bias` [M] float32 is added to the current in every step.
    With `alpha` the current charges a synaptic current, which is 0 at first and keeps this share of itself per step.
    """
    _launch(
        _forward,
        (current, potential, spikes, saved, bias),
        (neuron.beta, neuron.threshold, alpha),
        HAS_SYNAPSE=alpha != 0.0,
        RESETS_TO_ZERO=neuron.reset == "zero",
        enable_fp_fusion=False,  # product and sum round separately, so that spikes are those of the eager loop
    )


def backward(
    cotangent: Tensor,
    saved: Tensor,
    carried: Tensor,
    gradient: Tensor,
    neuron: Neuron,
    sums: Sums = NO_SUMS,
    alpha: float = 0.0,
) -> None:
    """Write `gradient` = dL/dx [T, M] for `cotangent` = dL/ds [T, M] and `saved`; it may be `saved` itself.

    `carried` [M] float32 is dL/dv after the last step on entry and dL/dv before the first step on return. Each column's
    dL/dbias, dL/dbeta and dL/dthreshold is added to the `sums`, in float32.
    """
    _launch(
        _backward,
        (cotangent, saved, carried, gradient, *sums),
        (neuron.beta, neuron.threshold, neuron.slope, alpha),
        HAS_SYNAPSE=alpha != 0.0,
        SURROGATE=surrogate_function(neuron.surrogate),
        RESETS_TO_ZERO=neuron.reset == "zero",
        DETACHED=neuron.detach_reset,
        enable_fp_fusion=True,
    )


def _launch(kernel: Any, tensors: tuple[Tensor | None, ...], numbers: tuple[float, ...], **options: Any) -> None:
    """Start a kernel over all columns of the first tensor, [T, M] or [T, B, N], if it has a step and a column."""
    assert tensors[0] is not None
    if not tensors[0].numel():
        return
    steps = tensors[0].shape[0]
    columns = tensors[0].numel() // steps
    strip = strip_for(columns)
    options |= {"ROWS": strip.rows, "WIDTH": strip.width, "num_warps": strip.warps}
    with torch.cuda.device_of(tensors[0]):
        kernel[(triton.cdiv(columns, strip.width),)](*tensors, steps, columns, *numbers, **options)


@dataclass(frozen=True, slots=True)
class Strip:
    """The work of one program: `width` columns, shared by `warps` of 32 threads, `rows` steps loaded at once."""

    width: int
    warps: int
    rows: int


def strip_for(columns: int) -> Strip:
    """The strip for so many columns. Few columns cannot fill the device, so each has many steps in flight."""
    if columns <= 16 * 1024:
        return Strip(width=32, warps=1, rows=16)
    if columns <= 128 * 1024:
        return Strip(width=128, warps=2, rows=16)
    return Strip(width=512, warps=4, rows=8)


@cache
def surrogate_function(name: str) -> Any:
    """The named formula of surrogate.py as a Triton function of (distance, slope, threshold).

    Triton reads the source of the functions that it compiles, so the text is put into linecache for inspect.
    """
    source = f"def {name}(distance, slope, threshold):\n    return {surrogate(name, TRITON)}\n"
    file = f"<snnbench surrogate {name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names: dict[str, Any] = {"tl": tl, "__name__": __name__}
    exec(compile(source, file, "exec"), names)
    return triton.jit(names[name])


@triton.jit(do_not_specialize=["steps"])
def _forward(  # type: ignore[no-untyped-def]
    current,
    potential,
    spikes,
    saved,
    bias,
    steps,
    columns,
    beta,
    threshold,
    alpha,
    HAS_SYNAPSE: tl.constexpr,
    RESETS_TO_ZERO: tl.constexpr,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    column = tl.cast(tl.program_id(0), tl.int64) * WIDTH + tl.arange(0, WIDTH)
    inside = column < columns
    v = tl.load(potential + column, inside, 0.0)
    if bias is not None:
        added = tl.load(bias + column, inside, 0.0)
    synapse = tl.full((WIDTH,), 0.0, tl.float32)
    ahead, offset = column, column
    for first in range(0, steps, ROWS):
        rows = ()
        for i in tl.static_range(ROWS):
            rows += (tl.load(current + ahead, inside & (first + i < steps), 0.0),)  # type: ignore[assignment]
            ahead += columns
        for i in tl.static_range(ROWS):
            exists = first + i < steps
            x = tl.cast(rows[i], tl.float32)
            if bias is not None:
                x += added
            if HAS_SYNAPSE:
                synapse = alpha * synapse + x
                x = synapse
            u = beta * v + x
            fires = u >= threshold
            distance = u - threshold
            tl.store(spikes + offset, tl.where(fires, 1.0, 0.0), inside & exists)
            if saved is not None:
                tl.store(saved + offset, distance, inside & exists)
            v = tl.where(exists, tl.where(fires, 0.0 if RESETS_TO_ZERO else distance, u), v)
            offset += columns
    tl.store(potential + column, v, inside)


@triton.jit(do_not_specialize=["steps"])
def _backward(  # type: ignore[no-untyped-def]
    cotangent,
    saved,
    carried,
    gradient,
    bias_sum,
    beta_sum,
    threshold_sum,
    start,
    steps,
    columns,
    beta,
    threshold,
    slope,
    alpha,
    SURROGATE: tl.constexpr,
    HAS_SYNAPSE: tl.constexpr,
    RESETS_TO_ZERO: tl.constexpr,
    DETACHED: tl.constexpr,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    column = tl.cast(tl.program_id(0), tl.int64) * WIDTH + tl.arange(0, WIDTH)
    inside = column < columns
    gv = tl.load(carried + column, inside, 0.0)
    later = tl.full((WIDTH,), 0.0, tl.float32)  # gu of the step after, which meets this step's v in dL/dbeta
    by_bias, by_beta, by_threshold, synapse = later, later, later, later
    offset = tl.cast(steps - 1, tl.int64) * columns + column
    ahead = offset
    for done in range(0, steps, ROWS):
        rows = ()
        for i in tl.static_range(ROWS):
            exists = inside & (done + i < steps)
            gs, distance = tl.load(cotangent + ahead, exists, 0.0), tl.load(saved + ahead, exists, 0.0)
            rows += ((gs, distance),)  # type: ignore[assignment]
            ahead -= columns
        for i in tl.static_range(ROWS):
            exists = done + i < steps
            distance = tl.cast(rows[i][1], tl.float32)
            fired = tl.cast(distance, tl.int32, bitcast=True) >= 0  # -0.0 is a small negative number, rounded
            sg = SURROGATE(distance, slope, threshold)

            bracket = tl.cast(rows[i][0], tl.float32)
            if not DETACHED:
                bracket -= (distance + threshold if RESETS_TO_ZERO else threshold) * gv
            gu = bracket * sg + (tl.where(fired, 0.0, gv) if RESETS_TO_ZERO else gv)
            gi = gu
            if HAS_SYNAPSE:
                gi += alpha * synapse
                synapse = tl.where(exists, gi, synapse)
            tl.store(gradient + offset, gi, inside & exists)

            if bias_sum is not None:
                by_bias += tl.where(exists, gi, 0.0)
            if beta_sum is not None:
                v = tl.where(fired, 0.0 if RESETS_TO_ZERO else distance, distance + threshold)
                by_beta += later * v  # of a row that does not exist v is 0: it was loaded as 0 from the threshold
                later = tl.where(exists, gu, later)
            if threshold_sum is not None:
                moved = -bracket * sg if RESETS_TO_ZERO else -bracket * sg - tl.where(fired, gv, 0.0)
                by_threshold += tl.where(exists, moved, 0.0)
            gv = tl.where(exists, beta * gu, gv)
            offset -= columns
    tl.store(carried + column, gv, inside)
    if bias_sum is not None:
        tl.store(bias_sum + column, tl.load(bias_sum + column, inside, 0.0) + by_bias, inside)
    if beta_sum is not None:
        by_beta += later * tl.load(start + column, inside, 0.0)
        tl.store(beta_sum + column, tl.load(beta_sum + column, inside, 0.0) + by_beta, inside)
    if threshold_sum is not None:
        tl.store(threshold_sum + column, tl.load(threshold_sum + column, inside, 0.0) + by_threshold, inside)
