# /// script
# requires-python = ">=3.11"
# dependencies = ["torch==2.13.0", "numpy==2.4.6"]
#
# [tool.snnbench]
# cuda = ["cuda-core[cu13]==1.2.2"]
# modules = ["kernels"]
# ///
"""snnbench's own yardstick: the linear layer and the neuron as one differentiable function.

One kernel runs all time steps of the forward pass, another all steps of the backward pass. We wrote it to show the
speed that the hardware allows; the harness gives it no privilege.
Docs: https://docs.pytorch.org/docs/stable/notes/extending.html
"""

from functools import partial

import torch

from snnbench import kernels
from snnbench.adapter import Unsupported, require
from snnbench.backends.torch import Neuron, trained

BACKEND = "torch"
VARIANTS = {
    "cpu": "C kernel over stretches of time that fit into the cache, and keeps u - threshold in the state's format; "
    "one of its own for recurrent layers and synaptic currents",
    "cpu-half": "C kernel that keeps u - threshold in 16 bits",
    "cpu-lowmem": "C kernel that keeps one potential per stretch of time and recomputes the currents",
    "event": "C kernel that multiplies by the inputs that are not 0 alone",
    "torch": "PyTorch operations only, on any device",
    "triton": "Triton kernel",
    "cuda": "CUDA C++ kernel that keeps u - threshold as precise as the state",
    "cuda-half": "CUDA C++ kernel that keeps u - threshold in 16 bits",
    "cuda-lowmem": "CUDA C++ kernel that keeps one potential per stretch of time and recomputes the currents",
}
DEVICES = {
    "cpu": ("cpu",),
    "cpu-half": ("cpu",),
    "cpu-lowmem": ("cpu",),
    "event": ("cpu",),
    "triton": ("cuda",),
    "cuda": ("cuda",),
    "cuda-half": ("cuda",),
    "cuda-lowmem": ("cuda",),
}
WAYS = {"cuda-graph": "cuda"}
EXACT = ("subtract", "zero", "subtract-detached", "zero-attached")
CHUNKS = True
SYNAPTIC = {
    "cpu": ("subtract", "zero", "subtract-detached", "zero-attached"),
    "torch": ("subtract", "zero", "subtract-detached", "zero-attached"),
    "triton": ("subtract", "zero", "subtract-detached", "zero-attached"),
    "cuda": ("subtract", "zero", "subtract-detached", "zero-attached"),
}
RECURRENT = {
    "cpu": ("subtract", "zero", "subtract-detached", "zero-attached"),
    "torch": ("subtract", "zero", "subtract-detached", "zero-attached"),
    "triton": ("subtract", "zero", "subtract-detached", "zero-attached"),
    "cuda": ("subtract", "zero", "subtract-detached", "zero-attached"),
}
TRAINED = {
    "cpu": ("beta", "threshold"),
    "event": ("beta", "threshold"),
    "torch": ("beta", "threshold"),
    "triton": ("beta", "threshold"),
    "cuda": ("beta", "threshold"),
}
DEVIATION = {
    "cpu-half": "keeps u - threshold in 16 bits for the backward pass: spikes are exact, gradients rounded",
    "cuda-half": "keeps u - threshold in 16 bits for the backward pass: spikes are exact, gradients rounded",
}
PROVIDER = {
    "triton": ("^_forward", "^_backward"),
    "cuda": ("lif_forward", "lif_backward"),
    "cuda-half": ("lif_forward", "lif_backward"),
    "cuda-lowmem": ("lif_forward", "lif_backward"),
}
KEEPS = {"half": "bfloat16", "lowmem": "nothing"}


def settings(case, variant):
    """The keyword arguments of a layer."""
    require(case, "fused computes only neurons with a reset", profile=EXACT)
    kernel, _, keep = variant.partition("-")
    kernels.require(kernel, torch.device(case.device), getattr(torch, case.dtype), at_full_speed=True)
    kernels.reuse_memory()  # keeps the memory of large CPU arrays from one pass to the next
    names = ("beta", "threshold", "reset", "detach_reset", "surrogate", "slope")
    numbers = {name: getattr(case, name) for name in names}
    return numbers | {"kernel": kernel, "keep": KEEPS.get(keep, "auto")}


def neuron(case, variant):
    options = settings(case, variant)
    provider = f"snnbench:{options['kernel']}"
    numbers = {name: each for name, each in options.items() if name != "keep"}
    synaptic = partial(kernels.recurrent_lif, alpha=case.alpha, **numbers)
    if case.alpha or case.is_recurrent:
        require(case, "recurrent_lif computes in float32 and float64", dtype=("float32", "float64"))
        require(case, "recurrent_lif trains no constant", trained="none")
    if case.trained_constants:
        require(case, "the kernels train one number of a layer", trained_each="layer")

    def layer(neurons):
        if variant == "event":
            raise Unsupported("event is about products with the inputs, and this work leaves them to the framework")
        return partial(kernels.lif, **options)

    def recurrent(own):
        return lambda current: synaptic(current, own.weight)

    if case.alpha:
        return Neuron(lambda neurons: synaptic, provider=provider, recurrent=recurrent)

    if case.trained_constants:
        return Neuron(
            layer,
            provider=provider,
            joined=lambda linear: partial(
                kernels.linear_lif,
                weight=linear.weight,
                bias=linear.bias,
                **options | trained(case, linear.out_features),
            ),
            constants=lambda layer: {name: layer.keywords[name] for name in case.trained_constants},
        )
    return Neuron(
        layer,
        provider=provider,
        joined=lambda linear: partial(kernels.linear_lif, weight=linear.weight, bias=linear.bias, **options),
        recurrent=recurrent,
        chunk=lambda layer, x, potential: layer(x, potential=potential, return_potential=True),
    )
