"""Memory of one pass: host memory by the kernel's count, device memory by the allocators' count.

Host memory is that of the worker and of all processes that it started.

The host's high-water mark is reset through /proc/self/clear_refs before the pass. `ru_maxrss` cannot serve: a child
inherits its parent's value through exec.
"""

import ctypes
import gc
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from snnbench.adapter.refusal import Unavailable
from snnbench.backends import Backend, Session
from snnbench.units import KIB, MIB
from snnbench.worker.measure import OwnCell
from snnbench.worker.used_cpus import descendants

GROWTH_PASSES = (2, 6, 10, 50)
"""Memory in use is read after so many passes; it should not have grown."""
GROWTH_NS = 150_000_000
"""After this time no further pass towards a count after the second begins."""
BUILT = 3
"""A network, its content and the copies of both from before take up to twice their bytes, once it is built."""
LAZY_BYTES = 64 << 20
"""Code that a framework loads or compiles for the first network takes up to 36 MiB."""
PROC = Path("/proc")
CLEAR_REFS = PROC / "self/clear_refs"


@dataclass(frozen=True, slots=True)
class Resident:
    """Resident bytes of this process and its descendants now, and the sum of their maxima since the last reset."""

    now_bytes: int
    peak_bytes: int


def resident() -> Resident:
    """The sums of VmRSS and VmHWM over the processes."""
    now_bytes = peak_bytes = 0
    for pid in (os.getpid(), *descendants(os.getpid())):
        with suppress(OSError, KeyError):  # it has ended
            fields = dict(line.split(":", 1) for line in (PROC / f"{pid}/status").read_text().splitlines())
            now_bytes += int(fields["VmRSS"].split()[0]) * KIB
            peak_bytes += int(fields["VmHWM"].split()[0]) * KIB
    return Resident(now_bytes, peak_bytes)


def reset_peak() -> None:
    """Set the high-water marks to the resident bytes of now. Raises Unavailable."""
    try:
        CLEAR_REFS.write_text("5")
    except OSError as error:
        raise Unavailable(
            f"{CLEAR_REFS} cannot be written ({error.strerror}), so the peak of a pass cannot be measured: it takes a "
            "Linux kernel with CONFIG_PROC_PAGE_MONITOR; gVisor has none"
        ) from error
    for pid in descendants(os.getpid()):
        with suppress(OSError):  # it has ended
            (PROC / f"{pid}/clear_refs").write_text("5")


def settle() -> None:
    """Free memory: collect cycles, and let the C library return its free pages."""
    gc.collect()
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)


def settled_bytes() -> int:
    """Resident bytes once all free memory is given back."""
    settle()
    return resident().now_bytes


def overbuilt(static_bytes: int, build_bytes: int) -> str | None:
    """Why the peak of a pass is not its memory, in one line: the network took more when it was built than it is."""
    if build_bytes <= BUILT * static_bytes + LAZY_BYTES:
        return None
    return (
        f"the network takes {build_bytes / MIB:.3g} MiB when it is built, and its weights and content are "
        f"{static_bytes / MIB:.3g} MiB: the peak of a pass leaves the rest out"
    )


def measure(session: Session, backend: Backend, phase: str) -> tuple[dict[str, Any], Any, Any]:
    """Bytes around the first `train` or `inference` pass, and the spikes and gradients of that pass.

    `peak` excludes parameters, input and cotangent, which existed before and count as `static`. `retained` is the
    memory that a forward pass leaves alive for the backward pass, with the output spikes; None if no such pass is
    whole, because the backward pass of a chunk comes before the next chunk.
    """
    session.compile(phase)
    session.synchronise(None)
    settle()
    gc.freeze()  # later collections skip the half million objects of a framework's modules
    resets = backend.reset_peak()
    device_before, before = backend.device_bytes(), resident()
    reset_peak()
    spikes, gradients = session.train() if phase == "train" else (session.inference(), None)
    session.synchronise((spikes, gradients))
    peak_bytes, device_after = resident().peak_bytes, backend.device_bytes()
    keeps = phase == "train" and session.retains
    retained_bytes, device_retained_bytes = _retained(session, backend) if keeps else (None, None)
    grown = _growth(session, backend, phase)
    result: dict[str, Any] = {
        "phase": phase,
        "static_bytes": session.static_bytes(),
        "passes_ns": grown.passes_ns,
        "host": {
            "before_bytes": before.now_bytes,
            "peak_bytes": max(0, peak_bytes - before.now_bytes),
            "retained_bytes": retained_bytes,
            "growth_bytes": grown.host_bytes,
        },
    }
    if device_after:
        result["device"] = _device(device_before, device_after) | {"retained_bytes": device_retained_bytes}
        result["device"]["growth_bytes"] = grown.device_bytes
        if not resets and device_after["peak"] == device_before["peak"]:
            # The process had a higher peak before, perhaps in compiling, so the counter does not show the pass.
            result["device"]["peak_bytes"] = session.planned_bytes(phase)
    return result, spikes, gradients


def _retained(session: Session, backend: Backend) -> tuple[int, int | None]:
    """Bytes on host and device that a forward pass leaves alive."""
    session.compile("forward")
    settle()
    host, device = resident().now_bytes, backend.device_bytes()
    saved = session.forward()
    session.synchronise(saved)
    settle()
    return max(0, resident().now_bytes - host), _grown(device, backend.device_bytes(), "in_use")


@dataclass(frozen=True, slots=True)
class Growth:
    """Bytes that each pass leaks: the smallest slope between two readings of the memory in use; and the passes."""

    host_bytes: int
    device_bytes: int | None
    passes_ns: list[int]


def _growth(session: Session, backend: Backend, phase: str, clock: Callable[[], int] = time.monotonic_ns) -> Growth:
    """Run passes up to the last of GROWTH_PASSES, or until GROWTH_NS is over, and compare the memory in use."""
    ends, done = clock() + GROWTH_NS, 0
    seen: list[tuple[int, int, int | None]] = []
    passes_ns: list[int] = []
    for passes in GROWTH_PASSES:
        while done < passes and (len(seen) < 2 or clock() < ends):
            started = time.perf_counter_ns()
            session.synchronise(session.train() if phase == "train" else session.inference())
            passes_ns.append(time.perf_counter_ns() - started)
            done += 1
        settle()
        seen.append((done, resident().now_bytes, backend.device_bytes().get("in_use")))
    steps = [(before, after) for before, after in pairwise(seen) if after[0] > before[0]]
    host = min((after[1] - before[1]) // (after[0] - before[0]) for before, after in steps)
    device = [
        (after[2] - before[2]) // (after[0] - before[0])
        for before, after in steps
        if before[2] is not None and after[2] is not None
    ]
    return Growth(max(0, host), max(0, min(device)) if device else None, passes_ns)


def _device(before: dict[str, int | None], after: dict[str, int | None]) -> dict[str, int | None]:
    used, reserved = after.get("used"), after.get("reserved")
    return {
        "before_bytes": before.get("in_use"),
        "peak_bytes": _grown(before, after, "peak"),
        "reserved_bytes": reserved,
        "used_bytes": used,
        "unaccounted_bytes": None if used is None or reserved is None else used - reserved,
    }


def _grown(before: dict[str, int | None], after: dict[str, int | None], name: str) -> int | None:
    start, end = before.get("in_use"), after.get(name)
    return None if start is None or end is None else end - start


class Memory(OwnCell):
    """The memory of a process that times nothing."""

    def __init__(self, backend: Backend) -> None:
        super().__init__(backend)
        self._unbuilt_bytes = self._build_bytes = 0
        self._measured: dict[str, Any] = {}

    def before_build(self) -> None:
        """Read the memory without the network."""
        self._unbuilt_bytes = settled_bytes()

    def after_build(self) -> None:
        """Read the memory with the network."""
        self._build_bytes = max(0, settled_bytes() - self._unbuilt_bytes)

    def measure(self, session: Session, phase: str) -> tuple[Any, Any]:
        """Read the memory around passes."""
        self._measured, spikes, gradients = measure(session, self.backend, phase)
        self._measured["host"]["build_bytes"] = self._build_bytes
        return spikes, gradients

    def complaint(self) -> str | None:
        """Why the peak of a pass is not its memory."""
        return overbuilt(self._measured["static_bytes"], self._build_bytes)

    def of_record(self) -> dict[str, Any]:
        """Bytes around the passes."""
        return self._measured


MEASURE = Memory
