"""Where oneDNN's products in float32 are faster than those of torch's BLAS, which is MKL on x86.

On processors of AMD, MKL has no code for AVX-512, and oneDNN does. On Zen 5, whose units have 512 bits, oneDNN is about
twice as fast; on Zen 4, whose units have 256, it is a little faster. torch has both libraries, and calls oneDNN in
float32 for compiled layers only.
"""

from functools import cache
from pathlib import Path

import torch
from torch import Tensor

CPUINFO = Path("/proc/cpuinfo")


@cache
def is_faster() -> bool:
    """Whether this process's products in float32 are faster by oneDNN, by the processor's description."""
    try:
        lines = CPUINFO.read_text(encoding="utf-8").partition("\n\n")[0].splitlines()
    except OSError:
        return False
    facts = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    has_512_bits = facts.get("vendor_id") == "AuthenticAMD" and torch.backends.cpu.get_cpu_capability() == "AVX512"
    return has_512_bits and torch.backends.mkldnn.is_available()


def linear(entering: Tensor, weight: Tensor) -> Tensor:
    """`entering` [M, K] times the transposed `weight` [N, K], by oneDNN: [M, N]."""
    return torch.ops.mkldnn._linear_pointwise(entering, weight, None, "none", [], "")
