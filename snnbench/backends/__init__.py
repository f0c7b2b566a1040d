"""How a worker drives a framework: one small class per framework, imported only where it runs.

A backend is made once in a worker; it sets precision and device and says what it found. A session is one network on
one problem; its passes are what the harness times. `outputs` are the framework's own values, and nothing may be read
from them before `synchronise(outputs)`.
"""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from snnbench.adapter.declaration import Variant
from snnbench.adapter.refusal import AdapterError
from snnbench.workloads.answer import Answer
from snnbench.workloads.case import Case
from snnbench.workloads.problem import Problem

Build = Callable[[Case, Any, str], Any]
Matrix = NDArray[np.float32]
Run = Callable[[], Any]
"""Starts a piece of work, and returns what can be waited for."""


class Session(Protocol):
    """One network with its input and cotangent on the device."""

    def load(self, which: int, cotangent: int) -> None:
        """Put the numbered input and cotangent of the problem in place of what was there.

        Where that makes new arrays, the session says so in an attribute, `loads_in_place = False`.
        """

    def compile(self, phase: str) -> None:
        """Compile what a phase needs and run nothing, where the framework can; so that memory is the pass's alone."""

    def inference(self) -> Any:
        """Spikes, nothing kept for a backward pass."""

    def forward(self) -> Any:
        """Spikes and all that `backward` needs."""

    def backward(self, saved: Any) -> Any:
        """Gradients, from what `forward` gave."""

    def train(self) -> Any:
        """Forward and backward as one piece: spikes and gradients."""

    def synchronise(self, outputs: Any) -> None:
        """Wait until all of `outputs` is there."""

    def mark(self) -> Any:
        """A point in the device's own order of work, or None where the framework has no such clock."""

    def elapsed_ns(self, start: Any, end: Any) -> int:
        """Nanoseconds of the device between two marks, after a synchronisation."""

    def answer(self, spikes: Any, gradients: Any) -> Answer:
        """Outputs as NumPy arrays in the harness's order; `gradients` may be None."""

    def spikes_of(self, saved: Any) -> Any:
        """The spikes in what `forward` gave."""

    def planned_bytes(self, phase: str) -> int:
        """Bytes that a compiled phase takes beyond its arguments, by its compiler's account.

        Asked for only where the backend's `reset_peak` says False, after `compile(phase)`.
        """

    def static_bytes(self) -> int:
        """Parameters, input and cotangent."""

    def provider(self) -> str:
        """The kernel or code path that ran, as the library itself names it."""

    def ran(self, phase: str) -> list[str]:
        """Names of what more `inference` or `train` passes run, as a profiler sees them: kernels on a device.

        Empty where the profiler saw nothing.
        """


class Backend(Protocol):
    """A framework, set up for a case's device, precision and threads."""

    def settings(self) -> dict[str, Any]:
        """What is in force now, read back from the framework."""

    def session(self, build: Build, variant: Variant, problem: Problem) -> Session:
        """Build the network of `problem`, to be run in the variant's way; may raise Unsupported."""

    def compilations(self) -> int:
        """How many things were compiled in this process so far."""

    def device_bytes(self) -> dict[str, int | None]:
        """`peak`, `in_use` and `reserved` bytes of the device allocators, and `used` of the whole device; or {}.

        In use is what no later allocation can have, be it unused inside the private memory of a graph.
        """

    def reset_peak(self) -> bool:
        """Set the device allocator's `peak` to what is in use now; False where it cannot be reset."""

    def failure_kind(self, error: BaseException) -> str | None:
        """ "oom-device" or "oom-host" where the error says so."""

    def peaks(self, entering: Matrix, cotangent: Matrix, weight: Matrix, copied_bytes: int) -> dict[str, Run]:
        """What the floor is made of, each to be called and then waited for as a pass is.

        From input [M, N], cotangent [M, N] and weight [N_out, N_in], in the case's dtype and precision: the products
        `current` (input x weight^T), `weight_gradient` (cotangent^T x input) and `input_gradient` (cotangent x weight),
        `copy`, from one buffer of so many bytes to another, and `call`, a product of two matrices of one number each.
        All write into memory that is there already, and what is none of this (placing on the device) is done before.
        """


METHODS = [name for name in vars(Backend) if not name.startswith("_")]
"""What every backend can do."""


def open_backend(name: str, case: Case, adapter: ModuleType) -> Backend:
    """The backend for a case. Raises Unsupported for a dtype or precision that it does not have.

    Raises Unavailable where the machine has no such device, or no driver or build for it.

    Raises AdapterError for a backend of the adapter's own that lacks a method: without `peaks`, for instance, there is
    no floor, and without a floor a time that cannot be true would stand.
    """
    if name == "own":
        if missing := [method for method in METHODS if not hasattr(adapter.Backend, method)]:
            lacking = ", ".join(missing)
            raise AdapterError(f"its class Backend lacks {lacking}: snnbench/backends/__init__.py says what that does")
        own: Backend = adapter.Backend(case)
        return own
    backend: Backend = import_module(f"snnbench.backends.{name}").Backend(case)
    return backend
