"""The machine: the facts that speed depends on, what of it may be used, and a name for machines that compare.

Facts come from /proc, /sys and NVML; what cannot be read is None. The host appears as a hash: recordings are public.
"""

import hashlib
import importlib
import os
import platform
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache, partial
from pathlib import Path
from typing import Any

from snnbench import container

ROOT = Path("/")
SCHEMA = 2  # of machine.json; 1: the first; 2: `image`
CPUS = "sys/devices/system/cpu"
SETTINGS = (  # environment variables that change speed or memory; no other is recorded, as they can hold secrets
    *("OMP_*", "GOMP_*", "KMP_*", "MKL_*", "OPENBLAS_*", "MALLOC_*", "GLIBC_TUNABLES", "LD_PRELOAD"),
    *("XLA_*", "JAX_*", "TORCH*", "PYTORCH_*", "TRITON_*", "UV_TORCH_BACKEND", "NVIDIA_TF32_OVERRIDE", "CUBLAS_*"),
    *("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_LAUNCH_BLOCKING", "CUDA_MODULE_LOADING"),
)
SIMD = ("avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "asimd", "sve", "sve2")
NOISE = r"\((?:r|tm|c)\)|\b(?:nvidia|geforce|intel|amd|cpu|processor|\d+-cores?|\d+th gen|with .* graphics)\b"


def facts(root: Path = ROOT) -> dict[str, Any]:
    """What machine.json holds. Sizes in bytes, frequencies in Hz."""
    total_bytes = int(_find(r"MemTotal:\s*(\d+) kB", root / "proc/meminfo") or 0) * 1024
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "host": hashed(platform.node()),
        "cpu": _cpu(root),
        "memory": {"total_bytes": total_bytes, "limit_bytes": _memory_limit_bytes(root, total_bytes)},
        "gpus": [gpu(nvidia_driver(), handle) for handle in _usable_gpus()],
        "os": _find(r'PRETTY_NAME="?([^"\n]+)', root / "etc/os-release") or platform.system(),
        "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "transparent_hugepages": _text(root / "sys/kernel/mm/transparent_hugepage/enabled"),
        "virtualisation": _virtualisation(root),
        "container": container.engine(root, os.environ),
        "image": container.image(root, os.environ),
        "load": load(),
        "environment": settings(os.environ),
    }
    return found | {"model": model(found)}


def model(facts: Mapping[str, Any]) -> str:
    """What two machines must share for their times to be compared."""
    cpu, gib = facts["cpu"], round(facts["memory"]["total_bytes"] / 2**30)
    return ", ".join([cpu["model"], f"{cpu['usable_cpus']} CPUs", *_gpu_names(facts), f"{gib} GiB"])


def slug(facts: Mapping[str, Any]) -> str:
    """A short name for files and folders: of the GPU where there is one, else of the CPU."""
    names = _gpu_names(facts) or ["{model} {usable_cpus}cpu".format_map(facts["cpu"])]
    plain = re.sub(NOISE, " ", " ".join(names).lower())
    return re.sub(r"[^a-z0-9]+", "-", plain)[:60].strip("-")


def has_cuda() -> bool:
    """Whether there is an NVIDIA GPU that this process may use; imports no framework."""
    return bool(_usable_gpus())


def load() -> tuple[float, float, float]:
    """Processes that ran or waited for a CPU, on average over the last 1, 5 and 15 minutes."""
    return os.getloadavg()


def usable_cpus(root: Path = ROOT, allowed: Collection[int] | None = None) -> int:
    """How many CPUs this process can keep busy: those it is allowed on, or fewer if its control group has a quota."""
    count, quota = len(_allowed(allowed)), _quota_cpus(root)
    return count if quota is None else min(count, max(1, int(quota)))


def cpus(count: int, root: Path = ROOT, allowed: Collection[int] | None = None, place: int = 0) -> list[int]:
    """The CPUs to pin a worker of `count` threads to: one of every core before a second of any, large cores before
    small ones, one package before the next. Another `place` beside it has others. Raises ValueError."""
    usable = usable_cpus(root, allowed)
    if not 1 <= count * (place + 1) <= usable:
        beside = f" beside {place} others as wide" if place else ""
        raise ValueError(f"threads = {count}{beside}: expected 1 to {usable}, the CPUs that this process can use")
    ranked = []
    taken: dict[str, int] = {}
    for cpu in sorted(_allowed(allowed)):
        folder = root / CPUS / f"cpu{cpu}"
        core = _text(folder / "topology/thread_siblings_list") or str(cpu)
        taken[core] = taken.get(core, 0) + 1
        capacity = _integer(folder / "cpu_capacity") or 0
        ranked.append((taken[core], -capacity, _integer(folder / "topology/physical_package_id") or 0, cpu))
    return [cpu for *_, cpu in sorted(ranked)[count * place : count * (place + 1)]]


def settings(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment variables that are recorded."""
    return {name: environ[name] for name in sorted(environ) if any(map(partial(fnmatchcase, name), SETTINGS))}


def gpu(nvml: Any, handle: Any) -> dict[str, Any]:
    """The facts of one GPU; `nvml` is the module pynvml."""

    def fact(question: str, convert: Callable[[Any], Any], *arguments: Any) -> Any:
        answer = ask(nvml, question, handle, *arguments)
        return None if answer is None else convert(answer)

    cuda = nvml.nvmlSystemGetCudaDriverVersion()
    return {
        "name": nvml.nvmlDeviceGetName(handle),
        "memory_bytes": fact("nvmlDeviceGetMemoryInfo", lambda memory: memory.total),
        "driver": nvml.nvmlSystemGetDriverVersion(),
        "cuda_driver": f"{cuda // 1000}.{cuda % 1000 // 10}",
        "uuid": fact("nvmlDeviceGetUUID", hashed),
        "compute_capability": fact("nvmlDeviceGetCudaComputeCapability", lambda pair: f"{pair[0]}.{pair[1]}"),
        "power_limit_watts": fact("nvmlDeviceGetPowerManagementLimit", lambda milliwatts: milliwatts / 1000),
        "clock_max_hz": fact("nvmlDeviceGetMaxClockInfo", lambda mhz: mhz * 1_000_000, nvml.NVML_CLOCK_SM),
        "ecc": fact("nvmlDeviceGetEccMode", lambda modes: bool(modes[0])),
        "mig": fact("nvmlDeviceGetMigMode", lambda modes: bool(modes[0])),
    }


def _gpu_names(facts: Mapping[str, Any]) -> list[str]:
    """Every kind once: a case runs on one GPU, however many there are. A slice of a card is not that card."""
    return sorted({gpu["name"] + (" MIG" if gpu["mig"] else "") for gpu in facts["gpus"]})


def _usable_gpus() -> list[Any]:
    """The handles of the GPUs; empty where CUDA_VISIBLE_DEVICES hides all, as every framework understands it."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and visible.split(",")[0].strip() in ("", "-1", "NoDevFiles"):
        return []
    return [handle for _, handle in handles(nvidia_driver())]


def handles(nvml: Any) -> Iterator[tuple[int, Any]]:
    """(index, handle) of each card that NVML opens for this process; without a driver (None) there are no cards.

    NVML counts cards that it does not open: those of another job on the node, and a card that fell off the bus.
    """
    for index in range(nvml.nvmlDeviceGetCount() if nvml else 0):
        handle = ask(nvml, "nvmlDeviceGetHandleByIndex", index)
        if handle is not None:
            yield index, handle


def unopened(nvml: Any) -> Iterator[tuple[int, str]]:
    """(index, reason) of each card that NVML counts and does not open."""
    for index in range(nvml.nvmlDeviceGetCount() if nvml else 0):
        try:
            nvml.nvmlDeviceGetHandleByIndex(index)
        except nvml.NVMLError as error:
            yield index, str(error)


def ask(nvml: Any, question: str, *arguments: Any) -> Any:
    """NVML's answer; None where a card does not answer this question, or the driver is too old for it.

    pynvml reports a function that an old driver lacks as NVMLError, or as NVMLLibraryMismatchError, which is not a
    subclass of NVMLError.
    """
    try:
        return getattr(nvml, question)(*arguments)
    except (nvml.NVMLError, nvml.NVMLLibraryMismatchError):
        return None


@cache
def nvidia_driver() -> Any:
    """The module pynvml, or None where there is no driver."""
    nvml = importlib.import_module("pynvml")
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return None
    return nvml


def _cpu(root: Path) -> dict[str, Any]:
    block = _text(root / "proc/cpuinfo").split("\n\n")[0]
    info = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in block.splitlines())}
    folders = [root / CPUS / f"cpu{cpu}" for cpu in sorted(_allowed(None))]
    cores = {_text(folder / "topology/thread_siblings_list") for folder in (root / CPUS).glob("cpu[0-9]*")} - {""}
    flags = (info.get("flags") or info.get("Features") or "").split()
    no_turbo, boost = _integer(root / CPUS / "intel_pstate/no_turbo"), _integer(root / CPUS / "cpufreq/boost")
    return {
        "model": " ".join((info.get("model name") or f"{platform.machine()} {info.get('CPU part', '')}").split()),
        "identity": "-".join(info.get(name, "") for name in ("cpu family", "model", "stepping")),
        "simd": [name for name in SIMD if name in flags],
        "logical_cpus": os.cpu_count(),
        "physical_cores": len(cores) or None,
        "allowed_cpus": sorted(_allowed(None)),
        "quota_cpus": _quota_cpus(root),
        "usable_cpus": usable_cpus(root),
        "caches_bytes": caches_bytes(folders[0] / "cache"),
        "numa_nodes": len(list((root / "sys/devices/system/node").glob("node[0-9]*"))) or None,
        "frequency_max_hz": (_integer(folders[0] / "cpufreq/cpuinfo_max_freq") or 0) * 1000 or None,
        "frequency_governors": sorted({_text(folder / "cpufreq/scaling_governor") for folder in folders} - {""}),
        "turbo": not no_turbo if no_turbo is not None else (bool(boost) if boost is not None else None),
    }


def caches_bytes(folder: Path) -> dict[str, int]:
    """Name of a cache of one CPU, such as L1d, -> its size, be it shared with other CPUs or not."""
    found = {}
    for place in sorted(folder.glob("index*")):
        kind = {"Data": "d", "Instruction": "i"}.get(_text(place / "type"), "")
        size = re.fullmatch(r"(\d+)([KM]?)", _text(place / "size"))
        if size:
            found[f"L{_text(place / 'level')}{kind}"] = int(size[1]) * {"": 1, "K": 2**10, "M": 2**20}[size[2]]
    return found


def _memory_limit_bytes(root: Path, total_bytes: int) -> int | None:
    """The control group's limit; a limit above what there is (version 1 writes 2^63) is none."""
    texts = _cgroup(root, "memory", "memory.max") + _cgroup(root, "memory", "memory.limit_in_bytes")
    return min((int(text) for text in texts if text.isdigit() and int(text) < total_bytes), default=None)


def _quota_cpus(root: Path) -> float | None:
    """CPUs' worth of time that the control group grants."""
    pairs = [text.split() for text in _cgroup(root, "cpu", "cpu.max")]
    versions_1 = (_cgroup(root, "cpu", name) for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us"))
    pairs += [list(pair) for pair in zip(*versions_1, strict=False)]
    return min((int(quota) / int(period) for quota, period in pairs if quota.isdigit()), default=None)


def _cgroup(root: Path, controller: str, name: str) -> list[str]:
    """What file `name` says in this process's control group and in every one above it, in versions 1 and 2."""
    found = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers or controller in controllers.split(","):
            base = root / "sys/fs/cgroup" / (controller if controllers else "")
            folder = base / path.lstrip("/")
            found += [_text(place / name) for place in (folder, *folder.parents) if place.is_relative_to(base)]
    return [text for text in found if text]


def _virtualisation(root: Path) -> str | None:
    """What the machine is inside of, as far as it can tell; on bare metal a vendor is only that of the mainboard."""
    flag = _find(r"flags\s*:.*\b(hypervisor)\b", root / "proc/cpuinfo")
    return _text(root / "sys/hypervisor/type") or (flag and _text(root / "sys/class/dmi/id/sys_vendor")) or flag


def _allowed(allowed: Collection[int] | None) -> Collection[int]:
    return os.sched_getaffinity(0) if allowed is None else allowed


def hashed(name: str) -> str:
    """What stands for a name in public: 12 hexadecimal digits."""
    return hashlib.sha256(name.encode()).hexdigest()[:12]


def _find(pattern: str, path: Path) -> str | None:
    found = re.search(pattern, _text(path))
    return found[1] if found else None


def _integer(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text.lstrip("-").isdigit() else None


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
