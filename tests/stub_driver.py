"""A program that launches kernels through the real cuda-core on stub_libcuda.c; the emulator runs each kernel.

    LD_LIBRARY_PATH=FOLDER python -m tests.stub_driver < PICKLE     PICKLE: arguments of `main`

Everything between `lif_cuda.forward` and the driver is real: the choice of the kernel, its machine code, cuda-core. The
machine code comes from the cache on disk, because NVRTC crashes beside the stub. Prints its observations as JSON.
"""

import contextlib
import ctypes
import json
import pickle
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from snnbench.kernels import lif_cuda
from snnbench.kernels.lif_cuda import BACKWARD, FORWARD, LARGE, SMALL, Build
from tests import contract, oracle
from tests.contract import PAIRS, Kernels
from tests.emulator import Emulator
from tests.oracle import FORMATS, NEURONS

CAPABILITY = (9, 0)
ARCH = "sm_90"
NEURON = NEURONS[0]
FLOAT = torch.float32
ALL_SUMS, NO_SUMS = (True, True, True), (False, False, False)
STREAM = 0x5EA3
"""The handle of a non-default stream."""
LAUNCH_FAILED = 719
PARAMETERS = {
    "lif_forward": [*[ctypes.c_void_p] * 5, ctypes.c_int, ctypes.c_longlong, *[ctypes.c_float] * 3],
    "lif_backward": [*[ctypes.c_void_p] * 8, ctypes.c_int, ctypes.c_longlong, *[ctypes.c_float] * 4],
}

Load = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
Dimensions = ctypes.POINTER(ctypes.c_uint)
Run = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_int, ctypes.c_char_p, Dimensions, Dimensions, ctypes.c_void_p, ctypes.c_void_p
)


def builds() -> list[Build]:
    """Every kernel that `main` launches: without NVRTC no other can be compiled."""

    def forward(stored: torch.dtype, saved: torch.dtype | None, biased: bool, size: int = SMALL) -> Build:
        return lif_cuda.forward_build(NEURON.reset, stored, saved, biased, FORWARD[size])

    def backward(stored: torch.dtype, saved: torch.dtype, sums: tuple[bool, ...], size: int = SMALL) -> Build:
        strip = BACKWARD[SMALL] if size == SMALL else lif_cuda.backward_strip(1 << 20, sums.count(False))
        return lif_cuda.backward_build(NEURON.reset, NEURON.detach_reset, NEURON.surrogate, stored, saved, sums, strip)

    return [
        *(forward(stored, saved, True) for stored, saved in PAIRS),
        *(forward(stored, None, True) for stored in FORMATS),
        *(forward(FLOAT, saved, False) for saved in (FLOAT, torch.bfloat16)),
        *(backward(stored, saved, ALL_SUMS) for stored, saved in PAIRS),
        backward(FLOAT, FLOAT, NO_SUMS),
        forward(FLOAT, FLOAT, True, LARGE),
        backward(FLOAT, FLOAT, ALL_SUMS, LARGE),
    ]


@dataclass(slots=True)
class Driver:
    """The driver behind the stub: loaded modules, requested launches, and the emulator."""

    emulator: Emulator
    code_of: dict[bytes, Build]
    modules: list[Build] = field(default_factory=list)
    launches: list[dict[str, Any]] = field(default_factory=list)
    error: int = 0

    def load(self, code: int) -> int:
        """The number of the module with the machine code at this address; -1 if no build has it."""
        for machine_code, build in self.code_of.items():
            if ctypes.string_at(code, size_of_elf(code)) == machine_code:
                self.modules.append(build)
                return len(self.modules) - 1
        return -1

    def run(self, module: int, name: bytes, grid: Any, block: Any, stream: int | None, arguments: int) -> int:
        """Run a function of a module, and note its arguments. Returns the driver's error."""
        build, kernel = self.modules[module], name.decode()
        pointers = ctypes.cast(arguments, ctypes.POINTER(ctypes.c_void_p))
        values = [
            ctypes.cast(pointers[index], ctypes.POINTER(kind))[0] for index, kind in enumerate(PARAMETERS[kernel])
        ]
        launch = {"kernel": kernel, "right_module": build.name == kernel, "threads": build.threads}
        launch |= {"grid": grid[:3], "block": block[:3], "stream": stream, "arguments": values}
        self.launches.append(launch)
        if not self.error:
            self.emulator.run(build, grid[0], block[0], arguments)
        return self.error


def size_of_elf(address: int) -> int:
    """The size of a 64-bit ELF file in bytes: it ends with its program headers or its section headers."""
    header = ctypes.string_at(address, 64)

    def number(offset: int, size: int) -> int:
        return int.from_bytes(header[offset : offset + size], "little")

    programs = number(0x20, 8) + number(0x36, 2) * number(0x38, 2)
    return max(programs, number(0x28, 8) + number(0x3A, 2) * number(0x3C, 2))


class Streams:
    """Replaces torch's CUDA functions, because torch may be a CPU build: one device, one current stream."""

    def __init__(self) -> None:
        self.handle = 0
        torch.cuda.device = lambda device: contextlib.nullcontext()
        torch.cuda.current_device = lambda: 0
        torch.cuda.get_device_capability = lambda device=None: CAPABILITY
        torch.cuda.current_stream = lambda device=None: self

    @property
    def cuda_stream(self) -> int:
        """The current stream's handle, 0 for the default one."""
        return self.handle


def not_compiled(text: str, build: Build, arch: str, log: Any = None) -> bytes:
    """Takes the place of NVRTC."""
    raise AssertionError(f"builds() lacks {build}")


def passes(columns: int) -> tuple[dict[str, list[Any]], Callable[[], None]]:
    """Both passes on new tensors: the arguments that their kernels must get, and a call that runs them."""
    inputs = oracle.problem(4, columns)
    current, cotangent, potential, carried = inputs.current, inputs.cotangent, inputs.start, inputs.carried
    spikes, saved, gradient = (torch.empty_like(current) for _ in range(3))
    numbers = [4, columns, oracle.float32(NEURON.beta), oracle.float32(NEURON.threshold)]
    expected = {
        "lif_forward": [
            *(tensor.data_ptr() for tensor in (current, potential, spikes, saved)),
            None,
            *numbers,
            oracle.float32(0.0),
        ],
        "lif_backward": [
            *(tensor.data_ptr() for tensor in (cotangent, saved, carried, gradient)),
            *(None, None, None, None),
            *(*numbers, oracle.float32(NEURON.slope), oracle.float32(0.0)),
        ],
    }

    def run() -> None:
        lif_cuda.forward(current, potential, spikes, saved, NEURON)
        lif_cuda.backward(cotangent, saved, carried, gradient, NEURON)

    return expected, run


def main(library: Path, names: dict[Build, str]) -> dict[str, Any]:
    """Run the contract and single launches. `library` and `names` come from emulator.compile_builds."""
    from cuda.core._utils.cuda_utils import CUDAError

    emulator = Emulator(library.parent)
    emulator.open(library, names)
    code_of = {lif_cuda.cubin(build, ARCH): build for build in names}
    lif_cuda._compile = not_compiled
    driver, streams = Driver(emulator, code_of), Streams()
    load, run = Load(driver.load), Run(driver.run)
    ctypes.CDLL("libcuda.so.1").stub_call(load, run)

    kernels = Kernels(lif_cuda)
    contract.check_forward(kernels, NEURON, True)
    contract.check_backward(kernels, NEURON)
    contract.check_both_passes(kernels, NEURON)
    contract.check_size(replace(kernels, columns=150), NEURON)  # three blocks
    choose, lif_cuda.size = lif_cuda.size, lambda columns: LARGE
    contract.check_size(replace(kernels, columns=36), NEURON)
    lif_cuda.size = choose
    observed: dict[str, Any] = {"contract": driver.launches[:], "modules": len(driver.modules)}

    expected, both = passes(70)
    for stream in (0, STREAM):
        streams.handle, before = stream, len(driver.launches)
        both()
        observed[f"stream {stream}"] = driver.launches[before:]
    observed["expected arguments"] = expected
    observed["modules after more launches"] = len(driver.modules)

    thread = threading.Thread(target=both)
    before = len(driver.launches)
    thread.start()
    thread.join()
    observed["launches of a new thread"] = len(driver.launches) - before

    driver.error = LAUNCH_FAILED
    try:
        both()
    except CUDAError as error:
        observed["error"] = str(error)
    return observed


if __name__ == "__main__":
    print(json.dumps(main(**pickle.load(sys.stdin.buffer))))
