"""The linear layer and its neuron on a CPU in one C call each way (linear_cpu.c), with the products of torch's BLAS.

A pass through pipeline.py has a call of Python for each stretch of time and each product, which takes longer than the
work of a small layer. Here a pass is one call, whose tasks take ranges of neurons through all stretches.

torch's library exports its BLAS on some platforms only, and formats of 16 bits have no product there: pipeline.py
computes these passes with torch.mm.
"""

import ctypes
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from snnbench.kernels import buffers, compiler, onednn
from snnbench.kernels.formula import C, surrogate
from snnbench.kernels.lif_cpu import BLOCK, FORMATS
from snnbench.kernels.neuron import Neuron
from snnbench.kernels.passes import Gradients, Layer, Wanted, state_dtype
from snnbench.kernels.stretches import kept_shape, stretch

SOURCE = Path(__file__).with_suffix(".c")
TEAM = SOURCE.with_name("team.h")
"""Threads that share tasks."""
TILES = SOURCE.with_name("tiles.h")
"""Products made of tiles."""
PRODUCTS = {torch.float32: "sgemm_", torch.float64: "dgemm_"}
TILE = "_ZN2at6native7cpublas6brgemmEllllllbPKfS3_Pfb"
"""torch's function at::native::cpublas::brgemm for float32: oneDNN's product of tiles. The name has its arguments."""
LIMIT = "MKL_Set_Num_Threads_Local"
"""torch's function that sets the number of threads of one thread's products."""
ONE_THREAD = 3_000_000
"""Floating-point operations of a product below which a second thread saves nothing: it must wake up first."""
LEAN = 5
"""A pass that keeps nothing has one thread in layers that are so many times as large: where a second one took
part, the peak of a pass was 0.2 MiB higher."""
NEURONS = 16
"""The fewest neurons of a thread."""
WHOLE = ("potential", "bfloat16")
"""Values that are kept of every step."""


class Plan(NamedTuple):
    """What passes of the same sizes share: `shape` (steps, batch, neurons), and `sizes` as C takes them.

    `saved` is the shape and format of the kept tensor. `scratch` is the shape of a stretch if currents need memory of
    their own.
    """

    shape: tuple[int, int, int]
    sizes: tuple[int, int, int, int, int]
    threads: int
    saved: tuple[tuple[int, ...], torch.dtype]
    scratch: tuple[int, int, int] | None


def plan(layer: Layer) -> Plan | None:
    """The plan of a pass that runs here; None for a pass of the pipeline."""
    inputs, weight = layer.inputs, layer.weight
    if layer.kernel_name != "cpu" or weight is None or inputs.dtype not in PRODUCTS:
        return None
    return _plan(inputs.shape, weight.shape[0], inputs.dtype, layer.keep, torch.get_num_threads())


@lru_cache(maxsize=256)
def _plan(entering: torch.Size, neurons: int, dtype: torch.dtype, keep: str, most_threads: int) -> Plan | None:
    steps, batch, inputs = entering
    if entering.numel() == 0 or neurons == 0 or not has_products():
        return None
    cpu, shape = torch.device("cpu"), (steps, batch, neurons)
    length = stretch(cpu, "cpu", batch, steps, True, keep)
    saved = kept_shape(cpu, "cpu", shape, True, keep, dtype)
    in_place = keep in WHOLE and saved[1] == dtype
    count = threads(steps * batch, inputs, neurons, most_threads, LEAN if keep == "nothing" else 1)
    sizes = steps, batch, inputs, neurons, length
    return Plan(shape, sizes, count, saved, None if in_place else (length, batch, neurons))


def forward(layer: Layer, plan: Plan) -> tuple[Tensor, Tensor, Tensor]:
    """Spikes [T, B, N], the potential after the last step [B, N] and the kept tensor."""
    inputs, weight, neuron, keep = layer.inputs, layer.weight, layer.neuron, layer.keep
    assert weight is not None
    dtype, device, bias = inputs.dtype, inputs.device, _bias(layer)
    saved = buffers.empty(*plan.saved, device)
    spikes = buffers.empty(plan.shape, dtype, device)
    last = inputs.new_empty(plan.shape[1:])
    scratch = None if plan.scratch is None else buffers.empty(plan.scratch, dtype, device)
    whole = keep in WHOLE
    loaded(neuron, dtype, saved.dtype if whole else dtype).linear_forward(
        *(inputs.data_ptr(), weight.data_ptr(), _pointer(bias), _pointer(layer.potential)),
        *(last.data_ptr(), spikes.data_ptr()),
        *(saved.data_ptr() if whole else None, saved.data_ptr() if keep == "nothing" else None, _pointer(scratch)),
        *plan.sizes,
        *(neuron.beta, neuron.threshold),
        plan.threads,
    )
    return spikes, last, saved


def backward(
    layer: Layer, plan: Plan, cotangent: Tensor, carried: Tensor | None, saved: Tensor, wanted: Wanted
) -> Gradients:
    """Gradients for `cotangent` [T, B, N] of the spikes and `carried` [B, N] of the last potential, zeros if None."""
    inputs, weight, neuron = layer.inputs, layer.weight, layer.neuron
    assert weight is not None
    steps, batch, entering, neurons, length = plan.sizes
    dtype, device = inputs.dtype, inputs.device
    again, bias = layer.keep == "nothing", _bias(layer)
    gradient = buffers.empty((length, batch, neurons), dtype, device)
    values = buffers.empty((length, batch, neurons), dtype, device) if again else None
    carried = None if carried is None else carried.to(dtype).contiguous()
    gradients = Gradients(inputs.new_empty((batch, neurons)))
    if wanted.input:
        gradients.input = buffers.empty((steps, batch, entering), dtype, device)
    if wanted.weight:
        gradients.weight = buffers.empty((neurons, entering), dtype, device)
    if wanted.bias:
        gradients.bias = inputs.new_empty(neurons)
    by_beta, by_threshold = (
        (inputs.new_empty(neurons), inputs.new_empty(neurons)) if wanted.parameters else (None, None)
    )
    loaded(neuron, dtype, dtype if again else saved.dtype).linear_backward(
        *(inputs.data_ptr(), weight.data_ptr(), _pointer(bias), _pointer(layer.potential)),
        *(cotangent.data_ptr(), None if again else saved.data_ptr(), saved.data_ptr() if again else None),
        *(_pointer(values), _pointer(carried), gradients.potential.data_ptr(), gradient.data_ptr()),
        *(_pointer(gradients.input), _pointer(gradients.weight), _pointer(gradients.bias)),
        *(_pointer(by_beta), _pointer(by_threshold)),
        *plan.sizes,
        *(neuron.beta, neuron.threshold, neuron.slope),
        plan.threads,
    )
    if by_beta is not None and by_threshold is not None:
        gradients.beta, gradients.threshold = by_beta.sum(), by_threshold.sum()
    return gradients


def threads(rows: int, entering: int, neurons: int, most: int, lean: int) -> int:
    """Threads of a pass over `rows` (steps times batch) of inputs: one for a small layer, else `most` or fewer."""
    return 1 if 2 * rows * entering * neurons < lean * ONE_THREAD else min(most, -(-neurons // NEURONS))


def _bias(layer: Layer) -> Tensor | None:
    """The bias [N] in the state's format. It may be a copy, which the caller holds while C reads it."""
    return None if layer.bias is None else layer.bias.to(state_dtype(layer.inputs.dtype)).contiguous()


def _pointer(tensor: Tensor | None) -> int | None:
    """The address of a contiguous tensor's numbers."""
    return None if tensor is None else tensor.data_ptr()


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


def loaded(neuron: Neuron, store: torch.dtype, keep: torch.dtype) -> Any:
    """The compiled layer of a kind of neuron, for currents in `store` and kept values in `keep`. Raises Unavailable."""
    return _loaded(neuron.reset, neuron.detach_reset, neuron.surrogate, store, keep)


@cache
def _loaded(reset: str, detach: bool, name: str, store: torch.dtype, keep: torch.dtype) -> Any:
    macros = {
        "STORE": FORMATS[store],
        "KEEP": FORMATS[keep],
        "RESET_ZERO": str(int(reset == "zero")),
        "DETACH": str(int(detach)),
        "SURROGATE": surrogate(name, C),
    }
    library = compiler.library(SOURCE, macros, BLOCK, TEAM, TILES)
    pointer, size, number, count = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double, ctypes.c_int
    library.linear_forward.argtypes = [*[pointer] * 9, *[size] * 5, *[number] * 2, count]
    library.linear_backward.argtypes = [*[pointer] * 16, *[size] * 5, *[number] * 3, count]
    library.use.argtypes = [pointer] * 3
    library.use.restype = library.linear_forward.restype = library.linear_backward.restype = None
    use(library, product(store), tile() if store == torch.float32 else None)
    return library
