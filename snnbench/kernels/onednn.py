"""Where oneDNN's products in float32 are faster than those of torch's BLAS, which is MKL on x86.

AMD's processors of the family 26 (Zen 5) multiply 512 bits at once. On processors of AMD, MKL uses 256 bits only, and
oneDNN uses all. torch has both libraries, and calls oneDNN in float32 for compiled layers only.
"""

from functools import cache
from pathlib import Path

import torch
from torch import Tensor

CPUINFO = Path("/proc/cpuinfo")
ZEN_5 = 26
"""The first family of AMD whose units have 512 bits; those of Zen 4 have 256, and MKL loses nothing there."""


@cache
def is_faster() -> bool:
    """Whether this process's products in float32 are faster by oneDNN, by the processor's description."""
    try:
        lines = CPUINFO.read_text(encoding="utf-8").partition("\n\n")[0].splitlines()
    except OSError:
        return False
    facts = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    is_wide = facts.get("vendor_id") == "AuthenticAMD" and int(facts.get("cpu family", 0)) >= ZEN_5
    return is_wide and torch.backends.cpu.get_cpu_capability() == "AVX512" and torch.backends.mkldnn.is_available()


def linear(entering: Tensor, weight: Tensor) -> Tensor:
    """`entering` [M, K] times the transposed `weight` [N, K], by oneDNN: [M, N]."""
    return torch.ops.mkldnn._linear_pointwise(entering, weight, None, "none", [], "")
