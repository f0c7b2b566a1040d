"""What a training pass of the kernel `cuda` asks of the host: launches, allocations and microseconds, without a GPU.

    python -m benchmarks launches

A counter stands in for the kernel's launch, and all tensors lie on the CPU, too small to take time. So the time is that
of the host: of Python, of autograd, of torch's operators. Columns:

    launches      what a GPU would start: the kernel, and torch's operators that compute or fill something
    allocations   tensors with new memory
    pass          microseconds of the host, forward and backward, with gradients by the harness's call of autograd
    operators     of these, torch's operators that launch, called alone one after the other
    autograd      of these, a torch.autograd.Function with the same tensors that does nothing
    Python        the rest: checks, views, allocations, and the arguments of the kernel

Each is the median over turns in one process.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from statistics import median
from typing import Any, TypeAlias
from unittest import mock

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from benchmarks.limit import Empty
from benchmarks.outcome import show
from snnbench.backends.torch.session import gradients_of
from snnbench.kernels import KEEPS, arguments, choice, eager, lif, lif_cuda, linear_lif

SHAPE = (8, 2, 16)
"""[T, B, N]: a single stretch, as on a GPU."""
FREE = (
    "empty",
    "empty_strided",
    "empty_like",
    "new_empty",
    "view",
    "_unsafe_view",
    "slice",
    "select",
    "t",
    "transpose",
    "unbind",
    "detach",
    "alias",
    "expand",
    "reshape",
)
"""torch's operators that start nothing on a device."""
COLUMNS = ("pass", "launches", "allocations", "pass us", "operators us", "autograd us", "Python us")
CALLS_IN_A_TURN = 50


Call: TypeAlias = tuple[Any, tuple[Any, ...], dict[str, Any]]
"""An operator with its arguments."""


class Counted:
    """It stands in for `lif_cuda.launch`, and counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, *arguments: Any) -> None:
        self.calls += 1


class Recorder(TorchDispatchMode):  # type: ignore[misc]
    """Notes torch's operators with their arguments, and counts those that give new memory."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Call] = []
        self.allocations = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls.append((function, args, kwargs or {}))
        result = function(*args, **(kwargs or {}))
        self.allocations += not memory(result) <= memory((args, kwargs))
        return result


def main() -> int:
    """A row for each kind of pass."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=41)
    options = parser.parse_args()
    torch.manual_seed(1)
    leaves = [torch.rand(shape, requires_grad=True) for shape in (SHAPE, (SHAPE[2], SHAPE[2]), (SHAPE[2],))]
    cotangent = torch.rand(SHAPE)
    settings: dict[str, Any] = {"beta": 0.9, "threshold": 1.0, "kernel": "cuda"}
    rows = []
    for function, tensors in ((linear_lif, leaves), (lif, leaves[:1])):
        for keep in KEEPS:
            forward = partial(function, *tensors, keep=keep, **settings)
            parts = taken_apart(forward, tensors, cotangent, options.turns)
            rows.append((f"{function.__name__}, keep {keep}", *parts))
    show(f"Host work of a training pass by the kernel cuda, {list(SHAPE)}", COLUMNS, rows)
    return 0


def taken_apart(
    forward: Callable[[], torch.Tensor], wanted: list[torch.Tensor], cotangent: torch.Tensor, turns: int
) -> tuple[str, ...]:
    """The numbers of one kind of pass."""

    def train() -> None:
        gradients_of(forward(), wanted, cotangent)

    def empty() -> None:
        gradients_of(Empty.apply(*wanted, *[None] * (10 - len(wanted))), wanted, cotangent)

    with counted() as launches:
        operators, allocations = noted(train)
        kernels = launches.calls

        def work() -> None:
            with torch.no_grad():
                for function, args, kwargs in operators:
                    function(*args, **kwargs)

        times: dict[Callable[[], None], list[float]] = {train: [], work: [], empty: []}
        for _ in range(turns):
            for run, us in times.items():
                us.append(microseconds(run))
    whole, own, autograd = (median(us) for us in times.values())
    parts = (f"{each:.0f}" for each in (whole, own, autograd, whole - own - autograd))
    return f"{kernels + len(operators)}", f"{allocations}", *parts


def noted(train: Callable[[], None]) -> tuple[list[Call], int]:
    """torch's operators of a pass that launch something, and the number of its allocations."""
    with Recorder() as recorder, mock.patch.object(eager, "serves", lambda *_: True):
        train()
    operators = [call for call in recorder.calls if name_of(call[0]) not in FREE]
    return operators, recorder.allocations


def memory(values: Any) -> set[int]:
    """The addresses of the memory of all tensors in nested values."""
    return {leaf.untyped_storage()._cdata for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)}


def name_of(function: Any) -> str:
    """The operator's name, such as `mm`."""
    return str(function.__name__).partition(".")[0]


@contextmanager
def counted() -> Iterator[Counted]:
    """The kernel `cuda` on the CPU, with launches that are only counted."""
    launches = Counted()
    with mock.patch.object(lif_cuda, "launch", launches), mock.patch.object(choice, "require"):
        yield launches
    arguments.known.cache_clear()


def microseconds(run: Callable[[], None]) -> float:
    """Of one call, in the mean of a turn."""
    run()
    started = time.perf_counter()
    for _ in range(CALLS_IN_A_TURN):
        run()
    return (time.perf_counter() - started) / CALLS_IN_A_TURN * 1e6
