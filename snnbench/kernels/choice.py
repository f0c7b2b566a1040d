"""Which kernels there are, which of them run where, and which is taken where nobody said."""

from functools import cache
from importlib import import_module
from typing import Any

import torch

from snnbench.adapter.refusal import Unavailable, Unsupported

KERNELS = ("torch", "cpu", "triton", "cuda")


def automatic(device: torch.device, dtype: torch.dtype) -> str:
    """The fastest kernel that runs here: its name is what a user can print, and what a record says."""
    for name in {"cpu": ("cpu",), "cuda": ("cuda", "triton")}.get(device.type, ()):
        try:
            require(name, device, dtype)
        except (Unavailable, Unsupported):
            continue
        return name
    return "torch"


def module(name: str) -> Any:
    """The module of a kernel; imported here, at first use."""
    return import_module(f"snnbench.kernels.lif_{name}")


@cache
def require(name: str, device: torch.device, dtype: torch.dtype) -> None:
    """Raise Unsupported where a kernel is not made for this device or format, Unavailable where this machine lacks what
    the kernel needs; the message says what to do.
    """
    if name == "torch":
        return
    if name == "cpu":
        if device.type != "cpu":
            raise Unsupported(f"the kernel 'cpu' runs on a CPU only, not on {device.type}")
        module(name).ready()
        return
    if device.type != "cuda":
        raise Unsupported(f"the kernel {name!r} runs on CUDA devices only, not on {device.type}")
    if dtype == torch.float64:
        raise Unsupported(f"the kernel {name!r} has no float64; use the kernel 'torch'")
    package, project = {"triton": ("triton", "triton"), "cuda": ("cuda.core", "cuda-core")}[name]
    try:
        import_module(package)
    except ImportError as error:
        raise Unavailable(f"the kernel {name!r} needs the package {project}: {error}") from error
