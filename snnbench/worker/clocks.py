"""The current clock rates of a card, as its driver reports them.

A worker asks while the card is still busy. It has no package for this, so it calls NVIDIA's library itself.
"""

import ctypes
import os
from contextlib import suppress

LIBRARY = "libnvidia-ml.so.1"
DOMAINS = {"sm": 1, "memory": 2}
"""nvmlClockType_t: NVML_CLOCK_SM and NVML_CLOCK_MEM."""


def mhz() -> dict[str, int]:
    """The clocks of the first card of CUDA_VISIBLE_DEVICES in MHz, by domain; empty if the driver reports none."""
    if (driver := opened()) is None:
        return {}
    nvml, handle = driver
    clocks = {}
    for domain, number in DOMAINS.items():
        value = ctypes.c_uint()
        with suppress(AttributeError):
            if not nvml.nvmlDeviceGetClockInfo(handle, number, ctypes.byref(value)):
                clocks[domain] = int(value.value)
    return clocks


def opened() -> tuple[ctypes.CDLL, ctypes.c_void_p] | None:
    """NVIDIA's library and its handle of the first card of CUDA_VISIBLE_DEVICES; None without them."""
    name = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip()
    try:
        nvml = ctypes.CDLL(LIBRARY)
        handle = ctypes.c_void_p()
        if nvml.nvmlInitWithFlags(0):
            return None
        if name.startswith("GPU-"):
            status = nvml.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(handle))
        else:
            status = nvml.nvmlDeviceGetHandleByIndex_v2(int(name or 0), ctypes.byref(handle))
    except (OSError, AttributeError, ValueError):
        return None
    return None if status else (nvml, handle)
