"""The linear layer and its neuron on a CPU in one C call each way (linear_cpu.c), with the products of torch's BLAS.

A pass through pipeline.py has a call of Python for each stretch of time and each product, which takes longer than the
work of a small layer. Here a pass is one call, whose tasks take ranges of neurons through all stretches. C++ makes this
call, and gives autograd the gradients (linear_cpu.cpp). Python makes the plan that passes of one kind share.

torch's library exports its BLAS on some platforms only, formats of 16 bits have no product there, and a machine may
have no C++ compiler: pipeline.py computes these passes with torch.mm.
"""

import ctypes
import os
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from snnbench.kernels import compiler, linear_operators, onednn
from snnbench.kernels.formula import C, surrogate
from snnbench.kernels.lif_cpu import BLOCK, FORMATS
from snnbench.kernels.neuron import Neuron, Reset
from snnbench.kernels.passes import Gradients, Layer, Wanted
from snnbench.kernels.stretches import kept_shape, stretch

SOURCE = Path(__file__).with_suffix(".c")
TEAM = SOURCE.with_name("team.h")
"""Threads that share tasks."""
TILES = SOURCE.with_name("tiles.h")
"""Products made of tiles."""
EVENTS = SOURCE.with_name("events.h")
"""Products made of the inputs that are not 0."""
KERNELS = ("cpu", "event")
"""Kernels whose passes run here: with all inputs, and with those that are not 0."""
PRODUCTS = {torch.float32: "sgemm_", torch.float64: "dgemm_"}
TILE = "_ZN2at6native7cpublas6brgemmEllllllbPKfS3_Pfb"
"""torch's function at::native::cpublas::brgemm for float32: oneDNN's product of tiles. The name has its arguments."""
LIMIT = "MKL_Set_Num_Threads_Local"
"""torch's function that sets the number of threads of one thread's products."""
ONE_THREAD = 4_000_000
"""Floating-point operations of a product below which a pass has one thread. A second one saves little, and beside a
busy process it costs time."""
LONG = 8_000_000
"""Operations from which on a thread may have few neurons."""
LEAN = 4
"""A pass that keeps nothing has one thread in layers that are so many times as large: where a second one took
part, the peak of a pass was 0.2 MiB higher."""
NEURONS = 32
"""The fewest neurons of a thread, and half of them in a long product: narrow products are slow."""
WHOLE = ("potential", "bfloat16")
"""Values that are kept of every step."""
IMPORTED_BY = os.getpid()
"""The process that imported this module. In a child, after a fork, OpenMP has no threads."""
HOW = {"": 0, "whole": 1, "nothing": 2}
"""The constants KEEP_... of linear_cpu.h."""


class Sizes(ctypes.Structure):
    """sizes_t of linear_cpu.h; C++ sets beta and threshold."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("steps", "batch", "inputs", "neurons", "length", "threads", "sparse")),
        *((name, ctypes.c_double) for name in ("beta", "threshold", "slope")),
    )


class Contents(ctypes.Structure):
    """plan_t of linear_cpu.h."""

    _fields_ = (
        ("forward", ctypes.c_void_p),
        ("backward", ctypes.c_void_p),
        ("sizes", Sizes),
        ("keep", ctypes.c_int64),
        ("is_half", ctypes.c_int64),
    )


class Plan(NamedTuple):
    """What passes of the same sizes share: the number of threads, and plan_t of linear_cpu.h in a tensor of bytes."""

    threads: int
    contents: Tensor


class Plans(NamedTuple):
    """The plan of a pass that keeps values for its gradients, and of one without gradients."""

    training: Plan
    inference: Plan


def plans(inputs: Tensor, weight: Tensor | None, neuron: Neuron, keep: str, kernel_name: str) -> Plans | None:
    """The plans of passes that run here, with one of KEEPS for gradients; None for passes of the pipeline."""
    if kernel_name not in KERNELS or weight is None or inputs.dtype not in PRODUCTS:
        return None
    kind = neuron.reset, neuron.detach_reset, neuron.surrogate, neuron.slope
    return _plans(inputs.shape, weight.shape[0], inputs.dtype, keep, kind, kernel_name, torch.get_num_threads())


@lru_cache(maxsize=256)
def _plans(
    entering: torch.Size,
    neurons: int,
    dtype: torch.dtype,
    keep: str,
    kind: tuple[Reset, bool, str, float],
    kernel_name: str,
    most_threads: int,
) -> Plans | None:
    steps, batch, inputs = entering
    if entering.numel() == 0 or neurons == 0 or not has_products() or not linear_operators.are_compiled():
        return None
    cpu, (reset, detach, surrogate_name, slope) = torch.device("cpu"), kind
    storage = kept_shape(cpu, kernel_name, (steps, batch, neurons), True, keep, dtype)[1] if keep in WHOLE else dtype
    both = functions(loaded(reset, detach, surrogate_name, dtype, storage))

    def plan(keep: str) -> Plan:
        length = stretch(cpu, kernel_name, batch, steps, True, keep)
        count = threads(steps * batch, inputs, neurons, most_threads, LEAN if keep == "nothing" else 1)
        sizes = Sizes(steps, batch, inputs, neurons, length, count, kernel_name == "event", 0.0, 0.0, slope)
        contents = Contents(*both, sizes, HOW["whole" if keep in WHOLE else keep], storage != dtype)
        return Plan(count, torch.frombuffer(bytearray(contents), dtype=torch.uint8))

    return Plans(training=plan(keep), inference=plan(""))


def apply(tensors: Sequence[Tensor | None], neuron: Neuron, plans: Plans) -> tuple[Tensor, Tensor]:
    """Spikes [T, B, N] and the potential after the last step [B, N], with their gradients where they are required.

    `tensors` are inputs, weight, bias, potential, and the learned beta and threshold.
    """
    result: tuple[Tensor, Tensor] = linear_operators.operators().linear_cpu(
        *tensors, neuron.beta, neuron.threshold, plans.training.contents, plans.inference.contents
    )
    return result


def forward(layer: Layer, plans: Plans) -> tuple[Tensor, Tensor, Tensor]:
    """Spikes [T, B, N], the potential after the last step [B, N] and the kept tensor, empty if nothing is kept."""
    neuron, plan = layer.neuron, plans.training if layer.keep else plans.inference
    result: tuple[Tensor, Tensor, Tensor] = linear_operators.operators().linear_cpu_forward(
        *layer[:4], neuron.beta, neuron.threshold, plan.contents
    )
    return result


def backward(
    layer: Layer, plans: Plans, cotangent: Tensor, carried: Tensor | None, saved: Tensor, wanted: Wanted
) -> Gradients:
    """Gradients for `cotangent` [T, B, N] of the spikes and `carried` [B, N] of the last potential, zeros if None."""
    neuron, results = layer.neuron, [wanted.input, wanted.weight, wanted.bias, wanted.parameters]
    return Gradients(
        *linear_operators.operators().linear_cpu_backward(
            *layer[:4], cotangent, carried, saved, results, neuron.beta, neuron.threshold, plans.training.contents
        )
    )


def threads(rows: int, entering: int, neurons: int, most: int, lean: int) -> int:
    """Threads of a pass over `rows` (steps times batch) of inputs: one for a small layer, else `most` or fewer."""
    work = 2 * rows * entering * neurons
    if work < lean * ONE_THREAD:
        return 1
    return min(most, -(-neurons // (NEURONS if work < LONG else NEURONS // 2)))


def ready(dtype: torch.dtype) -> None:
    """Raise Unavailable if this machine could run the layer in one call, but lacks a requirement of it."""
    if dtype in PRODUCTS and has_products():
        linear_operators.operators()


def has_products() -> bool:
    """Whether torch's library on this machine exports its products."""
    return _blas() is not None


@cache
def _blas() -> Any:
    """torch's library with the functions of PRODUCTS and LIMIT; None if they are not exported."""
    for path in sorted((Path(torch.__file__).parent / "lib").glob("libtorch_cpu.*")):
        try:
            library = ctypes.CDLL(str(path))
        except OSError:
            continue
        if all(hasattr(library, name) for name in (*PRODUCTS.values(), LIMIT)):
            return library
    return None


def product(dtype: torch.dtype) -> Any:
    """torch's own function for matrix products in this format."""
    return getattr(_blas(), PRODUCTS[dtype])


def tile() -> Any:
    """torch's function for products of tiles, where it is faster than its BLAS; else None."""
    return getattr(_blas(), TILE, None) if onednn.is_faster() else None


def use(library: Any, function: Any, tile: Any = None) -> None:
    """Let a compiled layer compute its products by `function`, with the arguments of BLAS's ?gemm, or from tiles."""
    functions = function, getattr(_blas(), LIMIT), tile
    library.use(*(None if each is None else ctypes.cast(each, ctypes.c_void_p) for each in functions))


def functions(library: Any) -> tuple[int, int]:
    """The addresses of a compiled layer's forward and backward pass."""
    return addresses(library.linear_forward, library.linear_backward)


def addresses(forward: Any, backward: Any) -> tuple[int, int]:
    """The addresses of two functions."""
    first, second = (ctypes.cast(each, ctypes.c_void_p).value for each in (forward, backward))
    assert first is not None and second is not None
    return first, second


@cache
def loaded(reset: Reset, detach: bool, name: str, store: torch.dtype, keep: torch.dtype) -> Any:
    """The compiled layer of a kind of neuron with the surrogate `name`, for currents in `store`, kept values in `keep`.

    Raises Unavailable.
    """
    macros = {
        "STORE": FORMATS[store],
        "KEEP": FORMATS[keep],
        "RESET_ZERO": str(int(reset == "zero")),
        "DETACH": str(int(detach)),
        "SURROGATE": surrogate(name, C),
    }
    library = compiler.library(SOURCE, macros, BLOCK, linear_operators.HEADER, TEAM, TILES, EVENTS)
    library.use.argtypes = [ctypes.c_void_p] * 3
    library.use.restype = None
    library.imported_by(ctypes.c_int64(IMPORTED_BY))
    use(library, product(store), tile() if store == torch.float32 else None)
    return library
