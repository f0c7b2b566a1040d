# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "rockpool==3.1.0", "torch==2.13.0", "jax==0.10.2", "numpy==2.4.6", "scipy==1.17.1",
# ]
#
# [tool.uv]
# override-dependencies = ["samna ; python_version < '3'"]
#
# [tool.snnbench]
# api = 2
# cuda = ["jax[cuda13]==0.10.2"]
# nir = ["nir==1.0.4", "nirtorch==2.0.2"]
#
# [tool.snnbench.variants.exodus]
# dependencies = [
#     "rockpool==3.1.0", "torch==2.13.0", "numpy==2.4.6", "scipy==1.17.1", "sinabs==3.1.3", "nir==1.0.4",
#     "setuptools==84.2.1",
# ]
# override-dependencies = ["samna ; python_version < '3'", "torchvision ; python_version < '3'"]
# cuda = [
#     "nvidia-cuda-nvcc==13.0.88", "nvidia-cuda-crt==13.0.88", "nvidia-nvvm==13.0.88", "nvidia-cuda-cccl==13.0.85",
#     "ninja==1.13.2",
# ]
# built = ["sinabs-exodus==2.0.0"]
# ///
"""Rockpool: `LIFNeuronTorch`, `LIFJax` and `LIFExodus` behind a linear layer.

Each neuron fires at most once per step, and its time constants are fixed. LIFJax and LIFExodus have a synapse;
here its current lasts one step. LIFJax's surrogate gradient cannot be chosen. LIFExodus has no argument for it either,
but an attribute, and this adapter sets the attribute.
Docs: https://rockpool.ai/reference/_autosummary/nn.modules.LIFNeuronTorch.html
"""

import math

from snnbench.adapter import Rule, Unavailable, Unsupported, require
from snnbench.cases.surrogate import FORMULAS

BACKEND = {"torch": "torch", "jax": "jax", "exodus": "torch", "defaults": "torch"}
ORDER = "BTN"
VARIANTS = {
    "torch": "LinearTorch and LIFNeuronTorch; LIFTorch with a synaptic current or in a network with recurrent layers",
    "jax": "LinearJax and LIFJax",
    "exodus": "LinearTorch and LIFExodus with the CUDA kernels of sinabs-exodus; the backward pass is quadratic in T",
    "defaults": "LinearTorch and LIFTorch(shape), all other arguments at their defaults",
}
DEVICES = {"exodus": ("cuda",)}
EXACT = ("subtract",)
SYNAPTIC = {"torch": ("subtract",)}
RECURRENT = {"torch": ("subtract",)}
TRAINED = {"torch": ("beta", "threshold")}
RESETS = "Rockpool's neurons subtract, with the gradient attached"
DEVIATION = {
    "defaults": "a synapse and a membrane of 20 ms at steps of 1 ms, several spikes a step, one-sided surrogate"
}
WAYS = ("compile", "amp")  # no "cuda-graph": reset_state creates the state on the host and copies it to the device
PROVIDER = {"exodus": ("lifForwardKernel",)}
DT = 0.001
SYNAPSE_DECAY = 2.0**-24
"""The share of its current that a synapse keeps per step, below the resolution of float32."""


def rule(case, variant):
    if variant != "defaults":
        return None
    decay = math.exp(-DT / 0.02)
    return Rule(
        beta=decay,
        gain=decay,
        synapse=decay,
        threshold=1.0,
        reset="subtract",
        detach_reset=False,
        most_spikes=1 << 16,
        surrogate="one_sided",
        slope=1.0,
    )


def build(case, weights, variant):
    if variant == "jax":
        return with_jax(case, weights)
    from rockpool.nn.combinators import Sequential
    from rockpool.nn.modules import LinearTorch

    from snnbench.backends.torch import Network

    make, gain = of_torch(case, variant)
    linears, modules, own, constants = [], [], [], []
    for layer in weights:
        weight = (layer.weight.T * gain).contiguous()
        linears.append(LinearTorch(weight.shape, weight=weight, bias=layer.bias * gain, has_bias=True))
        back = {} if layer.recurrent is None else {"has_rec": True, "w_rec": (layer.recurrent.T * gain).contiguous()}
        modules += [linears[-1], make(case, weight.shape[1], **back)]
        own.append(Own(modules[-1]) if back else None)
        constants += trained(case, modules[-1])
    network, provider = Sequential(*modules).to(case.device), "exodus" if variant == "exodus" else "torch"
    reset = network.reset_state
    parts = {"provider": provider, "reset": reset, "recurrent": own, "constants": constants}
    return Network(Spikes(network), linears, gain, transposed=True, **parts)


class Own:
    """The recurrent weights [N_in, N_out] of LIFTorch, under the name that a linear layer uses."""

    def __init__(self, neurons):
        self.weight = neurons.w_rec


def neuron(case, variant):
    if variant == "jax":
        from snnbench.backends.jax import Neuron

        make, gain = jax_neurons(case)
        return Neuron(lambda neurons: Spikes(make(neurons)), gain)

    from snnbench.backends.torch import Neuron

    make, gain = of_torch(case, variant)
    provider = "exodus" if variant == "exodus" else "torch"
    return Neuron(lambda neurons: Spikes(make(case, neurons).to(case.device)), gain, provider, Spikes.reset)


class Spikes:
    """A layer of neurons that returns its spikes, without its state and its records."""

    def __init__(self, neurons):
        self.neurons = neurons

    def __call__(self, current):
        return self.neurons(current)[0]

    def reset(self):
        self.neurons.reset_state()


def of_torch(case, variant):
    """A function that makes the neurons, and the gain of their current."""
    if variant == "defaults":
        from rockpool.nn.modules import LIFTorch

        return lambda case, neurons: LIFTorch((neurons,)), 1.0
    check(case)
    if variant == "torch" and (case.alpha or case.is_recurrent):
        return synaptic_neurons, 1 / (case.alpha or SYNAPSE_DECAY)  # the synapse decays before the neuron reads it
    return (exodus_neurons, 1 / SYNAPSE_DECAY) if variant == "exodus" else (torch_neurons, 1.0)


def check(case):
    require(case, "this adapter supports float32 only", dtype="float32")
    if not 0 < case.beta < 1:
        raise Unsupported("beta = exp(-dt / tau_mem) must lie between 0 and 1")


def torch_neurons(case, neurons):
    import torch
    from rockpool.nn.modules import LIFNeuronTorch

    tau_mem = held(case, "beta", -DT / math.log(case.beta), neurons)
    return LIFNeuronTorch((neurons,), tau_mem=tau_mem, **options(case, torch, neurons))


def synaptic_neurons(case, neurons, **recurrent):
    import torch
    from rockpool.nn.modules import LIFTorch

    decays = {"leak_mode": "decays", "alpha": held(case, "beta", case.beta, neurons)}
    decays["beta"] = constant(case.alpha or SYNAPSE_DECAY)
    return LIFTorch((neurons, neurons), **decays, **recurrent, **options(case, torch, neurons))


def constant(value):
    """A parameter that is not trained, on the host, because Rockpool converts it to NumPy; `to` moves it later."""
    import torch
    from rockpool.parameters import Constant

    return Constant(torch.tensor(value))


def held(case, name, value, neurons):
    """A constant of the neurons: a parameter if the case trains it."""
    import torch

    if name not in case.trained_constants:
        return constant(value)
    return torch.full((neurons,) if case.trained_each == "neuron" else (), value)


def trained(case, neurons):
    """The trained parameters of a module, each with the derivative of the case's constant by it."""
    tensors = {"threshold": (neurons.threshold, 1.0)} if "threshold" in case.trained_constants else {}
    if "beta" in case.trained_constants and hasattr(neurons, "alpha"):
        tensors["beta"] = neurons.alpha, 1.0
    elif "beta" in case.trained_constants:  # beta = exp(-DT / tau_mem)
        tensors["beta"] = neurons.tau_mem, case.beta * math.log(case.beta) ** 2 / DT
    return [tensors[name] for name in case.trained_constants]


def options(case, torch, neurons):
    """The options that neurons with and without a synapse share."""

    class Spike(torch.autograd.Function):
        """A spike with the surrogate's gradient, for `spike_generation_fn`, the documented hook."""

        @staticmethod
        def forward(ctx, potential, threshold, window, max_spikes):
            ctx.save_for_backward(potential, threshold)
            return (potential >= threshold).to(potential.dtype)

        @staticmethod
        def backward(ctx, gradient):
            potential, threshold = ctx.saved_tensors
            if case.surrogate == "fast_sigmoid":
                passed = gradient / (1 + case.slope * (potential - threshold).abs()) ** 2
            else:
                passed = gradient * FORMULAS[case.surrogate](potential - threshold, case.slope, case.threshold, torch)
            of_threshold = -passed.sum_to_size(threshold.shape) if "threshold" in case.trained_constants else None
            return passed, of_threshold, None, None

    return {
        "threshold": held(case, "threshold", case.threshold, neurons),
        "bias": constant(0.0),
        "dt": DT,
        "spike_generation_fn": Spike,
        "max_spikes_per_dt": torch.tensor(1.0, device=case.device),
    }


def exodus_neurons(case, neurons):
    import torch
    from rockpool.nn.modules import LIFExodus
    from rockpool.parameters import Constant

    try:
        import sinabs.exodus.spike  # noqa: F401  # without it LIFExodus can be constructed, but not run
    except ImportError as error:
        raise Unavailable(f"sinabs-exodus, which is compiled against torch, cannot be imported: {error}") from error
    module = LIFExodus(
        (neurons,),
        tau_mem=None,
        tau_syn=None,
        leak_mode="decays",
        alpha=Constant(case.beta),
        beta=Constant(SYNAPSE_DECAY),  # the synapse decays before the neuron reads it
        threshold=case.threshold,
        bias=Constant(0.0),
        max_spikes_per_dt=torch.tensor(1.0),
        dt=DT,
    )
    module.spike_generation_fn = lambda v, threshold: FORMULAS[case.surrogate](
        v - threshold, case.slope, case.threshold, torch
    )
    return module


def with_jax(case, weights):
    from rockpool.nn.combinators import Sequential
    from rockpool.nn.modules import LinearJax

    from snnbench.backends.jax import Network

    make, gain = jax_neurons(case)
    modules = []
    for layer in weights:
        outputs, inputs = layer.weight.shape
        linear = LinearJax((inputs, outputs), weight=layer.weight.T * gain, bias=layer.bias * gain, has_bias=True)
        modules += [linear, make(outputs)]
    network = Sequential(*modules)
    names = [name for name in network.parameters() if "Linear" in name]
    params = {name: network.parameters()[name] for name in names}

    def apply(params, x):
        return network.set_attributes(params)(x)[0]

    return Network(apply, params, lambda tree: [(tree[n]["weight"], tree[n]["bias"]) for n in names], gain, True)


def jax_neurons(case):
    """A function that makes the neurons, and the gain of their current."""
    import jax.numpy as jnp
    from rockpool.nn.modules import LIFJax

    check(case)
    require(case, "LIFJax's surrogate gradient is always one_sided with slope 1", surrogate="one_sided", slope=1.0)
    tau_syn = jnp.asarray(-DT / math.log(SYNAPSE_DECAY))

    def make(neurons):
        return LIFJax(
            (neurons,),
            tau_mem=jnp.asarray(-DT / math.log(case.beta)),
            tau_syn=tau_syn,
            threshold=jnp.asarray(case.threshold),
            bias=jnp.asarray(0.0),
            dt=DT,
            max_spikes_per_dt=1.0,
        )

    return make, float(1 / jnp.exp(-DT / tau_syn))  # the synapse decays before the neuron reads it


def from_nir(path, dt, batch):
    import torch
    from rockpool.nn.modules.torch.nir import from_nir as import_graph

    network = import_graph(path)  # it has no argument for dt

    def run(spikes):
        output, _ = network(torch.from_numpy(spikes).transpose(0, 1))
        return output.detach().transpose(0, 1)

    return run


def to_nir(layers, dt, path):
    import nir
    import torch
    from rockpool.nn.combinators import Sequential
    from rockpool.nn.modules import LIFNeuronTorch, LIFTorch, LinearTorch
    from rockpool.nn.modules.torch.nir import to_nir as export

    modules = []
    for weight, bias, case in layers:
        check(case)
        gain = 1 / case.alpha if case.alpha else 1.0  # the current decays before it is read
        weight, bias = torch.from_numpy(weight.T * gain), torch.from_numpy(bias * gain)
        neurons = len(bias)
        options = {"tau_mem": constant(-dt / math.log(case.beta)), "threshold": constant(case.threshold), "dt": dt}
        options |= {"bias": constant(0.0), "max_spikes_per_dt": torch.tensor(1.0)}
        modules.append(LinearTorch(weight.shape, weight=weight.contiguous(), bias=bias, has_bias=True))
        if case.alpha:
            tau_syn = constant(-dt / math.log(case.alpha))
            modules.append(LIFTorch((neurons, neurons), tau_syn=tau_syn, **options))
        else:
            modules.append(LIFNeuronTorch((neurons,), **options))
    network = Sequential(*modules)
    nir.write(path, export(network))
    network.reset_state()  # the exporter ran it

    def run(spikes):
        return network(torch.from_numpy(spikes).transpose(0, 1))[0].detach().transpose(0, 1)

    return run
