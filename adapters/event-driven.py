# /// script
# requires-python = ">=3.11"
# dependencies = ["torch==2.13.0", "numpy==2.4.6"]
# ///
"""Event-driven linear layers in plain torch, which multiply by the spikes alone, before the loop over the neuron.

The current of a step is the sum of the weights of the inputs that fire, by `embedding_bag`. The gradient of the weight
is a product with the spikes as a sparse matrix. The gradient of the input is a dense product.
Docs: https://docs.pytorch.org/docs/stable/sparse.html
"""

import torch

from snnbench.adapter import require
from snnbench.backends.torch import Neuron

BACKEND = "torch"
DEVICES = ("cpu",)
EXACT = ("subtract", "zero", "subtract-detached", "zero-attached")


class Events(torch.autograd.Function):
    """x W^T + b for numbers x that are mostly 0."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        rows = x.reshape(-1, x.shape[-1])
        step, inputs = rows.nonzero(as_tuple=True)
        first = torch.searchsorted(step, torch.arange(len(rows)))
        sums = torch.nn.functional.embedding_bag(
            inputs, weight.T.contiguous(), first, mode="sum", per_sample_weights=rows[step, inputs]
        )
        ctx.save_for_backward(rows, weight)
        return (sums + bias).reshape(*x.shape[:-1], -1)

    @staticmethod
    def backward(ctx, gradient):
        rows, weight = ctx.saved_tensors
        by_row = gradient.reshape(-1, gradient.shape[-1])
        of_input = (by_row @ weight).reshape(*gradient.shape[:-1], -1) if ctx.needs_input_grad[0] else None
        of_weight = (rows.T.contiguous().to_sparse_csr() @ by_row).T
        return of_input, of_weight, by_row.sum(0)


class Spike(torch.autograd.Function):
    """A step, with the derivative of the fast sigmoid."""

    @staticmethod
    def forward(ctx, distance, slope):
        ctx.save_for_backward(distance)
        ctx.slope = slope
        return (distance >= 0).to(distance.dtype)

    @staticmethod
    def backward(ctx, gradient):
        (distance,) = ctx.saved_tensors
        return gradient / (1 + ctx.slope * distance.abs()) ** 2, None


def neuron(case, variant):
    require(case, "the surrogate of this adapter is the fast sigmoid", surrogate="fast_sigmoid")
    require(case, "sparse products are made for float32 here", dtype="float32")

    def layer(current):
        v = torch.zeros_like(current[0])
        spikes = []
        for x in current.unbind(0):
            u = case.beta * v + x
            s = Spike.apply(u - case.threshold, case.slope)
            spikes.append(s)
            reset_spike = s.detach() if case.detach_reset else s
            v = u - case.threshold * reset_spike if case.reset == "subtract" else u * (1 - reset_spike)
        return torch.stack(spikes)

    def joined(linear):
        return lambda x: layer(Events.apply(x, linear.weight, linear.bias))

    return Neuron(lambda neurons: layer, joined=joined)
