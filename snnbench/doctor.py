"""The doctor: what would spoil a measurement on this machine now, each with the next step.

Facts that cannot be read are said to be unknown, not to be well: virtual machines hide most of them.
"""

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import psutil

from snnbench import contention
from snnbench.machine import ROOT, ask, handles, nvidia_driver, unopened

State = Literal["well", "spoils", "unknown"]
WATCHED_S = 1.0
"""How long the doctor watches what others do."""
FOREIGN_CPUS = 0.05
"""CPUs in use by others from which on a machine is not quiet; half of what flags a cell."""
LEAST_FREE_BYTES = 1 << 30
CLOCKS = ("tsc", "arch_sys_counter", "kvm-clock")
"""Sources of time that are read without a system call."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: what it is like, and what to do where it spoils measurements."""

    name: str
    state: State
    what: str
    step: str = ""


def examine(facts: Mapping[str, Any], root: Path = ROOT, nvml: Any = None) -> list[Finding]:
    """Everything, `facts` being those of machine.facts()."""
    looks: list[Callable[[], Iterator[Finding]]] = [
        others,
        lambda: clock_speed(facts["cpu"]),
        lambda: threads(facts["cpu"], facts["environment"]),
        lambda: limits(facts["cpu"], facts["memory"], root),
        memory,
        lambda: source_of_time(root),
        battery,
        lambda: disk(Path.cwd()),
        lambda: gpus(nvml or nvidia_driver()),
    ]
    return [finding for look in looks for finding in look()]


def others() -> Iterator[Finding]:
    """Who else computes, watched for a second."""
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
        yield Finding("load", "spoils", f"others use {foreign:.2g} CPUs{f': {named}' if named else ''}", step)
    else:
        yield Finding("load", "well", f"others use {foreign:.2g} CPUs")
    if stolen > FOREIGN_CPUS:
        step = "measure on a host of your own, or run more trials"
        yield Finding("stolen time", "spoils", f"the hypervisor takes {stolen:.2g} CPUs away", step)


def _percent(process: psutil.Process) -> float:
    """CPU use since the last time that this was asked, in percent of one CPU; 0 the first time, and of the dead."""
    try:
        return float(process.cpu_percent())
    except psutil.Error:
        return 0.0


def clock_speed(cpu: Mapping[str, Any]) -> Iterator[Finding]:
    """What sets the clock of the CPUs."""
    governors = cpu["frequency_governors"]
    if not governors:
        yield Finding("governor", "unknown", "the machine does not show how its clock is governed")
    elif set(governors) - {"performance"}:
        step = "sudo cpupower frequency-set -g performance"
        yield Finding("governor", "spoils", f"the clock follows the load ({', '.join(governors)})", step)
    else:
        yield Finding("governor", "well", "performance")
    if cpu["turbo"]:
        step = "switch it off for comparisons, or let trials take turns, as snnbench does"
        yield Finding("turbo", "spoils", "the clock depends on how many cores work and how warm they are", step)
    else:
        what = "off" if cpu["turbo"] is False else "the machine does not show whether it has one"
        yield Finding("turbo", "well" if cpu["turbo"] is False else "unknown", what)


def threads(cpu: Mapping[str, Any], environment: Mapping[str, str]) -> Iterator[Finding]:
    """How many threads have a core of their own, and what the surroundings say of threads and speed."""
    cores, usable = cpu["physical_cores"], cpu["usable_cpus"]
    if cores and usable > cores:
        step = f"--set case.threads={cores} where hyperthreads should not share a core"
        yield Finding("threads", "spoils", f"{usable} threads would share {cores} cores", step)
    else:
        yield Finding("threads", "well", f"{usable} CPUs for {usable} threads")
    if cpu["numa_nodes"] and cpu["numa_nodes"] > 1:
        step = "numactl --cpunodebind=0 --membind=0 snnbench run ..."
        yield Finding("memory nodes", "spoils", f"{cpu['numa_nodes']} of them, at different distances", step)
    if environment:
        given = " ".join(f"{name}={value}" for name, value in environment.items())
        step = "unset what you did not mean; workers inherit all but the thread limits, and records hold them"
        yield Finding("environment", "spoils", given, step)


def limits(cpu: Mapping[str, Any], memory: Mapping[str, Any], root: Path) -> Iterator[Finding]:
    """What a container or control group allows."""
    quota = cpu["quota_cpus"]
    if quota is None:
        yield Finding("CPU quota", "well", "none")
    else:
        stat = root / "sys/fs/cgroup/cpu.stat"
        cut = re.search(r"^nr_throttled ([1-9]\d*)$", stat.read_text() if stat.is_file() else "", re.MULTILINE)
        what = f"{quota:g} CPUs' worth of time, not CPUs" + (f"; {cut[1]} periods were cut short" if cut else "")
        step = "give whole CPUs instead (docker run --cpuset-cpus=0-3): a quota stops all threads at once"
        yield Finding("CPU quota", "spoils", what, step)
    if memory["limit_bytes"]:
        what = f"{memory['limit_bytes'] / 2**30:.3g} of {memory['total_bytes'] / 2**30:.3g} GiB may be used"
        yield Finding("memory limit", "well", what)


def memory() -> Iterator[Finding]:
    """What is free, and whether pages were moved to a disk."""
    now, swap = psutil.virtual_memory(), psutil.swap_memory()
    free = f"{now.available / 2**30:.3g} of {now.total / 2**30:.3g} GiB free"
    if now.available < now.total / 4:
        yield Finding("memory", "spoils", free, "end what holds it: large cases will run out, or be slow")
    else:
        yield Finding("memory", "well", free)
    if swap.used:
        step = "sudo swapoff -a, once there is room for it"
        yield Finding("swap", "spoils", f"{swap.used / 2**20:.0f} MiB are on a disk", step)
    else:
        yield Finding("swap", "well", "none in use" if swap.total else "none")


def source_of_time(root: Path) -> Iterator[Finding]:
    """What a look at the clock costs."""
    path = root / "sys/devices/system/clocksource/clocksource0/current_clocksource"
    name = path.read_text().strip() if path.is_file() else ""
    if not name:
        yield Finding("clock", "unknown", "the machine does not show where its time comes from")
    elif name in CLOCKS or name.startswith("hyperv"):
        yield Finding("clock", "well", name)
    else:
        yield Finding("clock", "spoils", f"{name}, which is slow to read", "boot with tsc=reliable if the CPU has one")


def battery() -> Iterator[Finding]:
    """Where the power comes from."""
    found = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
    if found is not None and not found.power_plugged:
        yield Finding("power", "spoils", "on battery", "plug it in: most laptops slow down without")


def disk(folder: Path) -> Iterator[Finding]:
    """Room for recordings."""
    free = shutil.disk_usage(folder).free
    what = f"{free / 2**30:.3g} GiB free"
    if free < LEAST_FREE_BYTES:
        yield Finding("disk", "spoils", what, "make room, or record elsewhere: snnbench run --output DIR")
    else:
        yield Finding("disk", "well", what)


def gpus(nvml: Any) -> Iterator[Finding]:
    """Of every card: who else is on it, and what holds its clock back."""
    cards = dict(handles(nvml))
    if not cards:
        yield Finding("GPU", "unknown", "none is visible; only CPU cases run here")
    for index, reason in unopened(nvml):
        step = "ask for it where the job or container starts, or look for its errors with `nvidia-smi` and `dmesg`"
        yield Finding(f"GPU {index}", "unknown", f"the driver does not open it ({reason}); no cell runs on it", step)
    for index, handle in cards.items():
        yield from _card(nvml, f"GPU {index}", handle)


def _card(nvml: Any, name: str, handle: Any) -> Iterator[Finding]:
    processes = ask(nvml, "nvmlDeviceGetComputeRunningProcesses", handle)
    if processes:
        pids = ", ".join(str(process.pid) for process in processes)
        step = "end them, or hide this card from snnbench: CUDA_VISIBLE_DEVICES"
        yield Finding(name, "spoils", f"other processes compute there ({pids})", step)
    reasons = ask(nvml, "nvmlDeviceGetCurrentClocksEventReasons", handle)
    slow = [text for flag, text in THROTTLES.items() if reasons and reasons & getattr(nvml, flag, 0)]
    if slow:
        step = "let it cool, or lower and lock its clock: sudo nvidia-smi -lgc MHZ"
        yield Finding(name, "spoils", f"its clock is held back: {', '.join(slow)}", step)
    if ask(nvml, "nvmlDeviceGetPersistenceMode", handle) == 0:
        step = "sudo nvidia-smi -pm 1"
        yield Finding(name, "spoils", "the driver leaves between processes, so first calls take longer", step)
    mode = ask(nvml, "nvmlDeviceGetMigMode", handle)
    if mode and mode[0]:
        yield Finding(name, "well", "a slice of a card (MIG), which is another machine than the whole card")
    if processes is None or reasons is None:
        yield Finding(name, "unknown", "it does not say who uses it, or what holds its clock back")
    elif not processes and not slow:
        yield Finding(name, "well", "nobody else is on it, and nothing holds its clock back")


THROTTLES = {
    "nvmlClocksEventReasonSwPowerCap": "the power limit",
    "nvmlClocksEventReasonHwSlowdown": "heat or power (hardware)",
    "nvmlClocksEventReasonSwThermalSlowdown": "heat",
    "nvmlClocksEventReasonHwThermalSlowdown": "heat (hardware)",
    "nvmlClocksEventReasonHwPowerBrakeSlowdown": "the power supply",
}
