"""The doctor: it finds conditions that would spoil a measurement on this machine, each with the next step.

A fact that cannot be read is reported as unknown, not as well: virtual machines hide most facts.
"""

import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from snnbench.adapter.declaration import Adapter
from snnbench.machine import compiler_doctor, gpu_doctor
from snnbench.machine.diagnosis import Diagnosis
from snnbench.machine.gpus import handles, nvidia_driver
from snnbench.machine.kernel_files import ROOT
from snnbench.units import GIB, MIB
from snnbench.worker import contention

WATCHED_S = 1.0
"""How long the doctor watches other processes."""
FOREIGN_CPUS = 0.05
"""Most CPUs that other processes use on a quiet machine; half of the limit that flags a cell."""
LEAST_FREE_BYTES = GIB
CLOCKS = ("tsc", "arch_sys_counter", "kvm-clock")
"""Clock sources that are read without a system call."""


def examine(
    facts: Mapping[str, Any],
    root: Path = ROOT,
    nvml: Any = None,
    adapters: Iterable[Adapter] = (),
    versions: Mapping[str, str] | None = None,
) -> list[Diagnosis]:
    """All diagnoses; `facts` are those of description.facts().

    `versions` are the distributions of the Python that workers run in; None for managed environments.
    """
    checks: list[Callable[[], Iterator[Diagnosis]]] = [
        others,
        lambda: clock_speed(facts["cpu"]),
        lambda: threads(facts["cpu"], facts["environment"]),
        lambda: limits(facts["cpu"], facts["memory"], root),
        memory,
        lambda: source_of_time(root),
        battery,
        lambda: disk(Path.cwd()),
        lambda: workers(root),
        lambda: compiler_doctor.c_modules(os.environ, compiler_doctor.include_folder()),
        lambda: compiler_doctor.cpp_compiler(os.environ),
        lambda: gpus(nvml or nvidia_driver(), root, list(adapters), versions),
    ]
    return [diagnosis for check in checks for diagnosis in check()]


def gpus(
    nvml: Any, root: Path = ROOT, adapters: Iterable[Adapter] = (), versions: Mapping[str, str] | None = None
) -> Iterator[Diagnosis]:
    """Diagnoses of the driver, the cards, and the compilers that only a card needs."""
    contenders = list(adapters)
    if versions is None:
        needs = gpu_doctor.pinned(contenders, os.environ.get("UV_TORCH_BACKEND", ""))
    else:
        needs = gpu_doctor.installed(versions)
    yield from gpu_doctor.gpus(nvml, root, needs)
    if next(handles(nvml), None):
        yield compiler_doctor.nvrtc(versions)


def others() -> Iterator[Diagnosis]:
    """Diagnoses of the CPU use of other processes, watched for a second."""
    busy = {process.pid: process for process in psutil.process_iter(["name"]) if process.pid != os.getpid()}
    for process in busy.values():
        _percent(process)
    before = contention.usage()
    time.sleep(WATCHED_S)
    used = contention.between(before, contention.usage())
    foreign, stolen = used["foreign_cpus"], used["stolen_cpus"]
    shares = sorted(((_percent(process), process) for process in busy.values()), key=lambda pair: -pair[0])
    named = ", ".join(f"{p.info['name']} ({p.pid}) {share:.0f} %" for share, p in shares[:3] if share >= 1)
    if foreign > FOREIGN_CPUS:
        step = "end them or wait; cells that they disturb are flagged `contended`"
        yield Diagnosis("load", "spoils", f"others use {foreign:.2g} CPUs{f': {named}' if named else ''}", step)
    else:
        yield Diagnosis("load", "well", f"others use {foreign:.2g} CPUs")
    if stolen > FOREIGN_CPUS:
        step = "measure on a host of your own, or run more trials"
        yield Diagnosis("stolen time", "spoils", f"the hypervisor takes {stolen:.2g} CPUs away", step)


def _percent(process: psutil.Process) -> float:
    """CPU use since the last call, in percent of one CPU; 0 at the first call, and for an ended process."""
    try:
        return float(process.cpu_percent())
    except psutil.Error:
        return 0.0


def clock_speed(cpu: Mapping[str, Any]) -> Iterator[Diagnosis]:
    """Diagnoses of the CPUs' frequency governor and turbo."""
    governors = cpu["frequency_governors"]
    if not governors:
        yield Diagnosis("governor", "unknown", "the machine does not show how its clock is governed")
    elif set(governors) - {"performance"}:
        step = "sudo cpupower frequency-set -g performance"
        yield Diagnosis("governor", "spoils", f"the clock follows the load ({', '.join(governors)})", step)
    else:
        yield Diagnosis("governor", "well", "performance")
    if cpu["turbo"]:
        step = "switch it off for comparisons, or let trials take turns, as snnbench does"
        yield Diagnosis("turbo", "spoils", "the clock depends on how many cores work and how warm they are", step)
    else:
        what = "off" if cpu["turbo"] is False else "the machine does not show whether it has one"
        yield Diagnosis("turbo", "well" if cpu["turbo"] is False else "unknown", what)


def threads(cpu: Mapping[str, Any], environment: Mapping[str, str]) -> Iterator[Diagnosis]:
    """Diagnoses of threads per core, NUMA nodes, and environment variables that change speed."""
    cores, usable = cpu["physical_cores"], cpu["usable_cpus"]
    if cores and usable > cores:
        step = f"--set case.threads={cores} where hyperthreads should not share a core"
        yield Diagnosis("threads", "spoils", f"{usable} threads would share {cores} cores", step)
    else:
        yield Diagnosis("threads", "well", f"{usable} CPUs for {usable} threads")
    if cpu["numa_nodes"] and cpu["numa_nodes"] > 1:
        step = "numactl --cpunodebind=0 --membind=0 snnbench run ..."
        yield Diagnosis("memory nodes", "spoils", f"{cpu['numa_nodes']} of them, at different distances", step)
    if environment:
        given = " ".join(f"{name}={value}" for name, value in environment.items())
        step = "unset what you did not mean; workers inherit all but the thread limits, and records hold them"
        yield Diagnosis("environment", "spoils", given, step)


def limits(cpu: Mapping[str, Any], memory: Mapping[str, Any], root: Path) -> Iterator[Diagnosis]:
    """Diagnoses of the limits of a container or control group."""
    quota = cpu["quota_cpus"]
    if quota is None:
        yield Diagnosis("CPU quota", "well", "none")
    else:
        stat = root / "sys/fs/cgroup/cpu.stat"
        cut = re.search(r"^nr_throttled ([1-9]\d*)$", stat.read_text() if stat.is_file() else "", re.MULTILINE)
        what = f"{quota:g} CPUs' worth of time, not CPUs" + (f"; {cut[1]} periods were cut short" if cut else "")
        step = "give whole CPUs instead (docker run --cpuset-cpus=0-3): a quota stops all threads at once"
        yield Diagnosis("CPU quota", "spoils", what, step)
    if memory["limit_bytes"]:
        what = f"{memory['limit_bytes'] / GIB:.3g} of {memory['total_bytes'] / GIB:.3g} GiB may be used"
        yield Diagnosis("memory limit", "well", what)


def memory() -> Iterator[Diagnosis]:
    """Diagnoses of free memory and swap."""
    now, swap = psutil.virtual_memory(), psutil.swap_memory()
    free = f"{now.available / GIB:.3g} of {now.total / GIB:.3g} GiB free"
    if now.available < now.total / 4:
        yield Diagnosis("memory", "spoils", free, "end what holds it: large cases will run out, or be slow")
    else:
        yield Diagnosis("memory", "well", free)
    if swap.used:
        step = "sudo swapoff -a, once there is room for it"
        yield Diagnosis("swap", "spoils", f"{swap.used / MIB:.0f} MiB are on a disk", step)
    else:
        yield Diagnosis("swap", "well", "none in use" if swap.total else "none")


def source_of_time(root: Path) -> Iterator[Diagnosis]:
    """The diagnosis of the clock source: some are slow to read."""
    path = root / "sys/devices/system/clocksource/clocksource0/current_clocksource"
    name = path.read_text().strip() if path.is_file() else ""
    if not name:
        yield Diagnosis("clock", "unknown", "the machine does not show where its time comes from")
    elif name in CLOCKS or name.startswith("hyperv"):
        yield Diagnosis("clock", "well", name)
    else:
        yield Diagnosis(
            "clock", "spoils", f"{name}, which is slow to read", "boot with tsc=reliable if the CPU has one"
        )


def battery() -> Iterator[Diagnosis]:
    """The diagnosis of battery power, if the machine runs on it."""
    state = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
    if state is not None and not state.power_plugged:
        yield Diagnosis("power", "spoils", "on battery", "plug it in: most laptops slow down without")


def disk(folder: Path) -> Iterator[Diagnosis]:
    """The diagnosis of free disk space for recordings."""
    free = shutil.disk_usage(folder).free
    what = f"{free / GIB:.3g} GiB free"
    if free < LEAST_FREE_BYTES:
        yield Diagnosis("disk", "spoils", what, "make room, or record elsewhere with --output DIR")
    else:
        yield Diagnosis("disk", "well", what)


def workers(root: Path) -> Iterator[Diagnosis]:
    """Diagnoses of kernel features that workers and memory measurements need."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        what = "the kernel lacks pidfd_open, by which workers are waited for: every cell is `unavailable`"
        step = "run outside of a sandbox such as gVisor (docker run --runtime=runc), on Linux 5.3 or newer"
        yield Diagnosis("workers", "spoils", what, step)
    else:
        vmstat = root / "proc/vmstat"
        counted = vmstat.is_file() and "oom_kill " in vmstat.read_text()
        uncounted = "; this kernel does not count its kills for memory, so such an end is called a crash"
        what = "can be started and ended" + ("" if counted else uncounted)
        yield Diagnosis("workers", "well" if counted else "unknown", what)
    try:
        _reset_peak(root / "proc/self/clear_refs")
    except OSError as error:
        what = f"{error.filename or 'clear_refs'}: {error.strerror}; no peak can be set back: memory is `unavailable`"
        step = "measure on a kernel with CONFIG_PROC_PAGE_MONITOR, or leave memory out: --set protocol.memory_trials=0"
        yield Diagnosis("peak memory", "spoils", what, step)
    else:
        yield Diagnosis("peak memory", "well", "can be set back")


def _reset_peak(path: Path) -> None:
    """Reset the peak as memory cells do; the file must exist."""
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, b"5")
    finally:
        os.close(descriptor)
