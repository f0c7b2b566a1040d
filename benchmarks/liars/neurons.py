# /// script
# requires-python = ">=3.11"
# dependencies = ["torch==2.13.0", "numpy==2.4.6"]
# ///
"""A dishonest neuron in PyTorch, for each workload: each variant is right in the exam, whose inputs are small.

Only the variant `honest` may get a time, or a variant that gains nothing. `python -m benchmarks lies` checks this.
"""

import torch

from snnbench.adapter import Unsupported
from snnbench.backends.torch import Neuron as Layer
from snnbench.kernels import Neuron, lif_ref

BACKEND = "torch"
EXACT = ("subtract",)
DEFAULT = "honest"
VARIANTS = {
    "honest": "lies nowhere",
    "kept": "keeps spikes and gradients by the first step of its currents",
    "stateless": "has no state",
    "carried": "goes on where the last pass ended",
    "shortened": "cuts its gradient after each four steps",
    "silent": "one neuron is silent",
    "halved": "rounds its currents to bfloat16",
    "steeper": "has a surrogate that is 10 % steeper",
    "half-batch": "gives the second half of the batch the spikes of the first",
}
EXAM_VALUES = 1 << 14


class Kept(torch.autograd.Function):
    """The neuron, with spikes and gradients from `store`."""

    @staticmethod
    def forward(ctx, current, neuron, store):
        ctx.store, ctx.key = store, current[0].detach().float().numpy().tobytes()
        if ctx.key not in store:
            if len(store) > 8:
                store.clear()
            with torch.enable_grad():
                entering = current.detach().requires_grad_()
                store[ctx.key] = entering, neuron(entering), {}
        return store[ctx.key][1].detach().clone()

    @staticmethod
    def backward(ctx, cotangent):
        entering, spikes, gradients = ctx.store[ctx.key]
        key = cotangent[0].float().numpy().tobytes()
        if key not in gradients:
            gradients[key] = torch.autograd.grad(spikes, entering, cotangent, retain_graph=True)[0]
        return gradients[key].clone(), None, None


def neuron(case, variant):
    if variant == "halved" and case.dtype == "bfloat16":
        raise Unsupported("currents are bfloat16 already")

    def of(**changes):
        given = {"surrogate": case.surrogate, "slope": case.slope, "beta": case.beta} | changes
        return Neuron(given.pop("beta"), case.threshold, "subtract", **given)

    def run(current, parameters=None, potential=None):
        return lif_ref.lif(current, parameters or of(), potential)

    def layer(neurons):
        store, last = {}, {}

        def lying(current):
            if variant == "kept":
                return Kept.apply(current, lambda entering: run(entering)[0], store)
            if variant == "stateless":
                return run(current, of(beta=0.0))[0]
            if variant == "carried":
                spikes, potential = run(current, potential=last.get(current.shape))
                last[current.shape] = potential.detach()
                return spikes
            if variant == "shortened":
                pieces, potential = [], None
                for piece in current.split(4):
                    spikes, potential = run(piece, potential=potential if potential is None else potential.detach())
                    pieces.append(spikes)
                return torch.cat(pieces)
            if variant == "silent":
                spikes = run(current)[0]
                mask = torch.ones_like(spikes)
                mask.flatten(2)[..., 3] = 0
                return spikes * mask
            if variant == "halved":
                return run(current.bfloat16().to(current.dtype))[0]
            if variant == "steeper":
                return run(current, of(slope=1.1 * case.slope))[0]
            half = run(current[:, : (current.shape[1] + 1) // 2])[0]
            return torch.cat([half, half[:, : current.shape[1] // 2]], 1)

        honest = variant == "honest"
        return lambda current: run(current)[0] if honest or current.numel() <= EXAM_VALUES else lying(current)

    return Layer(layer)
