# /// script
# requires-python = ">=3.11"
# dependencies = ["torch==2.13.0", "numpy==2.4.6"]
#
# [tool.snnbench]
# api = 2
# modules = ["kernels"]
# cuda = ["cuda-core[cu13]==1.2.2"]
# ///
"""Fused on many devices: the fused kernel of snnbench on several devices, in three ways of dividing a layer among them.

`temporal` is the pipeline of the temporal fusion paper (Li et al. 2024). `batch` and `neurons` are the plain
alternatives, which exchange nothing.
"""

import torch

from snnbench import kernels
from snnbench.adapter import require
from snnbench.backends.torch.ranks import Parts
from snnbench.kernels.ranks import temporal_lif

BACKEND = "torch"
VARIANTS = {
    "temporal": "each device computes a share of the time steps; the potential goes from device to device",
    "batch": "each device computes a share of the samples",
    "neurons": "each device computes a share of the neurons",
}
EXACT = ("subtract", "zero", "subtract-detached", "zero-attached")


def parts(case, variant):
    require(case, "fused computes only neurons with a reset", profile=EXACT)
    kernels.reuse_memory()  # keeps the memory of large CPU arrays from one pass to the next, as in fused
    kernel = kernels.automatic(torch.device(case.device), getattr(torch, case.dtype))
    names = ("beta", "threshold", "reset", "detach_reset", "surrogate", "slope")
    options = {name: getattr(case, name) for name in names} | {"kernel": kernel}
    layer = temporal_lif if variant == "temporal" else kernels.lif
    return Parts(variant, lambda current: layer(current, **options), __file__, provider=f"snnbench:{kernel}")
