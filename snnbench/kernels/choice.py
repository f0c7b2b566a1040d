"""The choice of a kernel: the names of all kernels, their requirements, and the default."""

from functools import cache
from importlib import import_module
from typing import Any

import torch

from snnbench.adapter.refusal import Unavailable, Unsupported

KERNELS = ("torch", "cpu", "event", "triton", "cuda")


def automatic(device: torch.device, dtype: torch.dtype) -> str:
    """The name of the fastest kernel that runs on this device and format."""
    for name in {"cpu": ("cpu",), "cuda": ("cuda", "triton")}.get(device.type, ()):
        try:
            require(name, device, dtype)
        except (Unavailable, Unsupported):
            continue
        return name
    return "torch"


@cache
def module(name: str) -> Any:
    """The module of a kernel, imported at first use."""
    return import_module(f"snnbench.kernels.lif_{'cpu' if name == 'event' else name}")


@cache
def require(name: str, device: torch.device, dtype: torch.dtype, at_full_speed: bool = False) -> None:
    """Raise Unsupported if a kernel does not support this device or format, and Unavailable if this machine lacks a
    requirement of the kernel, or of its full speed; the message says what to do.
    """
    if name == "torch":
        return
    if name in ("cpu", "event"):
        if device.type != "cpu":
            raise Unsupported(f"the kernel {name!r} runs on a CPU only, not on {device.type}")
        if name == "event" and dtype != torch.float32:
            raise Unsupported(f"the kernel 'event' has float32 only, not {dtype}; use the kernel 'cpu'")
        module(name).ready()
        if at_full_speed or name == "event":
            linear_cpu = import_module("snnbench.kernels.linear_cpu")
            if name == "event" and not linear_cpu.has_products():
                raise Unavailable(
                    "the kernel 'event' needs torch's own products, which its library here does not export"
                )
            linear_cpu.ready(dtype)
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
