"""An emulator of CUDA kernels on the CPU: g++ compiles lif_cuda.cu with cuda_on_cpu.hpp, many kernels per library."""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from snnbench.kernels import lif_cuda
from snnbench.kernels.lif_cuda import Build

SHIM = Path(__file__).with_name("cuda_on_cpu.hpp")


def needed(tool: str) -> str:
    """The tool's path. If the tool is missing, the test is skipped; in CI it fails."""
    if path := shutil.which(tool):
        return path
    if os.environ.get("CI"):
        pytest.fail(f"no {tool} on the PATH")
    pytest.skip(f"no {tool} on the PATH")


def compile_builds(builds: Iterable[Build], library: Path) -> dict[Build, str]:
    """Compile these kernels into one library, each in its own namespace. Returns build -> function name."""
    text, names = [f'#include "{SHIM}"'], {}
    for build in dict.fromkeys(builds):
        name = names[build] = f"{build.name}_{len(names)}"
        macros = {macro: name if value == build.name else value for macro, value in build.macros}
        text += [f"namespace of_{name} {{", *(f"#define {macro} {value}" for macro, value in macros.items())]
        text += [f'#include "{lif_cuda.SOURCE}"', *(f"#undef {macro}" for macro in (*macros, "INLINE")), "}"]
        text += [f"LAUNCH(of_{name}, {name})"]
    source = library.with_suffix(".cpp")
    source.write_text("\n".join(text))
    flags = ["-O1", "-std=c++17", "-ffp-contract=off", "-shared", "-fPIC"]
    subprocess.run([needed("g++"), *flags, str(source), "-o", str(library)], check=True)
    return names


class Emulator:
    """Runs kernels on the CPU, thread after thread. Compiles unknown kernels first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kernels: dict[Build, tuple[ctypes.CDLL, str]] = {}
        needed("g++")

    def compile(self, builds: Iterable[Build]) -> None:
        """Compile all of them with one call of g++."""
        library = self.folder / f"kernels{len(self.kernels)}.so"
        self.open(library, compile_builds(builds, library))

    def open(self, library: Path, names: Mapping[Build, str]) -> None:
        """Load a library of `compile_builds`."""
        loaded = ctypes.CDLL(str(library))
        self.kernels |= {build: (loaded, name) for build, name in names.items()}

    def launch(self, build: Build, blocks: int, device: Any, *arguments: Any) -> None:
        """Take the place of lif_cuda.launch."""
        if build not in self.kernels:
            self.compile([build])
        values = [ctypes.c_void_p(value) if isinstance(value, int) else value for value in arguments]
        pointers = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        self.run(build, blocks, build.threads, ctypes.addressof(pointers))

    def run(self, build: Build, blocks: int, threads: int, arguments: int) -> None:
        """Run all threads of all blocks. `arguments` is the address of an array of pointers, as a driver gets it."""
        library, name = self.kernels[build]
        library[f"launch_{name}"](blocks, threads, ctypes.c_void_p(arguments))
