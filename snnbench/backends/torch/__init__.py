"""The backend for PyTorch on CPU and CUDA."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from snnbench import backends
from snnbench.adapter.declaration import Variant
from snnbench.adapter.refusal import Unavailable, Unsupported
from snnbench.backends import Build, Matrix, Run
from snnbench.backends.torch.arrays import unused_private_bytes
from snnbench.backends.torch.chunks import ChunkSession
from snnbench.backends.torch.errors import is_out_of_device_memory
from snnbench.backends.torch.floor_products import products
from snnbench.backends.torch.graph import Captured
from snnbench.backends.torch.imported import modules, stepped_network
from snnbench.backends.torch.modes import DYNAMO, compiled, graph_breaks, graphs
from snnbench.backends.torch.network import Network, Neuron, SteppedNeuron, Weights, trained
from snnbench.backends.torch.session import Session, refuse
from snnbench.cases.case import Case
from snnbench.cases.outcome import FailureKind
from snnbench.cases.problem import Problem
from snnbench.cases.windows import Convolution

__all__ = [
    "Backend",
    "Network",
    "Neuron",
    "Session",
    "SteppedNeuron",
    "Weights",
    "compiled",
    "modules",
    "stepped_network",
    "trained",
]


class Backend(backends.Backend):
    """PyTorch, set to the case's device and precision."""

    def __init__(self, case: Case) -> None:
        self.device, self.dtype = torch.device(case.device), getattr(torch, case.dtype)
        if self.device.type == "cpu" and case.precision != "ieee":
            raise Unsupported("tf32 exists on CUDA devices only")
        if self.device.type == "cuda" and not torch.cuda.is_available():
            raise Unavailable(_no_device())
        set_precision(case.precision)
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        torch.manual_seed(case.seed)
        self._breaks = 0

    def settings(self) -> dict[str, Any]:
        """Version, precision, threads and device in force."""
        name = torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else "cpu"
        compiler = {"graphs": self.compilations(), "graph_breaks": graph_breaks() - self._breaks}
        return {
            **(compiler if self.compilations() else {}),
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "device": name,
            "matmul_precision": torch.backends.cuda.matmul.fp32_precision,
            "convolution_precision": torch.backends.cudnn.conv.fp32_precision,
            "threads": torch.get_num_threads(),
            "interop_threads": torch.get_num_interop_threads(),
        }

    def refuse(self, problem: Problem, variant: Variant) -> None:
        """Refuse work before anything is built for it. Raises Unsupported."""
        refuse(problem, variant)

    def session(self, build: Build, variant: Variant, problem: Problem) -> Session:
        """Build the network, after resetting the compiler, which remembers the shapes of an earlier network."""
        if DYNAMO in sys.modules:
            torch.compiler.reset()
        self._breaks = graph_breaks()
        if problem.case.is_divided:
            from snnbench.backends.torch.ranks import RankSession

            return RankSession(build, variant, problem, self.device)
        if problem.case.chunk_steps:
            return ChunkSession(build, variant, problem, self.device)
        kind = Captured if variant.way == "cuda-graph" else Session
        return kind(build, variant, problem, self.device)

    def without_neurons(self, build: Build, variant: Variant) -> Build:
        """A build of the same network with the identity in place of each neuron."""
        return lambda case, weights, built_as: build(case, weights, built_as).without_neurons(variant.order)

    def compilations(self) -> int:
        """Graphs that torch.compile has made."""
        return graphs()

    def device_bytes(self) -> dict[str, int | None]:
        """The caching allocator's own count, and the driver's count of the whole device."""
        if self.device.type != "cuda":
            return {}
        free, total = torch.cuda.mem_get_info(self.device)
        in_use = torch.cuda.memory_allocated(self.device) + unused_private_bytes(torch.cuda.memory_snapshot())
        return {
            "peak": max(torch.cuda.max_memory_allocated(self.device), in_use),
            "in_use": in_use,
            "reserved": torch.cuda.memory_reserved(self.device),
            "used": total - free,
        }

    def reset_peak(self) -> bool:
        """Set the allocator's peak to the bytes in use now."""
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
        return True

    def failure_kind(self, error: BaseException) -> FailureKind | None:
        """Out of memory, or nothing known."""
        if is_out_of_device_memory(error) and self.device.type == "cuda":
            return "oom-device"
        return "oom-host" if isinstance(error, MemoryError) or "can't allocate memory" in str(error) else None

    def peaks(
        self, entering: Matrix, cotangent: Matrix, weight: Matrix, copied_bytes: int, rows: int | None = None
    ) -> dict[str, Run]:
        """Runs with operands on the device, which repeats rows itself.

        The copied numbers have four bytes: of so many single bytes, torch would copy even few with several threads.
        """

        def placed(array: Matrix, rows: int | None) -> torch.Tensor:
            tensor = torch.from_numpy(array).to(self.device, self.dtype)
            return tensor if rows is None else tensor.repeat(-(-rows // len(tensor)), 1)[:rows]

        x, g, w = placed(entering, rows), placed(cotangent, rows), placed(weight, rows and cotangent.shape[1])
        source = torch.ones(max(1, copied_bytes // 4), dtype=torch.float32, device=self.device)
        target = torch.zeros_like(source)
        scalar = torch.ones((1, 1), dtype=self.dtype, device=self.device)
        product = torch.zeros_like(scalar)
        return {
            **products(x, g, w),
            "copy": lambda: target.copy_(source),
            "call": lambda: torch.mm(scalar, scalar, out=product),
        }

    @contextmanager
    def on_one_thread(self) -> Iterator[None]:
        """Run what is called meanwhile on one thread of the CPU."""
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)

    def convolutions(self, kinds: Mapping[str, tuple[Convolution, tuple[int, ...]]], images: int) -> dict[str, Run]:
        """Runs of each kind of convolution on so many images: its value, and the gradients of its kernel and image."""
        runs: dict[str, Run] = {}
        for name, (operation, entering) in kinds.items():
            options = {"device": self.device, "dtype": self.dtype}
            x, g = torch.rand(images, *entering, **options), torch.randn(images, *operation.shape, **options)
            w = torch.randn(operation.parameters["weight"], **options)
            steps = operation.stride, operation.padding, operation.dilation
            conv = {1: torch.nn.functional.conv1d, 2: torch.nn.functional.conv2d}[len(operation.size)]
            back = torch.ops.aten.convolution_backward
            given = (None, *steps, False, [0] * len(operation.size), 1)
            runs[f"{name}.value"] = partial(conv, x, w, None, *steps)
            runs[f"{name}.kernel-gradient"] = partial(back, g, x, w, *given, [False, True, False])
            runs[f"{name}.image-gradient"] = partial(back, g, x, w, *given, [True, False, False])
        return runs


def set_precision(precision: str) -> None:
    """Set the precision of float32 products, "ieee" or "tf32", by the old and the new switches, which must agree.

    If only the new switches are set, the old ones raise when they are read, and torch's compiler reads them. When
    `torch.backends.cudnn.flags()` ends, it leaves the general switches in force.
    """
    tf32 = precision == "tf32"
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = tf32
    kinds = (torch.backends.cuda.matmul, torch.backends.cudnn.conv, torch.backends.cudnn.rnn)
    for settings in (torch.backends, torch.backends.cudnn, *kinds):
        settings.fp32_precision = precision


def _no_device() -> str:
    """Why torch sees no CUDA device, and what to do."""
    if torch.version.cuda is None:
        return f"torch {torch.__version__} is built without CUDA; install its CUDA build (unset UV_TORCH_BACKEND=cpu)"
    return (
        f"torch {torch.__version__} sees no CUDA device: its CUDA {torch.version.cuda} may need a newer NVIDIA driver "
        "(580 for CUDA 13), or another build: UV_TORCH_BACKEND=cu126"
    )
