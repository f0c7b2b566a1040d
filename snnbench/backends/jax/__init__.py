"""The backend for JAX on CPU and CUDA.

`forward` is a compiled function that returns the spikes and the residuals, and `backward` a compiled function of the
residuals, so they are two pieces of work. Weights, input and cotangent are arguments of each, never constants. On the
CPU dispatch is synchronous. Otherwise JAX would overlap passes; a training loop cannot, because each pass needs the
pass before it.

This file is long: it holds all that the harness knows of JAX.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.monitoring
import jax.numpy as jnp
import numpy as np

from snnbench.adapter.declaration import Variant
from snnbench.adapter.refusal import Unavailable, Unsupported
from snnbench.backends import Build, Matrix, Run
from snnbench.backends.layout import Layout
from snnbench.work.answer import Answer
from snnbench.work.case import Case
from snnbench.work.outcome import FailureKind
from snnbench.work.problem import Problem

PRECISIONS = {"ieee": "float32", "tf32": "tensorfloat32"}
COMPILED = "/jax/core/compile/backend_compile_duration"


@dataclass(frozen=True, slots=True)
class Weights:
    """The harness's weight [N_out, N_in] and bias [N_out] of one layer, on the case's device in its dtype."""

    weight: jax.Array
    bias: jax.Array


@dataclass(frozen=True, slots=True)
class Network:
    """The network that an adapter for JAX builds.

    `apply(params, input)` gives the spikes. `params` holds only the weights and biases to differentiate.
    `linears(params)` picks (weight, bias) of each layer out of them or out of their gradients; the values are the
    harness's times `gain`. `transposed` says that weights are kept as [N_in, N_out]. Without linear layers the input is
    currents, and the harness hands them over times `gain`.
    """

    apply: Callable[[Any, jax.Array], jax.Array]
    params: Any
    linears: Callable[[Any], Sequence[tuple[jax.Array, jax.Array]]]
    gain: float = 1.0
    transposed: bool = False


@dataclass(frozen=True, slots=True)
class Neuron:
    """A library's neuron, as an adapter for JAX builds it.

    `layer(neurons)` makes a layer of so many neurons: a pure function of currents [T, B, N], in the adapter's order, to
    spikes of the same shape. It takes the harness's currents times `gain`.
    """

    layer: Callable[[int], Callable[[jax.Array], jax.Array]]
    gain: float = 1.0

    def stack(self, weights: Sequence[Weights]) -> Network:
        """Linear layers with these weights, each followed by a layer of neurons."""
        layers = [self.layer(each.weight.shape[0]) for each in weights]

        def apply(params: Any, x: jax.Array) -> jax.Array:
            for (weight, bias), layer in zip(params, layers, strict=True):
                x = layer(x @ weight.T + bias)
            return x

        params = [(each.weight * self.gain, each.bias * self.gain) for each in weights]
        return Network(apply, params, linears=lambda tree: tree, gain=self.gain)

    def alone(self, neurons: int) -> Network:
        """A layer of neurons on currents."""
        layer = self.layer(neurons)
        return Network(lambda params, x: layer(x), (), linears=lambda tree: [], gain=self.gain)


class Backend:
    """JAX, set to the case's device and precision."""

    def __init__(self, case: Case) -> None:
        if case.device == "cpu" and case.precision != "ieee":
            raise Unsupported("tf32 exists on CUDA devices only")
        platform, _, number = case.device.partition(":")
        jax.config.update("jax_platforms", platform)
        jax.config.update("jax_default_matmul_precision", PRECISIONS[case.precision])
        jax.config.update("jax_enable_x64", case.dtype == "float64")
        jax.config.update("jax_cpu_enable_async_dispatch", False)
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

    def session(self, build: Build, variant: Variant, problem: Problem) -> "Session":
        """Build the network."""
        return Session(build, variant, problem, self.device)

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

    def peaks(self, entering: Matrix, cotangent: Matrix, weight: Matrix, copied_bytes: int) -> dict[str, Run]:
        """Runs with operands as arguments; each call writes its result over the result of the call before.

        NumPy makes the arrays, because JAX compiles a program for each shape that it fills.
        """

        def on_device(array: Any) -> jax.Array:
            return jax.device_put(array.astype(self.dtype, copy=False), self.device)

        def empty(like: jax.Array) -> jax.Array:
            return jax.device_put(np.zeros(like.shape, like.dtype), self.device)

        x, g, w = (on_device(matrix) for matrix in (entering, cotangent, weight))
        source = jax.device_put(np.ones(copied_bytes, np.uint8), self.device)
        scalar = on_device(np.ones((1, 1), np.float32))
        return {
            "current": _into(empty(x), _current, x, w),
            "weight_gradient": _into(empty(w), _weight_gradient, g, x),
            "input_gradient": _into(empty(x), _input_gradient, g, w),
            "copy": _into(empty(source), _copy, source),
            "call": _into(empty(scalar), _input_gradient, scalar, scalar),
        }

    def _count(self, event: str, duration: float, **_: Any) -> None:
        self._compiled += event == COMPILED


class Session:
    """A network on one problem, with its arrays on the device."""

    loads_in_place = False

    def __init__(self, build: Build, variant: Variant, problem: Problem, device: Any) -> None:
        case = problem.case
        self.device, self.dtype = device, jnp.dtype(case.dtype)
        layers = [Weights(self._place(weight), self._place(bias)) for weight, bias in problem.layers()]
        self.network: Network = build(case, layers, variant.built_as)
        self.problem = problem
        self.layout = Layout(variant.order, variant.latency)
        self.unit = 1.0 if layers else self.network.gain
        self._inference: Any = jax.jit(self.network.apply)
        self._forward: Any = jax.jit(self._vjp_with_input if case.input_gradient else self._vjp)
        self._backward: Any = jax.jit(lambda pull, cotangent: pull(cotangent))
        self._train: Any = jax.jit(self._both)
        self._with_input = case.input_gradient
        self._planned_bytes: dict[str, int] = {}
        self._fired: Any = None
        self.load(0, 0)

    def load(self, which: int, cotangent: int) -> None:
        """Make new arrays; the compiled functions take them as arguments."""
        entering = self.layout.input(self.problem.input(which))
        self.input = self._place(entering if self.unit == 1.0 else entering * np.float32(self.unit))
        if self._fired is None:
            # A state in float32 gives spikes in float32 for weights of any format, so their cotangent is float32, too.
            self._fired = jax.eval_shape(self.network.apply, self.network.params, self.input).dtype
        self.cotangent = self._place(self.layout.cotangent(self.problem.cotangent(cotangent))).astype(self._fired)
        jax.block_until_ready((self.input, self.cotangent))

    def compile(self, phase: str) -> None:
        """Compile ahead of the first call."""
        if phase == "train":
            program = self._train = self._train.lower(self.network.params, self.input, self.cotangent).compile()
        elif phase == "forward":
            program = self._forward = self._forward.lower(self.network.params, self.input).compile()
        elif phase == "inference":
            program = self._inference = self._inference.lower(self.network.params, self.input).compile()
        else:
            return
        plan = program.memory_analysis()
        taken_bytes = plan.output_size_in_bytes + plan.temp_size_in_bytes - plan.alias_size_in_bytes
        self._planned_bytes[phase] = int(taken_bytes)

    def planned_bytes(self, phase: str) -> int:
        """Outputs and temporary buffers, as XLA assigns them."""
        return self._planned_bytes[phase]

    def inference(self) -> Any:
        """Spikes."""
        return self._inference(self.network.params, self.input)

    def forward(self) -> Any:
        """Spikes and residuals."""
        return self._forward(self.network.params, self.input)

    def backward(self, saved: Any) -> Any:
        """Gradients from residuals."""
        return self._backward(saved[1], self.cotangent)

    def train(self) -> Any:
        """Spikes and gradients, one program."""
        return self._train(self.network.params, self.input, self.cotangent)

    def synchronise(self, outputs: Any) -> None:
        """Wait for every array in `outputs`."""
        jax.block_until_ready(outputs)

    def mark(self) -> Any:
        """None: JAX has no device clock."""
        return None

    def elapsed_ns(self, start: Any, end: Any) -> int:
        """Never called, because there are no marks. Raises ValueError."""
        raise ValueError("no device clock")

    def answer(self, spikes: Any, gradients: Any) -> Answer:
        """The answer in the harness's order, with the gradients of the harness's own weights."""
        got = self.layout.spikes(_numpy(spikes))
        if gradients is None:
            return Answer(got)
        network = self.network
        pairs = network.linears(gradients[0])
        weights = [_numpy(w.T if network.transposed else w) * network.gain for w, _ in pairs]
        biases = [_numpy(b).reshape(-1) * network.gain for _, b in pairs]
        if not self._with_input:
            return Answer(got, weights, biases)
        entering = self.layout.input_gradient(_numpy(gradients[1]))
        return Answer(got, weights, biases, entering if self.unit == 1.0 else entering * self.unit)

    def spikes_of(self, saved: Any) -> Any:
        """The spikes in the result of `forward`."""
        return saved[0]

    def static_bytes(self) -> int:
        """Parameters, input and cotangent."""
        return sum(leaf.nbytes for leaf in jax.tree.leaves((self.network.params, self.input, self.cotangent)))

    def provider(self) -> str:
        """XLA compiles everything."""
        return f"xla:{self.device.platform}"

    def ran(self, phase: str) -> list[str]:
        """XLA, and the targets of custom calls in the compiled program."""
        if phase == "train":
            program = jax.jit(self._both).lower(self.network.params, self.input, self.cotangent).compile()
        else:
            program = jax.jit(self.network.apply).lower(self.network.params, self.input).compile()
        return [self.provider(), *sorted(set(re.findall('custom_call_target="([^"]+)"', program.as_text())))]

    def _vjp_with_input(self, params: Any, entering: jax.Array) -> Any:
        return jax.vjp(self.network.apply, params, entering)

    def _vjp(self, params: Any, entering: jax.Array) -> Any:
        return jax.vjp(lambda p: self.network.apply(p, entering), params)

    def _both(self, params: Any, entering: jax.Array, cotangent: jax.Array) -> Any:
        spikes, pull = (self._vjp_with_input if self._with_input else self._vjp)(params, entering)
        return spikes, pull(cotangent)

    def _place(self, array: Any) -> jax.Array:
        """A copy, also on the CPU: the problem's own arrays serve later checks."""
        return jax.device_put(jnp.array(array, self.dtype), self.device)


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


def _numpy(array: jax.Array) -> Any:
    return np.asarray(array.astype(jnp.float32) if array.dtype.itemsize == 2 else array)
