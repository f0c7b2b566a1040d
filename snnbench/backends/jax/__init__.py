"""The backend for JAX on CPU and CUDA.

On the CPU dispatch is synchronous. Otherwise JAX would overlap passes; a training loop cannot, because each pass needs
the pass before it.
"""

from collections.abc import Mapping
from functools import cache, partial
from typing import Any

import jax
import jax.monitoring
import jax.numpy as jnp
import numpy as np

from snnbench import backends
from snnbench.adapter.declaration import Variant
from snnbench.adapter.refusal import Incorrect, Unavailable, Unsupported
from snnbench.backends import Build, Matrix, Run, repeated
from snnbench.backends.jax.chunks import ChunkSession
from snnbench.backends.jax.network import Network, Neuron, Weights, trained
from snnbench.backends.jax.operations import convolution
from snnbench.backends.jax.programs import kept
from snnbench.backends.jax.session import Session, refuse
from snnbench.cases.case import Case
from snnbench.cases.outcome import FailureKind
from snnbench.cases.problem import Problem
from snnbench.cases.windows import Convolution

__all__ = ["Backend", "Network", "Neuron", "Session", "Weights", "trained"]
PRECISIONS = {"ieee": "float32", "tf32": "tensorfloat32"}
COMPILED = "/jax/core/compile/backend_compile_duration"
jax.config.update("jax_cpu_enable_async_dispatch", False)  # JAX reads it once, when it is first used


class Backend(backends.Backend):
    """JAX, set to the case's device and precision."""

    def __init__(self, case: Case) -> None:
        if case.device == "cpu" and case.precision != "ieee":
            raise Unsupported("tf32 exists on CUDA devices only")
        platform, _, number = case.device.partition(":")
        jax.config.update("jax_platforms", platform)
        jax.config.update("jax_default_matmul_precision", PRECISIONS[case.precision])
        jax.config.update("jax_enable_x64", case.dtype == "float64")
        if jax.config.read("jax_cpu_enable_async_dispatch"):
            raise Incorrect("the adapter has JAX overlap passes on the CPU (jax_cpu_enable_async_dispatch)")
        try:
            self.device = jax.devices(platform)[int(number or 0)]
        except (RuntimeError, IndexError) as error:
            reason = str(error).strip().partition("\n")[0]
            step = "it needs jax[cuda13], an NVIDIA driver 580 or newer, and room on the card; `snnbench doctor` looks"
            raise Unavailable(f"JAX {jax.__version__} has no device {case.device}: {reason}; {step}") from error
        self.dtype = jnp.dtype(case.dtype)
        self._compiled = 0
        jax.monitoring.register_event_duration_secs_listener(self._count)

    def settings(self) -> dict[str, Any]:
        """Version, precision and device in force."""
        return {
            "jax": jax.__version__,
            "device": self.device.device_kind,
            "platform": self.device.platform,
            "matmul_precision": jax.config.jax_default_matmul_precision,
            "x64": jax.config.jax_enable_x64,
            "cpu_async_dispatch": jax.config.read("jax_cpu_enable_async_dispatch"),
        }

    def refuse(self, problem: Problem, variant: Variant) -> None:
        """Refuse work before anything is built for it. Raises Unsupported."""
        refuse(problem, variant)

    def session(self, build: Build, variant: Variant, problem: Problem) -> Session:
        """Build the network."""
        kind = ChunkSession if problem.case.chunk_steps else Session
        return kind(build, variant, problem, self.device)

    def without_neurons(self, build: Build, variant: Variant) -> Build:
        """A build of the same network with the identity in place of each neuron."""
        return lambda case, weights, built_as: build(case, weights, built_as).without_neurons(variant.order)

    def compilations(self) -> int:
        """Programs that XLA has compiled."""
        return self._compiled

    def device_bytes(self) -> dict[str, int | None]:
        """The allocator's own count; JAX does not report the whole device's use."""
        stats = self.device.memory_stats() if self.device.platform != "cpu" else None
        if not stats:
            return {}
        return {
            "peak": stats.get("peak_bytes_in_use"),
            "in_use": stats.get("bytes_in_use"),
            "reserved": stats.get("peak_pool_bytes", stats.get("pool_bytes")),
            "used": None,
        }

    def reset_peak(self) -> bool:
        """False: JAX counts a process's peak from its start."""
        return False

    def failure_kind(self, error: BaseException) -> FailureKind | None:
        """Out of memory, or nothing known."""
        if isinstance(error, MemoryError):
            return "oom-host"
        if isinstance(error, jax.errors.JaxRuntimeError) and "RESOURCE_EXHAUSTED" in str(error):
            return "oom-host" if self.device.platform == "cpu" else "oom-device"
        return None

    def peaks(
        self, entering: Matrix, cotangent: Matrix, weight: Matrix, copied_bytes: int, rows: int | None = None
    ) -> dict[str, Run]:
        """Runs with operands as arguments; each call writes its result over the result of the call before.

        NumPy makes the arrays, because JAX compiles a program for each shape that it fills. A card repeats rows itself,
        since that takes less than to send them all.
        """

        def on_device(array: Any, rows: int | None = None) -> jax.Array:
            on_card = self.device.platform != "cpu"
            array = (array if on_card else repeated(array, rows)).astype(self.dtype, copy=False)
            placed = jax.device_put(array, self.device)
            return jnp.resize(placed, (rows, array.shape[1])) if on_card and rows else placed

        def empty(like: jax.Array) -> jax.Array:
            return jax.device_put(np.zeros(like.shape, like.dtype), self.device)

        x, g, w = on_device(entering, rows), on_device(cotangent, rows), on_device(weight, rows and cotangent.shape[1])
        source = jax.device_put(np.ones(copied_bytes, np.uint8), self.device)
        scalar = on_device(np.ones((1, 1), np.float32))
        return {
            "current": _into(empty(g), kept(_current, g, x, w), x, w),
            "weight_gradient": _into(empty(w), kept(_weight_gradient, w, g, x), g, x),
            "input_gradient": _into(empty(x), kept(_input_gradient, x, g, w), g, w),
            "copy": _into(empty(source), _copy, source),
            "call": _into(empty(scalar), _input_gradient, scalar, scalar),
        }

    def convolutions(self, kinds: Mapping[str, tuple[Convolution, tuple[int, ...]]], images: int) -> dict[str, Run]:
        """Runs of each kind of convolution on so many images: its value, and the gradients of its kernel and image."""
        runs: dict[str, Run] = {}
        for name, (operation, entering) in kinds.items():
            shapes = (images, *entering), (images, *operation.shape), operation.parameters["weight"]
            x, g, w = (self._random(shape) for shape in shapes)
            value, of_kernel, of_image = _convolution(operation)
            runs[f"{name}.value"] = partial(kept(value, x, w), x, w)
            runs[f"{name}.kernel-gradient"] = partial(kept(of_kernel, x, w, g), x, w, g)
            runs[f"{name}.image-gradient"] = partial(kept(of_image, x, w, g), x, w, g)
        return runs

    def _random(self, shape: tuple[int, ...]) -> jax.Array:
        return jax.device_put(
            np.random.default_rng(0).standard_normal(shape, np.float32).astype(self.dtype), self.device
        )

    def _count(self, event: str, duration: float, **_: Any) -> None:
        self._compiled += event == COMPILED


@cache
def _convolution(operation: Convolution) -> tuple[Any, Any, Any]:
    """Compiled functions of (image, kernel) to the value, and of these and its cotangent to both gradients.

    Peaks are measured in several looks. A later look must find the programs of the first, or it measures XLA.
    """

    def gradient(number: int, x: jax.Array, w: jax.Array, g: jax.Array) -> jax.Array:
        of_image, of_kernel = jax.vjp(partial(convolution, operation), x, w)[1](g)
        return (of_image, of_kernel)[number]

    return jax.jit(partial(convolution, operation)), jax.jit(partial(gradient, 1)), jax.jit(partial(gradient, 0))


def _into(output: jax.Array, function: Any, *operands: jax.Array) -> Run:
    """A run that calls `function` with its previous result as the memory to write to."""
    outputs = [output]

    def run() -> jax.Array:
        outputs[0] = function(outputs[0], *operands)
        return outputs[0]

    return run


_in_place: Any = partial(jax.jit, donate_argnums=0, keep_unused=True)
"""Compiles a function that overwrites its first argument: clearing fresh pages would cost more than a small product."""
_current = _in_place(lambda out, x, w: x @ w.T)
_weight_gradient = _in_place(lambda out, g, x: g.T @ x)
_input_gradient = _in_place(lambda out, g, w: g @ w)
_copy = _in_place(lambda out, source: jnp.copy(source))
