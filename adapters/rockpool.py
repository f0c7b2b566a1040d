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
# cuda = ["jax[cuda13]==0.10.2"]
# ///
"""Rockpool: `LIFNeuronTorch` and `LIFJax`, behind a linear layer, with single spikes and constant time constants.

LIFJax has a synapse, which is made to forget within a step, and a surrogate gradient of its own that cannot be chosen.
Docs: https://rockpool.ai/reference/_autosummary/nn.modules.LIFNeuronTorch.html
"""

import math

from snnbench.adapter import Unsupported, require

BACKEND = {"torch": "torch", "jax": "jax"}
ORDER = "BTN"
VARIANTS = {"torch": "LinearTorch and LIFNeuronTorch", "jax": "LinearJax and LIFJax"}
DT = 0.001
FORGETTING = 2.0**-24
"""What LIFJax's synapse keeps of its current from one step to the next: below float32's resolution."""


def build(case, weights, variant):
    require(case, "Rockpool's neurons subtract, with the gradient attached", profile="subtract")
    require(case, "this adapter runs float32", dtype="float32")
    if not 0 < case.beta < 1:
        raise Unsupported("beta = exp(-dt / tau_mem) lies between 0 and 1")
    return {"torch": with_torch, "jax": with_jax}[variant](case, weights)


def with_torch(case, weights):
    import torch
    from rockpool.nn.combinators import Sequential
    from rockpool.nn.modules import LIFNeuronTorch, LinearTorch
    from rockpool.parameters import Constant

    from snnbench.backends.torch import Network

    require(case, "the fast sigmoid is what this adapter sets", surrogate="fast_sigmoid")

    class Spike(torch.autograd.Function):
        """The documented seam for a surrogate of one's own: `spike_generation_fn`."""

        @staticmethod
        def forward(ctx, potential, threshold, window, max_spikes):
            ctx.save_for_backward(potential, threshold)
            return (potential >= threshold).to(potential.dtype)

        @staticmethod
        def backward(ctx, gradient):
            potential, threshold = ctx.saved_tensors
            return gradient / (1 + case.slope * (potential - threshold).abs()) ** 2, None, None, None

    def constant(value):
        return Constant(torch.tensor(value, device=case.device))

    linears, modules = [], []
    for layer in weights:
        shape = layer.weight.T.shape
        linear = LinearTorch(shape, weight=layer.weight.T.contiguous(), bias=layer.bias.clone(), has_bias=True)
        neuron = LIFNeuronTorch(
            (shape[1],),
            tau_mem=constant(-DT / math.log(case.beta)),
            threshold=constant(case.threshold),
            bias=constant(0.0),
            dt=DT,
            spike_generation_fn=Spike,
            max_spikes_per_dt=torch.tensor(1.0, device=case.device),
        )
        linears.append(linear)
        modules += [linear, neuron]
    network = Sequential(*modules).to(case.device)

    def forward(x):
        network.reset_state()
        return network(x)[0]

    return Network(forward, linears, transposed=True)


def with_jax(case, weights):
    import jax.numpy as jnp
    from rockpool.nn.combinators import Sequential
    from rockpool.nn.modules import LIFJax, LinearJax

    from snnbench.backends.jax import Network

    require(case, "LIFJax's surrogate gradient is fixed to one_sided", surrogate="one_sided", slope=1.0)
    tau_syn = jnp.asarray(-DT / math.log(FORGETTING))
    gain = float(1 / jnp.exp(-DT / tau_syn))  # the synapse decays before it is read
    modules = []
    for layer in weights:
        outputs, inputs = layer.weight.shape
        linear = LinearJax((inputs, outputs), weight=layer.weight.T * gain, bias=layer.bias * gain, has_bias=True)
        neuron = LIFJax(
            (outputs,),
            tau_mem=jnp.asarray(-DT / math.log(case.beta)),
            tau_syn=tau_syn,
            threshold=jnp.asarray(case.threshold),
            bias=jnp.asarray(0.0),
            dt=DT,
            max_spikes_per_dt=1.0,
        )
        modules += [linear, neuron]
    network = Sequential(*modules)
    names = [name for name in network.parameters() if "Linear" in name]
    params = {name: network.parameters()[name] for name in names}

    def apply(params, x):
        return network.set_attributes(params)(x)[0]

    return Network(apply, params, lambda tree: [(tree[n]["weight"], tree[n]["bias"]) for n in names], gain, True)
