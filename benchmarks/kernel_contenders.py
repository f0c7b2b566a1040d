"""The contenders of kernels.py as training passes: our kernels, the plain loop, a compiled step, SpikingJelly, JAX."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch

from snnbench.backends.torch.floor_products import products
from snnbench.kernels import Neuron, eager, lif, lif_ref, linear_cpu, linear_lif

NEURON = Neuron(0.9, 1.0)
OPTIONS: dict[str, Any] = {"beta": NEURON.beta, "threshold": NEURON.threshold}
PIECES = 4
"""Pieces of a sequence that arrives as a stream."""


@dataclass(slots=True)
class Work:
    """One size on one device. `inputs` [T, B, N] are spikes for the layer and currents for the neuron."""

    inputs: torch.Tensor
    cotangent: torch.Tensor
    weight: torch.Tensor | None
    bias: torch.Tensor | None

    @property
    def wanted(self) -> list[torch.Tensor]:
        """The tensors that need gradients."""
        return [self.inputs] if self.weight is None else [self.weight, self.bias]

    @property
    def least_bytes(self) -> int:
        """The bytes that a training pass of the neuron must read or write at least once."""
        return int(4 * self.inputs.numel() * self.inputs.element_size())


Pass = Callable[[], tuple[Any, Any]]
"""Spikes, and the gradients of `wanted`."""


def floor(work: Work) -> Pass:
    """Two bare products, or a copy."""
    if work.weight is None:
        source = torch.empty(work.least_bytes // 8, device=work.inputs.device)
        target = torch.empty_like(source)
        return lambda: (target.copy_(source), None)
    rows = work.inputs.numel() // work.inputs.shape[2]
    runs = products(work.inputs.view(rows, -1), work.cotangent.view(rows, -1), work.weight.detach())
    return lambda: (runs["current"](), runs["weight_gradient"]())


def with_torch(work: Work, forward: Callable[[torch.Tensor], torch.Tensor]) -> Pass:
    """A training pass through autograd."""

    def run() -> tuple[Any, Any]:
        spikes = forward(work.inputs)
        return spikes.detach(), torch.autograd.grad(spikes, work.wanted, work.cotangent)

    return run


def ours(work: Work, kernel: str, keep: str) -> Callable[[torch.Tensor], torch.Tensor]:
    """`lif` or `linear_lif`."""
    if work.weight is None:
        return lambda x: lif(x, kernel=kernel, keep=keep, **OPTIONS)
    return lambda x: linear_lif(x, work.weight, work.bias, kernel=kernel, keep=keep, **OPTIONS)


def through_operator(run: Pass) -> Pass:
    """A pass of ours through the dispatch of the operator, as under torch.compile."""

    def through() -> tuple[Any, Any]:
        serves, eager.serves = eager.serves, lambda *tensors: False
        try:
            return run()
        finally:
            eager.serves = serves

    return through


def through_pipeline(run: Pass) -> Pass:
    """A pass of ours with its products by torch.mm, as where torch exports none."""

    def through() -> tuple[Any, Any]:
        plans, linear_cpu.plans = linear_cpu.plans, lambda *_: None
        try:
            return run()
        finally:
            linear_cpu.plans = plans

    return through


def in_pieces(work: Work, kernel: str) -> Callable[[torch.Tensor], torch.Tensor]:
    """`lif` or `linear_lif` on PIECES pieces of the time, with the potential carried from piece to piece."""

    def forward(x: torch.Tensor) -> torch.Tensor:
        potential, spikes = None, []
        carried: dict[str, Any] = {"kernel": kernel, "return_potential": True, **OPTIONS}
        for piece in x.chunk(PIECES):
            if work.weight is None:
                fired, potential = lif(piece, potential=potential, **carried)
            else:
                fired, potential = linear_lif(piece, work.weight, work.bias, potential=potential, **carried)
            spikes.append(fired)
        return torch.cat(spikes)

    return forward


def currents(work: Work, x: torch.Tensor) -> torch.Tensor:
    """The currents from the framework's own linear layer, if the work has one."""
    return x if work.weight is None else torch.nn.functional.linear(x, work.weight, work.bias)


def compiled_steps(work: Work) -> Callable[[torch.Tensor], torch.Tensor]:
    """The plain loop over a compiled step."""
    torch._dynamo.reset()  # drop an earlier size: a step compiled too often is not compiled at all

    def step(v: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        u = NEURON.beta * v + x
        s = lif_ref.Spike.apply(u - NEURON.threshold, NEURON.surrogate, NEURON.slope, NEURON.threshold)
        return u - NEURON.threshold * s, s

    compiled = torch.compile(step, dynamic=False)

    def forward(x: torch.Tensor) -> torch.Tensor:
        v, spikes = torch.zeros_like(x[0]), []
        for current in currents(work, x).unbind(0):
            v, s = compiled(v, current)
            spikes.append(s)
        return torch.stack(spikes)

    return forward


def spikingjelly(work: Work) -> Callable[[torch.Tensor], torch.Tensor]:
    """SpikingJelly's LIFNode in multi-step mode, with its default kernel for this device."""
    base = import_module("spikingjelly.activation_based")
    names = ("functional", "neuron", "surrogate")
    functional, neuron, surrogate = (import_module(f"{base.__name__}.{name}") for name in names)
    node = neuron.LIFNode(
        tau=1 / (1 - NEURON.beta),
        decay_input=False,
        v_threshold=NEURON.threshold,
        v_reset=None,
        surrogate_function=surrogate.SuperSpike(alpha=1.0),
        step_mode="m",
    ).to(work.inputs.device)

    def forward(x: torch.Tensor) -> torch.Tensor:
        functional.reset_net(node)
        spikes: torch.Tensor = node(currents(work, x))
        return spikes

    return forward


def with_jax(work: Work) -> Pass:
    """lax.scan, forward and backward in one program; its arrays are made from torch's."""
    jax = import_module("jax")
    jax.config.update("jax_default_matmul_precision", "float32")
    jnp = jax.numpy

    @jax.custom_jvp
    def spike(distance: Any) -> Any:
        return (distance >= 0).astype(distance.dtype)

    @spike.defjvp
    def spike_jvp(primals: Any, tangents: Any) -> Any:
        return spike(primals[0]), tangents[0] / (1 + NEURON.slope * jnp.abs(primals[0])) ** 2

    def step(v: Any, x: Any) -> Any:
        u = NEURON.beta * v + x
        s = spike(u - NEURON.threshold)
        return u - NEURON.threshold * s, s

    def forward(wanted: Any, inputs: Any) -> Any:
        current = wanted[0] if work.weight is None else inputs @ wanted[0].T + wanted[1]
        return jax.lax.scan(step, jnp.zeros_like(current[0]), current)[1]

    @jax.jit
    def train(wanted: Any, inputs: Any, cotangent: Any) -> Any:
        spikes, pull = jax.vjp(lambda w: forward(w, inputs), wanted)
        return spikes, pull(cotangent)[0]

    def on_device(tensor: torch.Tensor) -> Any:
        return jnp.asarray(tensor.detach().cpu().numpy())

    given = [on_device(one) for one in work.wanted], on_device(work.inputs), on_device(work.cotangent)
    return lambda: jax.block_until_ready(train(*given))
