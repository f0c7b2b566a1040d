"""The number of instructions that a process retired, by the processor's counter, which no host can change.

    man 2 perf_event_open

Many virtual machines have no such counter; then the count is None.
"""

import ctypes
import os
import platform
import struct
from collections.abc import Callable

Count = Callable[[], int | None]
"""Instructions so far, or None if they are not counted."""

CALL = {"x86_64": 298, "aarch64": 241}
"""The number of the system call perf_event_open."""
HARDWARE, INSTRUCTIONS = 0, 1
"""PERF_TYPE_HARDWARE and PERF_COUNT_HW_INSTRUCTIONS."""
ATTRIBUTES_BYTES = 112
"""The size of perf_event_attr since Linux 4.1."""
INHERIT, NO_KERNEL, NO_HYPERVISOR = 1 << 1, 1 << 5, 1 << 6


def uncounted() -> int | None:
    """No count."""
    return None


def counter(kind: int = HARDWARE, event: int = INSTRUCTIONS) -> Count:
    """Count the instructions outside of the kernel, from now on, of this thread and of all threads it starts later."""
    if (number := CALL.get(platform.machine())) is None:
        return uncounted
    flags = INHERIT | NO_KERNEL | NO_HYPERVISOR
    fields = struct.pack("=IIQQQQQ", kind, ATTRIBUTES_BYTES, event, 0, 0, 0, flags)
    attributes = ctypes.create_string_buffer(fields, ATTRIBUTES_BYTES)
    this_process, any_cpu, no_group, no_flags = 0, -1, -1, 0
    descriptor = ctypes.CDLL(None).syscall(number, attributes, this_process, any_cpu, no_group, no_flags)
    if descriptor < 0:
        return uncounted
    return lambda: int.from_bytes(os.read(descriptor, 8), "little")
