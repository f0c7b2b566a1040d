"""A network in JAX and its compiled passes.

`forward` is a compiled function that returns the spikes and the residuals, and `backward` a compiled function of the
residuals, so they are two pieces of work. Weights, input and cotangent are arguments of each, never constants.
"""

import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from snnbench import backends
from snnbench.adapter.declaration import Variant
from snnbench.adapter.refusal import Unsupported
from snnbench.backends import Build, operations
from snnbench.backends.jax.arrays import Arrays
from snnbench.backends.jax.network import Network, Weights
from snnbench.backends.jax.operations import Operations
from snnbench.backends.layout import Layout, require_type
from snnbench.backends.operations import NetworkParts
from snnbench.cases.answer import Answer, Held, Recording, times
from snnbench.cases.case import HALVES
from snnbench.cases.problem import Graph, Problem

FORMATS = ("float32", "float64")
"""The number formats of networks of operations."""


class Session(backends.Session):
    """A network on one problem, with its arrays on the device."""

    def __init__(self, build: Build, variant: Variant, problem: Problem, device: Any) -> None:
        case = problem.case
        self.device, self.dtype = device, jnp.dtype(case.dtype)
        refuse(problem, variant)
        given = operations.given(problem, variant, self._place, Weights)
        self.network: Network = build(case, given, variant.built_as)
        self.problem = problem
        is_plan = isinstance(given, NetworkParts)
        self.layout = Layout(operations.leading(variant.order)) if is_plan else Layout(variant.order, variant.latency)
        self.unit = 1.0 if given else self.network.gain
        self._inference: Any = jax.jit(self.network.apply)
        self._forward: Any = jax.jit(self._vjp_with_input if case.input_gradient else self._vjp)
        self._backward: Any = jax.jit(lambda pull, cotangent: pull(cotangent))
        self._train: Any = jax.jit(self._both)
        self._with_input = case.input_gradient
        self._planned_bytes: dict[str, int] = {}
        self._first: dict[str, jax.Array] = {}
        self._fired: Any = None
        self._record: Any = None
        self.load(0, 0)

    def load(self, which: int, cotangent: int) -> None:
        """Make new arrays; the compiled functions take them as arguments."""
        self.input = self._content("input", which, self._input)
        if self._fired is None:
            # A state in float32 gives spikes in float32 for weights of any format, so their cotangent is float32, too.
            output = jax.eval_shape(self.network.apply, self.network.params, self.input)
            if not self.network.operations:
                self.layout.require(output, self.layout.cotangent(self.problem.cotangent(cotangent)).shape)
            self._fired = output.dtype
        jax.block_until_ready(self.input)
        self.load_cotangent(cotangent)

    def load_cotangent(self, cotangent: int) -> None:
        """Make a new array."""
        upstream = self._content("cotangent", cotangent, lambda n: self.layout.cotangent(self.problem.cotangent(n)))
        self.cotangent = upstream.astype(self._fired)
        jax.block_until_ready(self.cotangent)

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

    def answer(self, spikes: Any, gradients: Any) -> Answer:
        """The answer in the harness's order, with the gradients of the harness's own weights."""
        return self._answer(spikes, gradients, _numpy)

    def held(self, spikes: Any, gradients: Any) -> Answer:
        """The same, where the arrays are."""
        arrays = Arrays(self.device)
        return self._answer(spikes, gradients, _plain).each(
            lambda array: Held(jax.device_put(array, self.device), arrays)
        )

    def arrays(self) -> Arrays | None:
        """Those of a card."""
        return None if self.device.platform == "cpu" else Arrays(self.device)

    def _answer(self, spikes: Any, gradients: Any, read: Callable[[Any], Any]) -> Answer:
        """The answer, with the arrays as `read` gives them."""
        got = self.layout.spikes(read(spikes))
        if gradients is None:
            return Answer(got)
        network = self.network
        if network.operations:
            return Answer(got, [times(read(g), scale) for g, scale in network.operations.in_order(gradients[0])], [])
        layers = [tuple(map(_plain, each)) for each in network.linears(gradients[0])]
        turned = [[g.T if network.transposed else g for g in (weight, *own)] for weight, _, *own in layers]
        weights = [times(read(jnp.concatenate(g, 1) if len(g) > 1 else g[0]), network.gain) for g in turned]
        biases = [times(read(b).reshape(-1), network.gain) for _, b, *_ in layers]
        trained = [read(each).reshape(-1) for each in network.constants(gradients[0])]
        if not self._with_input:
            return Answer(got, weights, biases, constants=trained)
        entering = self.layout.input_gradient(read(gradients[1]))
        return Answer(got, weights, biases, times(entering, self.unit), trained)

    def recorded(self) -> Recording:
        """A pass of a network of operations, with each value and its gradient. Raises TypeError for a stack.

        Zeros are added to each value, and their gradient is the value's. They are arguments, so XLA cannot omit them.
        """
        if (network := self.network.operations) is None:
            raise TypeError("a stack has no operations to record")
        if self._record is None:
            self._record = jax.jit(partial(_recorded, network))
        shapes = jax.eval_shape(partial(network.recorded, zeros={}), network.params, x=self.input)[1]
        zeros = {name: self._place(np.zeros(each.shape)) for name, each in shapes.items()}
        (output, values), (gradients, arrived) = self._record(network.params, zeros, self.input, self.cotangent)
        # XLA may sum over images, as gradients of parameters do, in another order around the zeros.
        recording = Recording(self.answer(output, (gradients,)), {}, {}, repeats_bits=False)
        for name in network.names:
            value, cotangent = (self._by_step(_numpy(tree[name])) for tree in (values, arrived))
            operations.put(recording, name, value, cotangent, network.scaled.get(name, 1.0))
        return recording

    def storage(self, spikes: Any, gradients: Any) -> list[NDArray[Any]]:
        """The arrays' memory. Raises Incorrect."""
        return [np.asarray(_plain(each)) for each in jax.tree.leaves((spikes, gradients))]

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

    def _by_step(self, value: NDArray[Any]) -> NDArray[Any]:
        """A value with time before the batch."""
        steps = value.reshape(*self.input.shape[:2], *value.shape[1:])
        return steps if self.layout.order.startswith("TB") else steps.swapaxes(0, 1)

    def _input(self, which: int) -> NDArray[np.float32]:
        """The numbered input in the library's order; currents in its unit."""
        entering = self.layout.input(self.problem.input(which))
        return entering if self.unit == 1.0 else entering * np.float32(self.unit)

    def _content(self, name: str, which: int, of: Callable[[int], NDArray[np.float32]]) -> jax.Array:
        """A numbered array of the content; one in another order of the batch is made on the device."""
        order = self.problem.order(which) if self.arranges else None
        if order is None:
            return self._place(of(which))
        if name not in self._first:
            self._first[name] = self._place(of(0))
        return jnp.take(self._first[name], order.astype(np.int32), axis=self.layout.order.index("B"))

    def _place(self, array: Any) -> jax.Array:
        """A copy, also on the CPU: the problem's own arrays serve later checks."""
        return jax.device_put(jnp.array(array, self.dtype), self.device)


def refuse(problem: Problem, variant: Variant) -> None:
    """Refuse a network that JAX does not run, or not to the tolerance. Raises Unsupported."""
    if not isinstance(problem, Graph):
        return
    if problem.case.dtype in HALVES:
        raise Unsupported(f"XLA adds gradients over images in {problem.case.dtype}, beyond the tolerance of a sum")
    operations.check(problem, variant, FORMATS)
    operations.require_frozen(problem, "XLA")


def _recorded(network: Operations, params: Any, zeros: Any, entering: jax.Array, cotangent: jax.Array) -> Any:
    """((output, values), gradients of parameters and zeros)."""
    output, pull, values = jax.vjp(lambda p, z: network.recorded(p, z, entering), params, zeros, has_aux=True)
    return (output, values), pull(cotangent)


@cache
def _type() -> type:
    """The type of arrays; the first array starts a backend, so it is not made at import."""
    return type(jnp.zeros(()))


def _plain(array: Any) -> jax.Array:
    """An array that holds its numbers. Raises Incorrect."""
    plain: jax.Array = require_type(array, _type())
    return plain


def _numpy(array: Any) -> Any:
    array = _plain(array)
    return np.asarray(array.astype(jnp.float32) if array.dtype.itemsize == 2 else array)
