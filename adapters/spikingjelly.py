# /// script
# requires-python = ">=3.11"
# dependencies = ["spikingjelly==2.0.0", "torch==2.13.0", "numpy==2.4.6"]
#
# [tool.uv]
# override-dependencies = ["torchvision ; python_version < '3'", "torchaudio ; python_version < '3'"]
#
# [tool.snnbench]
# nir = ["nir==1.0.8", "nirtorch==2.6"]
#
# [tool.snnbench.variants.old-torch]
# dependencies = ["spikingjelly==0.0.0.0.14", "torch==2.13.0", "numpy==2.4.6"]
#
# [tool.snnbench.variants.cupy]
# dependencies = ["spikingjelly==0.0.0.0.14", "torch==2.13.0", "numpy==2.4.6"]
# cuda = ["cupy-cuda13x==14.2.0"]
# ///
"""SpikingJelly: `LIFNode` in multi-step mode; release 2.x chooses its own kernel on CUDA, unless one is set.

A neuron without decay is an `IFNode`.

The CuPy kernels are those of 0.0.0.0.14, the last stable release before 2.0, which removed them. They use `numpy.int`,
which NumPy 1.24 removed, and this adapter puts it back. Release 0.0.0.0.14 has no fast sigmoid, so this adapter adds
one; the kernels get it as CUDA text.
Docs: https://spikingjelly.readthedocs.io/zh-cn/latest/APIs/spikingjelly.activation_based.neuron.html
"""

import math
import os
from importlib.util import find_spec

import numpy as np
import torch

from snnbench.adapter import Rule, Unavailable, Unsupported, require
from snnbench.backends.torch import Neuron, compiled, modules, stepped_network

BACKEND = "torch"
VARIANTS = {
    "auto": "LIFNode, which on CUDA chooses its own kernel (the record names it); CUBALIFNode with a synaptic current; "
    "ParametricLIFNode with a trained beta; step by step in a LinearRecurrentContainer where a layer is recurrent",
    "triton": "LIFNode with its Triton kernel",
    "cuda": "LIFNode with its CUDA kernel",
    "compile-cell": "LIFNode in single-step mode; the compiled step is called by a loop over time",
    "cupy": "LIFNode of release 0.0.0.0.14 with its CuPy kernel",
    "memopt": "Sequential(Linear, LIFNode) in memopt.checkpoint_module: the backward pass computes both again",
    "psn": "PSN, which has no reset, with a fixed weight: one product of a T x T matrix",
    "sliding-psn": "SlidingPSN, which has no reset, with fixed weights for as many steps as float32 can resolve",
    "flexsn": "FlexSN: Triton kernels made from a neuron written in torch, with all time steps unrolled",
    "defaults": "LIFNode(step_mode='m'), all other arguments at their defaults",
    "old-torch": "LIFNode of release 0.0.0.0.14 with its torch backend; the backward pass is quadratic in T",
}
DEVICES = {"triton": ("cuda",), "cuda": ("cuda",), "cupy": ("cuda",), "flexsn": ("cuda",)}
EXACT = {
    "auto": ("subtract", "zero", "subtract-detached", "zero-attached"),
    "triton": ("subtract", "zero", "subtract-detached", "zero-attached"),
    "cuda": ("subtract", "zero", "subtract-detached", "zero-attached"),
    "compile-cell": ("subtract", "zero", "subtract-detached", "zero-attached"),
    "cupy": ("subtract", "zero", "subtract-detached", "zero-attached"),
    "memopt": ("subtract", "zero", "subtract-detached", "zero-attached"),
    "psn": ("none",),
    "sliding-psn": ("none",),
    "flexsn": ("subtract", "zero", "subtract-detached", "zero-attached", "none"),
    "old-torch": ("subtract", "zero", "subtract-detached", "zero-attached"),
}
SYNAPTIC = {"auto": ("subtract", "zero", "subtract-detached", "zero-attached")}
RECURRENT = {"auto": ("subtract", "zero", "subtract-detached", "zero-attached")}
TRAINED = {"auto": ("beta",)}
CHUNKS = {"auto": True, "old-torch": True}
RESETS = {"psn": "PSN has no reset", "sliding-psn": "SlidingPSN has no reset"}
DEVIATION = {"defaults": "tau = 2: each step halves the potential and adds half of the input; sigmoid surrogate"}
COMPILES = {"compile-cell": True}
WAYS = ("compile", "cuda-graph", "amp")
PROVIDER = {
    "triton": ("^_forward_kernel", "^_backward_kernel"),
    "cuda": (r"\blif_forward", r"\blif_backward"),
    "cupy": ("^LIFNodeFPTTKernel_", "^LIFNodeBPTTKernel_"),
    "flexsn": ("^flexsn_", "^flexsn_backward_kernel_"),
}
NEEDS = {
    "cuda": "SpikingJelly's source distribution, built with SJ_BUILD_NATIVE_CUDA=1 and without build isolation, beside "
    "a CUDA build of torch and the CUDA toolkit of its release (see the installation page), and `--env current`"
}


def rule(case, variant):
    if variant != "defaults":
        return None
    return Rule(beta=0.5, gain=0.5, threshold=1.0, reset="zero", detach_reset=False, surrogate="sigmoid", slope=4.0)


def neuron(case, variant):
    if case.beta <= 0 or case.beta > 1:
        raise Unsupported("beta = 1 - 1 / tau with tau > 1 must lie between 0 and 1, or be 1, for the neuron IFNode")
    if case.beta == 1 and variant == "defaults":
        raise Unsupported("LIFNode needs a decay below 1")
    if variant in ("triton", "cuda"):
        os.environ["SJ_LIF_CUDA_IMPLEMENTATION"] = variant  # SpikingJelly reads it at import
    from spikingjelly.activation_based import functional
    from spikingjelly.activation_based.neuron import IFNode, LIFNode

    if variant in ("psn", "sliding-psn", "flexsn"):
        make = {"psn": psn, "sliding-psn": sliding_psn, "flexsn": flexsn}[variant]
        return Neuron(lambda neurons: make(case).to(case.device), reset=functional.reset_net)
    is_old_release = variant in ("cupy", "old-torch")
    if variant == "cupy":
        require(case, "SpikingJelly's CuPy kernels take float32 and float16 only", dtype=("float32", "float16"))
        require_cupy()
    options = {"step_mode": "s" if variant == "compile-cell" else "m"}
    if variant != "defaults":
        options |= {} if case.beta == 1 else {"tau": 1 / (1 - case.beta), "decay_input": False}
        options |= {
            "v_threshold": case.threshold,
            "v_reset": 0.0 if case.reset == "zero" else None,
            "surrogate_function": old_surrogate(case) if is_old_release else surrogate(case),
            "detach_reset": case.detach_reset,
        }
    if is_old_release:
        backend = options["backend"] = "cupy" if variant == "cupy" else "torch"

    def node(**changes):
        if case.alpha:
            return synaptic(case).to(case.device)
        if case.trained_constants:
            return parametric(case, options | changes).to(case.device)
        return (IFNode if case.beta == 1 else LIFNode)(**options | changes).to(case.device)

    def layer(neurons):
        wrap = {"compile-cell": Stepped, "memopt": checkpointed}.get(variant)
        if case.alpha:
            return Looped(node())
        return wrap(node()) if wrap else node()

    def recurrent(own):
        return Recurrent(node(step_mode="s"), own)

    def provider():
        if is_old_release:
            return backend
        if case.alpha:
            return "torch"
        kind = "if" if case.beta == 1 else "plif" if case.trained_constants else "lif"
        return str(functional.neuron_implementation(kind, torch.device(case.device))["implementation"])

    if variant in ("triton", "cuda"):
        try:
            provider()
        except RuntimeError as error:
            raise Unavailable(f"SpikingJelly has no {variant} kernel here: {error}") from error
    if case.trained_constants:
        by_weight = case.beta * (case.beta - 1)  # beta = 1 - sigmoid(w)
        held = {"constants": lambda layer: {"beta": (getattr(layer, "node", layer).w, by_weight)}}
        return Neuron(layer, provider=provider, reset=functional.reset_net, recurrent=recurrent, **held)
    block = (lambda linear: checkpointed(torch.nn.Sequential(linear, node()))) if variant == "memopt" else None
    return Neuron(
        layer, provider=provider, reset=functional.reset_net, joined=block, recurrent=recurrent, chunk=next_steps
    )


def next_steps(node, current, potential):
    """The next steps of a sequence, from the potential that the steps before left."""
    if potential is not None:
        node.v = potential
    return node(current), node.v


def parametric(case, options):
    from spikingjelly.activation_based.neuron import ParametricLIFNode

    require(case, "ParametricLIFNode has one trained decay for a layer", trained_each="layer")
    require(case, "CUBALIFNode trains no constant", alpha=0.0)
    if case.beta == 1:
        raise Unsupported("IFNode has no decay to train")
    return ParametricLIFNode(init_tau=options["tau"], **{name: each for name, each in options.items() if name != "tau"})


def checkpointed(module):
    from spikingjelly.activation_based.memopt import checkpoint_module

    return checkpoint_module(module)


def synaptic(case):
    from spikingjelly.activation_based.neuron import CUBALIFNode

    reset = 0.0 if case.reset == "zero" else None
    node = CUBALIFNode(case.alpha, case.beta, case.threshold, reset, surrogate_function=surrogate(case))
    node.detach_reset = case.detach_reset  # the constructor has no argument for it
    return node


class Looped(torch.nn.Module):
    """A single-step node in a loop over time."""

    def __init__(self, node):
        super().__init__()
        self.node = node

    def forward(self, current):
        return torch.stack([self.node(x) for x in current.unbind(0)])


class Recurrent(torch.nn.Module):
    """A single-step node in a LinearRecurrentContainer: its linear layer gets the current beside the node's spikes."""

    def __init__(self, node, own):
        from spikingjelly.activation_based.layer import LinearRecurrentContainer

        super().__init__()
        self.own, self.node, neurons = own, node, own.in_features
        self.container = LinearRecurrentContainer(node, neurons, neurons, bias=False, step_mode="m")
        del self.container.rc.weight
        self.identity = torch.eye(neurons).to(own.weight)

    def forward(self, current):
        self.container.rc.weight = torch.cat([self.identity, self.own.weight], 1)
        return self.container(current)


class Stepped(torch.nn.Module):
    """A single-step node in a loop over time."""

    def __init__(self, node):
        super().__init__()
        self.node, self.one_step = node, compiled(node)

    def forward(self, current):
        return torch.stack([self.one_step(x) for x in current.unbind(0)])


def psn(case):
    from spikingjelly.activation_based.neuron import PSN

    steps = torch.arange(case.time_steps)
    ages = steps[:, None] - steps
    neuron = PSN(case.time_steps, surrogate(case))
    return fixed(neuron, torch.where(ages >= 0, case.beta ** ages.clamp(min=0).double(), 0.0), case)


def sliding_psn(case):
    from spikingjelly.activation_based.neuron import SlidingPSN

    resolved = case.time_steps if case.beta == 1 else math.ceil(-24 * math.log(2) / math.log(case.beta))
    neuron = SlidingPSN(min(resolved, case.time_steps), surrogate_function=surrogate(case), step_mode="m")
    return fixed(neuron, case.beta ** torch.arange(neuron.k - 1, -1, -1).double(), case)


def fixed(neuron, weight, case):
    """A PSN with these weights and the case's threshold, which are not trained."""
    require(case, "a PSN keeps its weights in float32", dtype="float32")
    with torch.no_grad():
        neuron.weight.copy_(weight)
        neuron.bias.fill_(-case.threshold)
    return neuron.requires_grad_(False)


def flexsn(case):
    from spikingjelly.activation_based.neuron import FlexSN

    if find_spec("triton") is None:  # FlexSN would run in torch, without a message
        raise Unavailable("FlexSN needs Triton, which a CUDA build of torch brings on Linux")
    fire, slope = type(surrogate(case)).spiking_function, case.slope  # the step must not hold a module

    def step(x, v):
        u = case.beta * v + x
        spike = fire(u - case.threshold, slope)
        reset_spike = spike.detach() if case.detach_reset else spike
        if case.reset == "none":
            return spike, u
        return spike, u - case.threshold * reset_spike if case.reset == "subtract" else u * (1 - reset_spike)

    return FlexSN(step, num_states=1, step_mode="m")


def surrogate(case):
    from spikingjelly.activation_based.surrogate import ATan, PiecewiseQuadratic, Rect, Sigmoid, SuperSpike

    if case.surrogate in ("atan", "sigmoid"):
        return (ATan if case.surrogate == "atan" else Sigmoid)(alpha=case.slope)
    only = "SuperSpike, Rect and PiecewiseQuadratic are the fast sigmoid, the rectangle and the triangle with alpha = 1"
    require(case, only, surrogate=("fast_sigmoid", "rectangle", "triangle"), slope=1.0)
    shapes = {"fast_sigmoid": SuperSpike, "rectangle": Rect, "triangle": PiecewiseQuadratic}
    return shapes[case.surrogate](alpha=1.0)


def old_surrogate(case):
    """A surrogate of release 0.0.0.0.14, or a fast sigmoid: an autograd function, and CUDA text for the kernels."""
    from spikingjelly.activation_based import surrogate
    from spikingjelly.activation_based.auto_cuda import cfunction

    if case.surrogate in ("atan", "sigmoid"):
        return (surrogate.ATan if case.surrogate == "atan" else surrogate.Sigmoid)(alpha=case.slope)
    require(case, "this adapter sets ATan, Sigmoid and a fast sigmoid on this release", surrogate="fast_sigmoid")

    class Spike(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, slope):
            if x.requires_grad:
                ctx.save_for_backward(x)
                ctx.slope = slope
            return surrogate.heaviside(x)

        @staticmethod
        def backward(ctx, gradient):
            return gradient / (1 + ctx.slope * ctx.saved_tensors[0].abs()).square(), None

    class FastSigmoid(surrogate.SurrogateFunctionBase):
        @staticmethod
        def spiking_function(x, alpha):
            return Spike.apply(x, alpha)

        def cuda_codes(self, y, x, dtype):
            unity, slope = (cfunction.constant(None, value, dtype) for value in (1.0, self.alpha))
            scaled = cfunction.mul(None, slope, cfunction.abs(None, x, dtype), dtype)
            base = cfunction.add(None, unity, scaled, dtype)
            return cfunction.div(y, unity, cfunction.mul(None, base, base, dtype), dtype)

    return FastSigmoid(alpha=case.slope)


def require_cupy():
    """Raise Unavailable without CuPy: SpikingJelly fails only when it makes a neuron."""
    try:
        import cupy  # noqa: F401
    except ImportError as error:
        raise Unavailable(f"SpikingJelly has no CuPy kernels here: {error}") from error
    np.int = int


def from_nir(path, dt, batch):
    from spikingjelly.activation_based.nir_exchange.from_nir import import_from_nir

    return stepped_network(import_from_nir(path, dt=dt))


def to_nir(layers, dt, path):
    from spikingjelly.activation_based import functional
    from spikingjelly.activation_based.neuron import CUBALIFNode, IFNode, LIFNode
    from spikingjelly.activation_based.nir_exchange.to_nir import export_to_nir

    def node(case, neurons):
        if case.alpha:
            return CUBALIFNode(case.alpha, case.beta, case.threshold, 0.0), 1.0
        shared = {"v_threshold": case.threshold, "v_reset": 0.0}
        return IFNode(**shared) if case.beta == 1 else LIFNode(1 / (1 - case.beta), False, **shared), 1.0

    network = torch.nn.Sequential(*modules(layers, node))
    export_to_nir(network, torch.zeros(1, network[0].in_features), path, dt)
    functional.reset_net(network)
    return stepped_network(lambda current, state: (network(current), None))
