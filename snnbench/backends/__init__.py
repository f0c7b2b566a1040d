"""Backends drive a framework for a worker: one small class per framework, imported only in workers that use it.

A worker makes one backend, which sets precision and device and reports its settings. A session is one network on one
problem; the harness times its passes. `outputs` are the framework's own values, and may be read only after
`synchronise(outputs)`.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from snnbench.adapter.declaration import Variant
from snnbench.adapter.refusal import Unsupported
from snnbench.cases.answer import Answer, Arrays
from snnbench.cases.case import Case
from snnbench.cases.outcome import FailureKind
from snnbench.cases.problem import Problem

NO_STATE = "a sequence in chunks: this neuron of the adapter takes and gives no state"
"""Why a network that an adapter declares for chunks does not run in them."""
Build = Callable[[Case, Any, str], Any]
Matrix = NDArray[np.float32]
Run = Callable[[], Any]
"""Starts a piece of work, and returns outputs for `synchronise`."""


class Session(Protocol):
    """One network with its input and cotangent on the device. A backend's session inherits the defaults."""

    split: str = ""
    """The way of dividing the work among processes, in a word."""

    retains: bool = True
    """Whether a training pass keeps values of all steps at once. In chunks whose gradient is cut it does not."""

    def others_s(self) -> tuple[float, float, float] | None:
        """CPU seconds so far: busy and stolen on CPUs of other machines, and of other ranks; None without ranks."""
        return None

    def recorded(self) -> Any:
        """A pass with the values of all operations. Only networks of operations are recorded."""
        reason = "this network has no operations"
        raise NotImplementedError(reason)

    arranges: bool = False
    """Whether `load` makes content in another order of the batch on the device, from content 0, if it can."""

    def arrays(self) -> Arrays | None:
        """The device's arrays, if answers are compared there; else None."""
        return None

    def held(self, spikes: Any, gradients: Any) -> Answer:
        """Outputs in the harness's order, on the device; called only if `arrays` gives some."""
        reason = "this backend has no device"
        raise NotImplementedError(reason)

    def load(self, which: int, cotangent: int) -> None:
        """Put the numbered input and cotangent of the problem in place of the old ones.

        Arrays that already exist are written in place, so that an answer kept by the array's name is found.
        """

    def load_cotangent(self, cotangent: int) -> None:
        """Put the numbered cotangent in place of the old one."""

    def compile(self, phase: str) -> None:
        """Compile a phase without running it, if the framework can, so that memory excludes compilation."""
        return

    def inference(self) -> Any:
        """Spikes, without values for a backward pass."""

    def forward(self) -> Any:
        """Spikes and all values that `backward` needs."""

    def backward(self, saved: Any) -> Any:
        """Gradients from the result of `forward`."""

    def train(self) -> Any:
        """Spikes and gradients, of forward and backward as one piece of work."""

    def synchronise(self, outputs: Any) -> None:
        """Wait until all `outputs` are complete, unless calls return when the work is done."""
        return

    def mark(self) -> Any:
        """A point in the device's own order of work, or None if the framework has no device clock."""
        return None

    def elapsed_ns(self, start: Any, end: Any) -> int:
        """Nanoseconds of the device between two marks, after a synchronisation; called only if there are marks."""
        reason = "no device clock"
        raise NotImplementedError(reason)

    def answer(self, spikes: Any, gradients: Any) -> Answer:
        """Outputs as NumPy arrays in the harness's order; `gradients` may be None."""

    def storage(self, spikes: Any, gradients: Any) -> list[NDArray[Any]]:
        """The memory of the outputs as NumPy arrays, without a copy; called on a CPU only.

        Raises Incorrect, as `answer` does, for an output of a type of the library's own, which may compute when it is
        read.
        """

    def spikes_of(self, saved: Any) -> Any:
        """The spikes in the result of `forward`."""
        return saved[0]

    def planned_bytes(self, phase: str) -> int:
        """Bytes that a compiled phase takes beyond its arguments, by its compiler's account.

        Called only if the backend's `reset_peak` is False, after `compile(phase)`.
        """
        reason = "nothing is compiled ahead"
        raise NotImplementedError(reason)

    def static_bytes(self) -> int:
        """Bytes of parameters, input and cotangent."""

    def provider(self) -> str:
        """The kernel or code path that ran, as the library itself names it."""

    def ran(self, phase: str) -> list[str]:
        """Names of the kernels or operators that further `inference` or `train` passes run, by a profiler.

        Empty if the profiler saw nothing; the provider if there is no profiler.
        """
        return [self.provider()]


class Backend(Protocol):
    """A framework, set up for a case's device, precision and threads. Each one inherits the defaults."""

    def refuse(self, problem: Problem, variant: Variant) -> None:
        """Refuse work that the framework does not run in the variant's way. Raises Unsupported.

        This comes before the exam, which may compile for a minute.
        """

    def on_one_thread(self) -> AbstractContextManager[None] | None:
        """A context in which the framework computes on one thread of the CPU; None if it cannot change its threads."""
        return None

    def without_neurons(self, build: Build, variant: Variant) -> Build:
        """The build of the same network with the identity in place of each neuron. Raises Unsupported."""
        raise Unsupported("this backend cannot leave neurons out")

    def convolutions(self, kinds: Mapping[str, Any], images: int) -> dict[str, Run]:
        """The work of each kind of convolution on so many images, as `peaks` gives that of products."""
        reason = "this backend has no convolutions"
        raise NotImplementedError(reason)

    def settings(self) -> dict[str, Any]:
        """The settings in force, read back from the framework."""

    def session(self, build: Build, variant: Variant, problem: Problem) -> Session:
        """Build the network of `problem`, to be run in the variant's way; may raise Unsupported."""

    def compilations(self) -> int:
        """The number of compilations in this process so far."""
        return 0

    def device_bytes(self) -> dict[str, int | None]:
        """`peak`, `in_use` and `reserved` bytes of the device allocators, and `used` of the whole device; or {}.

        Memory in use is memory that no later allocation can have, including unused private memory of a graph.
        """
        return {}

    def reset_peak(self) -> bool:
        """Set the device allocator's `peak` to the bytes in use now; False if it cannot be reset."""
        return True

    def failure_kind(self, error: BaseException) -> FailureKind | None:
        """ "oom-device" or "oom-host" if the error says so, else None."""

    def peaks(
        self, entering: Matrix, cotangent: Matrix, weight: Matrix, copied_bytes: int, rows: int | None = None
    ) -> dict[str, Run]:
        """The work behind the floor, by name; each run is called and waited for like a pass.

        From input [M, N], cotangent [M, N] and weight [N_out, N_in], in the case's dtype and precision: the products
        `current` (input x weight^T), `weight_gradient` (cotangent^T x input) and `input_gradient` (cotangent x weight),
        `copy`, from one buffer of `copied_bytes` to another, and `call`, a product of two matrices of one number each.
        All write into existing memory. Preparation, such as placing on the device, happens before. If there are to be
        so many `rows`, the rows of input and cotangent repeat, and those of the weight up to a square.
        """


def repeated(matrix: Matrix, rows: int | None) -> Matrix:
    """The matrix with its rows repeated up to so many; the matrix itself for None."""
    return matrix if rows is None else np.resize(matrix, (rows, matrix.shape[1]))


def open_backend(name: str, case: Case) -> Backend:
    """The backend for a case. Raises Unsupported for a dtype or precision that it does not have.

    Raises Unavailable if the machine lacks the device, its driver or a build for it.
    """
    backend: Backend = import_module(f"snnbench.backends.{name}").Backend(case)
    return backend
