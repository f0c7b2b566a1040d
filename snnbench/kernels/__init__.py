"""Fused leaky integrate-and-fire layers for PyTorch: forward and backward over all time steps in one kernel each.

    from snnbench.kernels import lif, linear_lif

    spikes = linear_lif(inputs, weight, bias, beta=0.9, threshold=1.0)      # [T, B, N_in] -> [T, B, N_out]
    spikes = lif(currents, beta=0.9, threshold=1.0, reset="zero")           # [T, B, N]    -> [T, B, N]

Both are differentiable, work on any device, and are one operator (`torch.ops.snnbench.lif`) to torch.compile. The
equations are in kernels/neuron.py, the surrogates in surrogate.py.

**Kernels** are modules that compute a stretch of time steps, with two functions of one signature. Tensors are
contiguous, [T, M] with M = batch * neurons independent columns; state is float32, or float64 if currents are:

    forward(current, potential, spikes, saved, neuron, bias=None)
        current [T, M]    potential [M]: v before the first step, v after the last on return
        spikes [T, M]     written       saved [T, M] or None: written, u - threshold, whose sign bit is the spike;
                                        may be `current` itself
        bias [M] or None: added to the current of every step
    backward(cotangent, saved, carried, gradient, neuron, sums=NO_SUMS)
        cotangent [T, M]: dL/ds         carried [M]: dL/dv after the last step, dL/dv before the first on return
        gradient [T, M]: written, dL/dx; may be `saved` itself
        sums.bias, .beta, .threshold [M] or None: added to, the column's dL/dbias, dL/dbeta, dL/dthreshold
        sums.start [M]: v before the first step, needed with sums.beta

A function of a kernel takes tensors one by one, as its contract names them, since C and Triton do.

`torch` needs no compiler and runs everywhere; `cpu` is C; `event` is the same neuron after products with the inputs
that are not 0 alone, in float32; `triton` and `cuda` are for GPUs. Tests compare them with the plain loop of
lif_ref.py. arguments.py checks a user's arguments, choice.py picks a kernel, stretches.py says what is kept.
pipeline.py adds the linear layer, linear_cpu.py does so in one C call and one_stretch.py for a GPU; alone.py runs the
neuron alone. eager.py adds autograd, operator.py does so for compilers, linear_cpu.cpp for the C call, and layer.py is
the user's interface. recurrent.py has neurons with a synaptic current and recurrent weights; GPU kernels take its
`alpha`, for a synaptic current from zero that stays in a register.
ranks.py divides a layer among devices; import it by name.
"""

from snnbench.adapter.refusal import Unavailable, Unsupported
from snnbench.kernels.buffers import reuse_memory
from snnbench.kernels.choice import KERNELS, automatic, require
from snnbench.kernels.layer import lif, linear_lif
from snnbench.kernels.neuron import Neuron
from snnbench.kernels.passes import KEEPS
from snnbench.kernels.recurrent import recurrent_lif

__all__ = [
    "KEEPS",
    "KERNELS",
    "Neuron",
    "Unavailable",
    "Unsupported",
    "automatic",
    "lif",
    "linear_lif",
    "recurrent_lif",
    "require",
    "reuse_memory",
]
