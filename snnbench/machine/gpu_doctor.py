"""The doctor's checks of GPUs: the driver against the CUDA of the pins, each card, and the right to profile kernels."""

import re
import resource
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from snnbench.adapter.declaration import Adapter
from snnbench.machine.diagnosis import Diagnosis
from snnbench.machine.gpus import ask, handles, unopened
from snnbench.units import MIB

DRIVERS = {11: 450, 12: 525, 13: 580}
"""CUDA major version -> the first driver that runs it on Linux, from NVIDIA's page on CUDA compatibility."""
TORCH_CUDA, TORCH_SINCE = 13, (2, 11)
"""CUDA of PyPI's PyTorch, from this version on. An older pin does not imply a CUDA version."""
CAP_SYS_ADMIN = 21
"""The bit of CAP_SYS_ADMIN in CapEff of /proc/self/status."""


def gpus(nvml: Any, root: Path, needs: Mapping[str, int]) -> Iterator[Diagnosis]:
    """Diagnoses of the driver and every card; `needs` come from `pinned` or `installed`."""
    cards = dict(handles(nvml))
    if nvml is None and (root / "proc/driver/nvidia/version").exists():
        what = "the kernel module is loaded, and its library (NVML) does not start"
        step = "reboot after an update of the driver; start a container with `docker run --gpus all`"
        yield Diagnosis("GPU", "spoils", what, step)
    elif not cards:
        yield Diagnosis("GPU", "unknown", "none is visible; only CPU cases run here")
    for index, reason in unopened(nvml):
        step = "ask for it where the job or container starts, or look for its errors with `nvidia-smi` and `dmesg`"
        yield Diagnosis(f"GPU {index}", "unknown", f"the driver does not open it ({reason}); no cell runs on it", step)
    if cards:
        yield driver(nvml, needs)
        yield profiling(root)
        yield locked_memory()
    for index, handle in cards.items():
        yield from _card(nvml, index, handle)


def pinned(adapters: Iterable[Adapter], torch_backend: str = "") -> dict[str, int]:
    """Requirement -> its CUDA major version, for all pins of managed environments on a GPU.

    `torch_backend` is UV_TORCH_BACKEND: with `cu126`, uv installs PyTorch for CUDA 12, and all other packages as
    pinned.
    """
    variants = [variant for adapter in adapters for variant in adapter.variants.values() if "cuda" in variant.devices]
    needs = {}
    for requirement in sorted({text for one in variants for text in (*one.pins.dependencies, *one.pins.cuda)}):
        major = _cuda_major(requirement)
        if torch := re.match(r"torch==(\d+)\.(\d+)", requirement):
            from_pypi = TORCH_CUDA if (int(torch[1]), int(torch[2])) >= TORCH_SINCE else None
            major = _cuda_major(torch_backend) if torch_backend else major or from_pypi
        if major:
            needs[requirement] = major
    return needs


def installed(versions: Mapping[str, str]) -> dict[str, int]:
    """Distribution and version -> its CUDA major version, for a Python with these distributions."""
    needs = {}
    for name, version in versions.items():
        if name == "torch" and (major := _cuda_major(version)):
            needs[f"{name} {version}"] = major
        elif name.startswith("nvidia-cuda-runtime"):
            needs[f"{name} {version}"] = int(version.partition(".")[0])
    return needs


def _cuda_major(text: str) -> int | None:
    """13 for `jax[cuda13]`, `cuda-core[cu13]`, `cupy-cuda13x` and `cu130`."""
    match = re.search(r"(?<![a-z0-9])cu(?:da)?(\d\d)", text.lower())
    return int(match[1]) if match else None


def driver(nvml: Any, needs: Mapping[str, int]) -> Diagnosis:
    """The diagnosis of the driver, with the requirements that it is too old for."""
    version, cuda = ask(nvml, "nvmlSystemGetDriverVersion"), ask(nvml, "nvmlSystemGetCudaDriverVersion")
    if cuda is None:
        return Diagnosis("driver", "unknown", f"driver {version} does not say which CUDA it runs")
    what = f"driver {version} runs CUDA up to {cuda // 1000}.{cuda % 1000 // 10}"
    too_new = {requirement: major for requirement, major in needs.items() if major > cuda // 1000}
    if not too_new:
        return Diagnosis("driver", "well", what)
    newest = max(too_new.values())
    first = DRIVERS.get(newest)
    step = f"install driver {first} or newer" if first else f"install a driver for CUDA {newest}"
    if cuda // 1000 >= 12 and any(requirement.startswith("torch==") for requirement in too_new):
        step += "; UV_TORCH_BACKEND=cu126 gets PyTorch for CUDA 12, and no other of these"
    return Diagnosis("driver", "spoils", f"{what}, which is too old for {', '.join(too_new)}", step)


def profiling(root: Path) -> Diagnosis:
    """The diagnosis of the right to profile. The exam only traces kernels, and reads no counters."""
    path = root / "proc/driver/nvidia/params"
    restricted = re.search(r"^RmProfilingAdminOnly: (\d)", path.read_text() if path.is_file() else "", re.MULTILINE)
    if restricted is None:
        return Diagnosis("profiling", "unknown", "the driver does not show who may profile")
    if restricted[1] == "0":
        return Diagnosis("profiling", "well", "every user may profile")
    status = root / "proc/self/status"
    effective = re.search(r"^CapEff:\s*([0-9a-f]+)", status.read_text() if status.is_file() else "", re.MULTILINE)
    if effective and int(effective[1], 16) >> CAP_SYS_ADMIN & 1:
        return Diagnosis("profiling", "well", "administrators alone may profile, and this process has their rights")
    what = "administrators alone may read counters (RmProfilingAdminOnly: 1); traces of kernels may be closed, too"
    step = (
        "where the profiler sees no kernels, set the option NVreg_RestrictProfilingToAdminUsers=0 of the module nvidia "
        "and reboot, or start the container with --cap-add=SYS_ADMIN"
    )
    return Diagnosis("profiling", "unknown", what, step)


def locked_memory() -> Diagnosis:
    """The diagnosis of RLIMIT_MEMLOCK. CUDA's driver pins memory outside this limit; it binds other software."""
    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    if limit == resource.RLIM_INFINITY:
        return Diagnosis("locked memory", "well", "no limit")
    what = f"{limit / MIB:.3g} MiB (RLIMIT_MEMLOCK), which CUDA's pinned memory does not count against"
    return Diagnosis("locked memory", "unknown", what, "ulimit -l unlimited, or docker run --ulimit memlock=-1")


def _card(nvml: Any, index: int, handle: Any) -> Iterator[Diagnosis]:
    silent = []
    for subject, look in LOOKS.items():
        if diagnosis := look(nvml, index, handle):
            yield diagnosis
        else:
            silent.append(subject)
    if silent:
        yield Diagnosis(f"GPU {index}", "unknown", f"the driver does not say: {', '.join(silent)}")


def _processes(nvml: Any, index: int, handle: Any) -> Diagnosis | None:
    processes = ask(nvml, "nvmlDeviceGetComputeRunningProcesses", handle)
    if processes is None:
        return None
    if not processes:
        return Diagnosis(f"GPU {index} processes", "well", "no other process computes there")
    pids = ", ".join(str(process.pid) for process in processes)
    step = "end them, or hide this card from snnbench: CUDA_VISIBLE_DEVICES"
    return Diagnosis(f"GPU {index} processes", "spoils", f"other processes compute there ({pids})", step)


def _throttling(nvml: Any, index: int, handle: Any) -> Diagnosis | None:
    reasons = ask(nvml, "nvmlDeviceGetCurrentClocksEventReasons", handle)
    if reasons is None:
        return None
    slow = [text for flag, text in THROTTLES.items() if reasons & getattr(nvml, flag, 0)]
    if not slow:
        return Diagnosis(f"GPU {index} throttling", "well", "nothing holds its clock back")
    step = "let it cool, or lower and lock its clock: sudo nvidia-smi -lgc MHZ"
    return Diagnosis(f"GPU {index} throttling", "spoils", f"its clock is held back: {', '.join(slow)}", step)


THROTTLES = {
    "nvmlClocksEventReasonSwPowerCap": "the power limit",
    "nvmlClocksEventReasonHwSlowdown": "heat or power (hardware)",
    "nvmlClocksEventReasonSwThermalSlowdown": "heat",
    "nvmlClocksEventReasonHwThermalSlowdown": "heat (hardware)",
    "nvmlClocksEventReasonHwPowerBrakeSlowdown": "the power supply",
}


def _clocks(nvml: Any, index: int, handle: Any) -> Diagnosis | None:
    """The diagnosis of clocks. It is always well: an idle card clocks down by itself."""
    parts = []
    for name, clock in (("SM", nvml.NVML_CLOCK_SM), ("memory", nvml.NVML_CLOCK_MEM)):
        now, most = (ask(nvml, f"nvmlDeviceGet{which}ClockInfo", handle, clock) for which in ("", "Max"))
        if now is not None and most is not None:
            parts.append(f"{name} {now} of {most} MHz")
    return Diagnosis(f"GPU {index} clocks", "well", ", ".join(parts)) if parts else None


def _power(nvml: Any, index: int, handle: Any) -> Diagnosis | None:
    cap_mw = ask(nvml, "nvmlDeviceGetPowerManagementLimit", handle)
    default_mw = ask(nvml, "nvmlDeviceGetPowerManagementDefaultLimit", handle)
    if cap_mw is None or default_mw is None:
        return None
    what = f"{cap_mw / 1000:g} W of {default_mw / 1000:g} W by default"
    step = f"sudo nvidia-smi -i {index} -pl {default_mw / 1000:g}" if cap_mw < default_mw else ""
    return Diagnosis(f"GPU {index} power cap", "spoils" if step else "well", what, step)


def _ecc(nvml: Any, index: int, handle: Any) -> Diagnosis | None:
    modes = ask(nvml, "nvmlDeviceGetEccMode", handle)
    if modes is None:
        return None
    name, (now, then) = f"GPU {index} ECC", ("on" if mode else "off" for mode in modes)
    if now != then:
        step = f"reboot, or keep it as it is: sudo nvidia-smi -i {index} -e {int(modes[0])}"
        return Diagnosis(
            name, "spoils", f"{now}, and {then} after the next reboot, which changes memory and speed", step
        )
    kinds = nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
    errors = ask(nvml, "nvmlDeviceGetTotalEccErrors", handle, *kinds) if modes[0] else None
    if errors:
        step = (
            f"stop the processes there, then sudo nvidia-smi -i {index} --gpu-reset; replace the card if they come back"
        )
        return Diagnosis(name, "spoils", f"{errors} uncorrected errors since the driver was loaded", step)
    return Diagnosis(name, "well", f"{now}, no uncorrected errors" if errors == 0 else now)


def _mig(nvml: Any, index: int, handle: Any) -> Diagnosis | None:
    modes = ask(nvml, "nvmlDeviceGetMigMode", handle)
    if modes is None:
        return None
    what = "on: a slice of a card is another machine than the whole card" if modes[0] else "off"
    return Diagnosis(f"GPU {index} MIG", "well", what)


def _persistence(nvml: Any, index: int, handle: Any) -> Diagnosis | None:
    mode = ask(nvml, "nvmlDeviceGetPersistenceMode", handle)
    if mode is None:
        return None
    if mode:
        return Diagnosis(f"GPU {index} persistence mode", "well", "on")
    what = "off: the driver leaves between processes, so first calls take longer"
    return Diagnosis(f"GPU {index} persistence mode", "spoils", what, f"sudo nvidia-smi -i {index} -pm 1")


LOOKS: dict[str, Callable[[Any, int, Any], Diagnosis | None]] = {
    "processes": _processes,
    "throttling": _throttling,
    "clocks": _clocks,
    "power cap": _power,
    "ECC": _ecc,
    "MIG": _mig,
    "persistence mode": _persistence,
}
"""Checks of each card; a check gives None if the card does not answer."""
