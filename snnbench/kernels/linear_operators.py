"""The operators of linear_cpu.cpp, which PyTorch calls: compiled at first use, for this version of torch."""

import warnings
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from snnbench.adapter.refusal import Unavailable
from snnbench.kernels import buffers, compiler

SOURCE = Path(__file__).with_name("linear_cpu.cpp")
HEADER = SOURCE.with_suffix(".h")
"""What the operators and linear_cpu.c exchange."""


def are_compiled() -> bool:
    """Whether the operators could be compiled on this machine; if not, a warning says why."""
    try:
        operators()
    except Unavailable as error:
        _warn(str(error))
        return False
    return True


@cache
def _warn(reason: str) -> None:
    warnings.warn(f"linear_lif is slower here, by several calls of Python in a pass: {reason}", RuntimeWarning, 2)


def compiled() -> Path:
    """The library of the operators, compiled for this version of torch. Raises Unavailable."""
    folder, abi = Path(torch.__file__).parent, f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"
    options = abi, f"-I{folder / 'include'}", f"-L{folder / 'lib'}", "-ltorch_cpu", "-lc10"
    version = str(torch.__version__), str(torch.version.git_version)
    return compiler.cpp_library(SOURCE, [HEADER], options, version)


@cache
def operators() -> Any:
    """The operators of linear_cpu.cpp. Raises Unavailable."""
    torch.ops.load_library(compiled())
    library = torch.ops.snnbench
    buffers.join(library.linear_cpu_memory.default)
    names = ("linear_cpu", "linear_cpu_forward", "linear_cpu_backward")
    return SimpleNamespace(**{name: getattr(library, name).default for name in names})
