"""The CUDA kernels of lif_cuda.cu: compiled by NVRTC for the neuron and formats at hand, launched on torch's stream.

Compiling takes some tenths of a second at a kernel's first use, and the machine code is kept on disk. It needs the
package cuda-core with NVRTC, but no CUDA toolkit and no compiler. A launch neither allocates nor waits, so a CUDA graph
can capture it after the kernel's first run.

Saved for backward: u - threshold, whose sign bit is the spike. Bytes per neuron-step with float32 storage: 12 forward
(8 without `saved`) and 12 backward; 10 each with `saved` in 16 bits; 6 each with everything in 16 bits.

Speed on an H100: benchmarks/README.md.
"""

import ctypes
import hashlib
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

from snnbench.adapter.refusal import Unavailable
from snnbench.files import write_whole
from snnbench.kernels.compiler import cache_folder
from snnbench.kernels.formula import C, surrogate
from snnbench.kernels.neuron import Neuron
from snnbench.kernels.sums import NO_SUMS, Sums

SOURCE = Path(__file__).with_suffix(".cu")
FORMATS = {torch.float32: "float", torch.bfloat16: "bfloat16", torch.float16: "float16"}
OPTIONS = {"std": "c++17", "fma": True, "prec_div": False, "ftz": False}
"""The forward pass has no division and explicit roundings; the surrogate's division may be off by two units."""
LEGACY_STREAM = 1
"""CUDA's handle of the default stream; torch's handle of it is 0."""


def forward(
    current: Tensor,
    potential: Tensor,
    spikes: Tensor,
    saved: Tensor | None,
    neuron: Neuron,
    bias: Tensor | None = None,
    alpha: float = 0.0,
) -> None:
    """Run all steps of `current`: write `spikes` [T, M] and `saved` [T, M] (u - threshold), advance `potential` [M].

    `saved` may be `current` itself. With `alpha` the current charges a synaptic current, which is 0 at first and keeps
    this share of itself per step. Contract: kernels/__init__.py. Raises Unavailable.
    """
    if not current.numel():
        return
    columns = columns_of(current)
    strip = FORWARD[size(columns)].fitting(columns, (current, spikes, saved))
    kept, has_synapse = None if saved is None else saved.dtype, alpha != 0.0
    build = forward_build(neuron.reset, current.dtype, kept, bias is not None, strip, has_synapse)
    values = arguments(current, potential, spikes, saved, bias, numbers=(neuron.beta, neuron.threshold, alpha))
    launch(build, strip.blocks(columns), current.device, *values)


def backward(
    cotangent: Tensor,
    saved: Tensor,
    carried: Tensor,
    gradient: Tensor,
    neuron: Neuron,
    sums: Sums = NO_SUMS,
    alpha: float = 0.0,
) -> None:
    """Run all steps backwards: write `gradient` [T, M], update `carried` [M], add to the `sums` that are not None.

    `gradient` may be `saved` itself. Contract: kernels/__init__.py. Raises Unavailable.
    """
    if not cotangent.numel():
        return
    columns = columns_of(cotangent)
    summed = (sums.bias is not None, sums.beta is not None, sums.threshold is not None)
    strip = backward_strip(columns, summed.count(False)).fitting(columns, (cotangent, saved, gradient))
    kind = neuron.reset, neuron.detach_reset, neuron.surrogate
    build = backward_build(*kind, cotangent.dtype, saved.dtype, summed, strip, alpha != 0.0)
    numbers = (neuron.beta, neuron.threshold, neuron.slope, alpha)
    values = arguments(cotangent, saved, carried, gradient, *sums, numbers=numbers)
    launch(build, strip.blocks(columns), cotangent.device, *values)


def arguments(first: Tensor, *others: Tensor | None, numbers: tuple[float, ...]) -> list[Any]:
    """A kernel's arguments: the tensors' addresses, steps and columns of the first, and numbers in float32."""
    sizes = ctypes.c_int(first.shape[0]), ctypes.c_longlong(columns_of(first))
    return [*map(address, (first, *others)), *sizes, *map(ctypes.c_float, numbers)]


def columns_of(first: Tensor) -> int:
    """The number of columns M of a tensor with a step: [T, M], or [T, B, N] with M = B * N."""
    columns: int = first.numel() // first.shape[0]
    return columns


def address(tensor: Tensor | None) -> int:
    """The address of a tensor's data; 0 for None."""
    return 0 if tensor is None else tensor.data_ptr()


@dataclass(frozen=True, slots=True)
class Strip:
    """The work of a thread: `vector` neighbouring columns, `rows` steps at once; `threads` make a block."""

    vector: int
    rows: int
    threads: int

    def fitting(self, columns: int, tensors: tuple[Tensor | None, ...]) -> "Strip":
        """This strip, or one with one column per thread if rows or tensors do not start on a multiple of the vector."""
        if self.vector == 1:
            return self
        for tensor in tensors:
            if tensor is not None and (columns % self.vector or address(tensor) % (self.vector * tensor.itemsize)):
                return Strip(1, self.rows * self.vector, self.threads)
        return self

    def blocks(self, columns: int) -> int:
        """The number of blocks for so many columns."""
        return -(-columns // (self.vector * self.threads))


SMALL, MEDIUM, LARGE = range(3)
FORWARD = (Strip(vector=1, rows=32, threads=64), Strip(2, 8, 128), Strip(4, 4, 128))
BACKWARD = (Strip(vector=1, rows=16, threads=64), Strip(1, 8, 128), Strip(4, 4, 128))
"""Strips by size. Few columns cannot fill the device, so each has many steps in flight; many columns have wide loads.
Two batches of rows of each array must fit into registers: the backward pass has two arrays and so fewer rows."""


def backward_strip(columns: int, sums_left_out: int) -> Strip:
    """The strip of a backward pass. All three sums for four columns leave registers for half of the rows."""
    strip = BACKWARD[size(columns)]
    return strip if sums_left_out or strip.vector == 1 else replace(strip, rows=strip.rows // 2)


def size(columns: int) -> int:
    """SMALL, MEDIUM or LARGE."""
    return SMALL if columns <= 16 * 1024 else MEDIUM if columns <= 128 * 1024 else LARGE


@dataclass(frozen=True, slots=True)
class Build:
    """A kernel to compile: the name of its function, the threads of its blocks, and its macros."""

    name: str
    threads: int
    macros: tuple[tuple[str, str], ...]


@cache
def forward_build(
    reset: str,
    stored: torch.dtype,
    saved: torch.dtype | None,
    biased: bool,
    strip: Strip,
    has_synapse: bool = False,
) -> Build:
    """The forward kernel of a kind of neuron; `saved` is None if nothing is kept."""
    flags = {"RESETS_TO_ZERO": reset == "zero", "HAS_BIAS": biased, "KEEPS": saved is not None}
    flags["HAS_SYNAPSE"] = has_synapse
    return _build("FORWARD", stored, saved or stored, strip, flags)


@cache
def backward_build(
    reset: str,
    detach_reset: bool,
    surrogate_name: str,
    stored: torch.dtype,
    saved: torch.dtype,
    sums: tuple[bool, ...],
    strip: Strip,
    has_synapse: bool = False,
) -> Build:
    """The backward kernel of a kind of neuron; `sums` says which of the sums of bias, beta and threshold it has.

    The parameters are all that its source depends on, and so the key of the cache.
    """
    flags = {"RESETS_TO_ZERO": reset == "zero", "DETACHED": detach_reset, "HAS_SYNAPSE": has_synapse}
    flags |= zip(("SUMS_BIAS", "SUMS_BETA", "SUMS_THRESHOLD"), sums, strict=True)
    return _build("BACKWARD", stored, saved, strip, flags, SURROGATE=surrogate(surrogate_name, C))


def _build(
    direction: str, stored: torch.dtype, saved: torch.dtype, strip: Strip, flags: dict[str, bool], **texts: str
) -> Build:
    for dtype in (stored, saved):
        if dtype not in FORMATS:
            raise ValueError(f"{dtype}: the kernel 'cuda' takes {', '.join(str(one) for one in FORMATS)}")
    name = f"lif_{direction.lower()}"
    numbers = {"VECTOR": strip.vector, "ROWS": strip.rows, "THREADS": strip.threads, **flags}
    texts |= {direction: name, "STORED": FORMATS[stored], "KEPT": FORMATS[saved]}
    return Build(name, strip.threads, (*texts.items(), *((macro, str(int(value))) for macro, value in numbers.items())))


def launch(build: Build, blocks: int, device: torch.device, *arguments: Any) -> None:
    """Start the kernel on torch's current stream of the device. Addresses are ints, numbers ctypes values."""
    with torch.cuda.device(device):
        index = torch.cuda.current_device()
        _nvrtc_version()  # raises Unavailable, unlike the next line
        from cuda.core import Device, LaunchConfig
        from cuda.core import launch as start

        Device(index).set_current()  # in a thread that is new to CUDA, such as autograd's, torch may not have done so
        kernel = _kernel(build, _arch(index))
        stream = _stream(torch.cuda.current_stream(index).cuda_stream or LEGACY_STREAM)
        start(stream, LaunchConfig(grid=blocks, block=build.threads), kernel, *arguments)


@lru_cache(maxsize=128)
def _stream(handle: int) -> Any:
    """cuda-core's object for a stream. Making one takes 7 us, more than the rest of a launch. A launch reads only its
    handle, so the object stays valid if CUDA gives the handle of a destroyed stream to a new one."""
    from cuda.core import Stream

    return Stream.from_handle(handle)


@cache
def _arch(index: int) -> str:
    return "sm_{}{}".format(*torch.cuda.get_device_capability(index))


@cache
def _kernel(build: Build, arch: str) -> Any:
    code = cubin(build, arch)
    from cuda.core import ObjectCode

    return ObjectCode.from_cubin(code).get_kernel(build.name)


def cubin(build: Build, arch: str) -> bytes:
    """Machine code for `arch`, such as sm_90: from the cache on disk, or compiled and put there. Needs no GPU.

    The file's name is a hash of all its inputs: text, macros, options, architecture and compiler.
    """
    text = SOURCE.read_text(encoding="utf-8")
    made_of = repr((text, build, sorted(OPTIONS.items()), _nvrtc_version()))
    path = cache_folder() / f"{build.name}-{arch}-{hashlib.sha256(made_of.encode()).hexdigest()[:20]}.cubin"
    with suppress(OSError):
        return path.read_bytes()
    code = _compile(text, build, arch)
    with suppress(OSError):  # a cache that cannot be written costs time, not the result
        write_whole(path, code)
    return code


def _compile(text: str, build: Build, arch: str, log: IO[str] | None = None) -> bytes:
    """Machine code from NVRTC; its compiler and assembler report to `log`."""
    from cuda.core import Program, ProgramOptions

    options = ProgramOptions(name=SOURCE.name, arch=arch, define_macro=list(build.macros), **OPTIONS)
    return bytes(Program(text, "c++", options).compile("cubin", logs=log).code)


@cache
def _nvrtc_version() -> tuple[int, int]:
    advice = "pip install 'cuda-core[cu13]', or use the kernel 'triton'"
    try:
        import cuda.core  # noqa: F401
        from cuda.bindings import nvrtc

        _, major, minor = nvrtc.nvrtcVersion()
    except ImportError as error:
        raise Unavailable(f"no cuda-core in this Python ({error}): {advice}") from error
    except RuntimeError as error:  # the loader of NVRTC raises RuntimeError, too
        raise Unavailable(f"no NVRTC in this Python: {advice}") from error
    return int(major), int(minor)
