# /// script
# requires-python = ">=3.11"
# dependencies = ["torch==2.13.0", "numpy==2.4.6"]
# ///
"""Temporal fusion (Li et al. 2024): one CUDA kernel for all steps of a LIF, and one for its gradient.

The library is not a package but a compiled module with two functions; a `torch.autograd.Function` here calls them.
Each writes to contiguous float32 tensors, time first, on the default stream of the current device. The gradient is
that of a reset to zero that is not detached, with a surrogate that is a rectangle one wide and one high. The version in
records is that of torch.
Docs: https://github.com/EMI-Group/snn-temporal-fusion
"""

import torch

from snnbench.adapter import Unavailable, Unsupported, require
from snnbench.backends.torch import Neuron

BACKEND = "torch"
DEVICES = ("cuda",)
EXACT = ("zero-attached",)
RESETS = "temporal fusion resets to zero, with the gradient attached"
PROVIDER = ("fusedForwardLIFKernel", "fusedBackwardLIFKernel")
NEEDS = (
    "the module temporal_fusion_kernel, compiled from single_gpu/kernel of github.com/EMI-Group/snn-temporal-fusion "
    "with the torch and the Python that run it, installed beside them, and `--env current`"
)
REST = 0.0


def neuron(case, variant):
    require(case, "temporal fusion's surrogate is always the rectangle with slope 1", surrogate="rectangle", slope=1.0)
    require(case, "temporal fusion's kernels take float32 only", dtype="float32")
    if case.threshold <= REST:
        raise Unsupported("the neuron fires before the first step: its resting potential, 0, reaches the threshold")
    try:
        import temporal_fusion_kernel as kernel
    except ImportError as error:
        raise Unavailable(f"needs {NEEDS} ({error})") from error
    beta, threshold = case.beta, case.threshold

    class Fused(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, keeps_potentials):
            x = x.contiguous()
            spikes = torch.empty_like(x)
            v = torch.empty_like(x if keeps_potentials else x[0])  # the potentials of all steps, or of the last only
            with torch.cuda.device_of(x):
                kernel.fusedForwardLIF(x, v, spikes, len(x), beta, threshold, REST, keeps_potentials)
            ctx.save_for_backward(spikes, v)
            return spikes

        @staticmethod
        def backward(ctx, gradient):
            spikes, v = ctx.saved_tensors
            gradient = gradient.contiguous()
            input_gradient = torch.empty_like(gradient)
            with torch.cuda.device_of(gradient):
                kernel.fusedBackwardLIF(gradient, input_gradient, spikes, v, len(spikes), beta, threshold)
            return input_gradient, None

    def layer(current):
        return Fused.apply(current, torch.is_grad_enabled())

    return Neuron(lambda neurons: layer, provider="temporal_fusion_kernel")
