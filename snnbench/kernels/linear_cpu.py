"""The linear layer and its neuron on a CPU in one C call each way (linear_cpu.c), with the products of torch's BLAS.

A pass through pipeline.py has a call of Python for each stretch of time and each product, which takes longer than the
work of a small layer. Here a pass is one call, in which a thread takes a range of neurons through all stretches.

torch's library exports its BLAS on some platforms only, and formats of 16 bits have no product there: pipeline.py
computes these passes with torch.mm.
"""

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from snnbench.kernels import buffers, compiler
from snnbench.kernels.formula import C, surrogate
from snnbench.kernels.lif_cpu import BLOCK, FORMATS
from snnbench.kernels.neuron import Neuron
from snnbench.kernels.passes import Gradients, Layer, Wanted, state_dtype

SOURCE = Path(__file__).with_suffix(".c")
PRODUCTS = {torch.float32: "sgemm_", torch.float64: "dgemm_"}
LIMIT = "MKL_Set_Num_Threads_Local"
"""torch's function that sets the number of threads of one thread's products."""
ONE_THREAD = 8_000_000
"""Floating-point operations of a product below which a second thread saves nothing: it must wake up first."""
NEURONS = 16
"""The fewest neurons of a thread."""


def serves(layer: Layer) -> bool:
    """Whether a pass runs here, and not in the pipeline."""
    inputs, weight = layer.inputs, layer.weight
    if layer.kernel_name != "cpu" or weight is None or inputs.dtype not in PRODUCTS:
        return False
    return inputs.numel() > 0 and weight.shape[0] > 0 and has_products()


def forward(layer: Layer, length: int, saved: Tensor) -> tuple[Tensor, Tensor]:
    """Spikes [T, B, N] and the potential after the last step [B, N], in stretches of `length` steps.

    It writes `saved`, as pipeline.py describes it.
    """
    inputs, weight, keep = layer.inputs, layer.weight, layer.keep
    assert weight is not None
    steps, batch, neurons = layer.shape
    dtype, bias = inputs.dtype, _bias(layer)
    spikes = buffers.empty(layer.shape, dtype, inputs.device)
    last = inputs.new_empty((batch, neurons))
    whole = keep in ("potential", "bfloat16")
    scratch = None
    if not whole or saved.dtype != dtype:
        scratch = buffers.empty((length, batch, neurons), dtype, inputs.device)
    loaded(layer.neuron, dtype, saved.dtype if whole else dtype).linear_forward(
        *(inputs.data_ptr(), weight.data_ptr(), _pointer(bias), _pointer(layer.potential)),
        *(last.data_ptr(), spikes.data_ptr()),
        *(saved.data_ptr() if whole else None, saved.data_ptr() if keep == "nothing" else None, _pointer(scratch)),
        *(steps, batch, inputs.shape[2], neurons, length),
        *(layer.neuron.beta, layer.neuron.threshold),
        threads(steps * batch, inputs.shape[2], neurons),
    )
    return spikes, last


def backward(
    layer: Layer, length: int, cotangent: Tensor, carried: Tensor | None, saved: Tensor, wanted: Wanted
) -> Gradients:
    """Gradients for `cotangent` [T, B, N] of the spikes and `carried` [B, N] of the last potential, zeros if None."""
    inputs, weight, neuron = layer.inputs, layer.weight, layer.neuron
    assert weight is not None
    (steps, batch, neurons), entering, dtype, device = layer.shape, inputs.shape[2], inputs.dtype, inputs.device
    count = threads(steps * batch, entering, neurons)
    turns = 2 if wanted.input and count > 1 and length < steps else 1
    again, bias = layer.keep == "nothing", _bias(layer)
    gradient = buffers.empty((turns, length, batch, neurons), dtype, device)
    values = buffers.empty((length, batch, neurons), dtype, device) if again else None
    carried = None if carried is None else carried.to(dtype).contiguous()
    gradients = Gradients(inputs.new_empty((batch, neurons)))
    if wanted.input:
        gradients.input = buffers.empty((steps, batch, entering), dtype, device)
    if wanted.weight:
        gradients.weight = buffers.empty((neurons, entering), dtype, device)
    if wanted.bias:
        gradients.bias = inputs.new_empty(neurons)
    sums = [inputs.new_empty(neurons) if wanted.parameters else None for _ in range(2)]
    loaded(neuron, dtype, dtype if again else saved.dtype).linear_backward(
        *(inputs.data_ptr(), weight.data_ptr(), _pointer(bias), _pointer(layer.potential)),
        *(cotangent.data_ptr(), None if again else saved.data_ptr(), saved.data_ptr() if again else None),
        *map(_pointer, (values, carried, gradients.potential, gradient)),
        *map(_pointer, (gradients.input, gradients.weight, gradients.bias)),
        *map(_pointer, sums),
        *(steps, batch, entering, neurons, length),
        *(neuron.beta, neuron.threshold, neuron.slope),
        *(turns, count),
    )
    gradients.beta, gradients.threshold = (None if each is None else each.sum() for each in sums)
    return gradients


def threads(rows: int, entering: int, neurons: int) -> int:
    """Threads of a pass over `rows` (steps times batch) of inputs: one for a small layer."""
    most = 1 if 2 * rows * entering * neurons < ONE_THREAD else torch.get_num_threads()
    return min(most, -(-neurons // NEURONS))


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


def use(library: Any, function: Any) -> None:
    """Let a compiled layer compute its products by `function`, with the arguments of BLAS's ?gemm."""
    library.use(ctypes.cast(function, ctypes.c_void_p), ctypes.cast(getattr(_blas(), LIMIT), ctypes.c_void_p))


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
    library = compiler.library(SOURCE, macros, BLOCK)
    pointer, size, number, count = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double, ctypes.c_int
    library.linear_forward.argtypes = [*[pointer] * 9, *[size] * 5, *[number] * 2, count]
    library.linear_backward.argtypes = [*[pointer] * 16, *[size] * 5, *[number] * 3, count, count]
    library.use.argtypes = [pointer, pointer]
    library.use.restype = library.linear_forward.restype = library.linear_backward.restype = None
    use(library, product(store))
    return library
