"""Stretches of time, and the values that a forward pass keeps for the backward pass.

potential   u - threshold of every step in the state's format, in place of the currents: exact, 4 bytes
bfloat16    the same rounded to 16 bits, 2 bytes: spikes are exact, gradients to 1e-3
nothing     the potential before each stretch; currents are computed again, with the product: exact, about 0 bytes
"""

import math

import torch

from snnbench.kernels import alone
from snnbench.kernels.passes import state_dtype

CPU_ROWS = 1024
"""The most rows of a product (steps times batch) in a stretch on the CPU: enough for the product, few enough for a
cache. With 768 a pass at N = 512 took a tenth longer, with 2048 and more a twentieth."""
LEAST_ROWS = 128
"""The fewest rows of a product where memory counts most: with fewer, reading the weights takes the time."""
GPU_STEPS = 64
"""The most steps in a recomputed stretch on other devices."""


def automatic_keep(kernel_name: str, linear: bool) -> str:
    """The fastest of KEEPS whose gradients are exact."""
    return "nothing" if alone.serves(kernel_name, linear, "nothing") else "potential"


def stretch(device: torch.device, kernel_name: str, batch: int, steps: int, linear: bool, keep: str) -> int:
    """Time steps in a stretch, chosen so that all stretches have about the same length.

    A layer of the kernel `cpu` that keeps nothing holds a value for each of L steps in a stretch, and a potential for
    each of T / L stretches. The sum L + T / L is least at L = sqrt(T).
    """
    if kernel_name in ("cpu", "event") and linear and keep == "nothing":
        most = max(1, LEAST_ROWS // max(1, batch), round(math.sqrt(steps)))
    elif device.type == "cpu" and (linear or keep == "nothing" or kernel_name == "torch"):
        most = max(1, CPU_ROWS // max(1, batch))
    elif keep == "nothing":
        most = GPU_STEPS
    else:
        most = max(1, steps)
    return max(1, -(-steps // max(1, -(-steps // most))))


def kept_shape(
    device: torch.device, kernel_name: str, shape: tuple[int, int, int], linear: bool, keep: str, dtype: torch.dtype
) -> tuple[tuple[int, ...], torch.dtype]:
    """Shape and format of `forward`'s kept tensor for `shape` [T, B, N]; `keep` is one of KEEPS, "" for inference."""
    steps, batch, neurons = shape
    if not keep:
        return (0,), dtype
    if alone.serves(kernel_name, linear, keep):
        return alone.states_shape(kernel_name, shape), state_dtype(dtype)
    if keep == "nothing":
        length = stretch(device, kernel_name, batch, steps, linear, keep)
        return (-(-steps // length), batch, neurons), state_dtype(dtype)
    return shape, torch.bfloat16 if keep == "bfloat16" else state_dtype(dtype)
