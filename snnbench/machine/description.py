"""The machine's description: facts that speed depends on, and a model name shared by comparable machines.

Facts come from /proc, /sys and NVML; a fact that cannot be read is None. The host is hashed: recordings are public.

A processor is named by its family and model as CPUID has them, and by the name of that microarchitecture: hypervisors
hide the rest, two generations are both "AMD EPYC", and they differ in speed by half.
"""

import json
import os
import platform
import re
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import partial
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import snnbench
from snnbench.cases import nodes
from snnbench.digest import hashed
from snnbench.machine.cpus import CPUS, allowed_cpus, quota_cpus, usable_cpus
from snnbench.machine.gpus import gpu, nvidia_driver, usable_gpus
from snnbench.machine.kernel_files import ROOT, cgroup, integer_in, match_in, text_in
from snnbench.units import GIB, KIB, MIB

MICROARCHITECTURES = {
    "Zen": ["23-1", "23-17"],
    "Zen+": ["23-8", "23-24"],
    "Zen 2": ["23-49", "23-96", "23-104", "23-113"],
    "Zen 3": ["25-1", "25-8", "25-33", "25-68", "25-80"],
    "Zen 4": ["25-17", "25-24", "25-97", "25-116", "25-160"],
    "Zen 5": ["26-2", "26-17", "26-36", "26-68", "26-112"],
    "Haswell": ["6-60", "6-63", "6-69"],
    "Broadwell": ["6-61", "6-79", "6-86"],
    "Skylake or Cascade Lake": ["6-85"],
    "Skylake": ["6-78", "6-94"],
    "Kaby Lake or Coffee Lake": ["6-142", "6-158"],
    "Comet Lake": ["6-165"],
    "Ice Lake": ["6-106", "6-108", "6-126"],
    "Tiger Lake": ["6-140", "6-141"],
    "Rocket Lake": ["6-167"],
    "Alder Lake": ["6-151", "6-154"],
    "Raptor Lake": ["6-183", "6-186"],
    "Meteor Lake": ["6-170"],
    "Arrow Lake": ["6-197", "6-198"],
    "Lunar Lake": ["6-189"],
    "Sapphire Rapids": ["6-143"],
    "Emerald Rapids": ["6-207"],
    "Granite Rapids": ["6-173", "6-174"],
    "Sierra Forest": ["6-175"],
}
"""Microarchitecture -> its processors, each as family-model in decimal, which /proc/cpuinfo has."""
_NAMES = {number: name for name, numbers in MICROARCHITECTURES.items() for number in numbers}


def processor_number(cpu: Mapping[str, Any]) -> str:
    """`26-2`, the family and model in the facts of a CPU; "" where the processor has none, as one of ARM."""
    family, _, rest = str(cpu.get("identity", "")).partition("-")
    model = rest.partition("-")[0]
    return f"{family}-{model}" if family and model else ""


def processor_name(cpu: Mapping[str, Any]) -> str:
    """`AMD EPYC (Zen 5, family 26 model 2)`: the vendor's name of a CPU, and what tells its generation."""
    if not (known := processor_number(cpu)):
        return str(cpu["model"])
    family, model = known.split("-")
    words = [*([_NAMES[known]] if known in _NAMES else []), f"family {family} model {model}"]
    return f"{cpu['model']} ({', '.join(words)})"


COMMIT_DIGITS = 12
IMAGE = "etc/snnbench-image.json"
"""Written by docker/Dockerfile: version, revision, created, base, device and libraries, as in the image's labels."""
DIGEST = "SNNBENCH_IMAGE_DIGEST"
"""The environment variable for the image's digest, which an image cannot contain."""


def container_engine(root: Path, environ: Mapping[str, str]) -> str | None:
    """`docker`, `podman`, `apptainer` or `kubernetes`; None without a sign of one."""
    signs = {
        "kubernetes": "KUBERNETES_SERVICE_HOST" in environ,
        "apptainer": "APPTAINER_CONTAINER" in environ or "SINGULARITY_CONTAINER" in environ,
        "docker": (root / ".dockerenv").exists(),
        "podman": (root / "run/.containerenv").exists(),
    }
    return next((name for name, sign in signs.items() if sign), None)


def container_image(root: Path, environ: Mapping[str, str]) -> dict[str, str] | None:
    """The labels of the snnbench image around this process, and its digest if the user gives it; None outside one."""
    try:
        labels = json.loads((root / IMAGE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    digest = environ.get(DIGEST)
    return {name: str(value) for name, value in labels.items()} | ({"digest": digest} if digest else {})


SCHEMA = 2  # of machine.json; 1: the first; 2: `image`
SETTINGS = (  # environment variables that change speed or memory; no other is recorded, as they can hold secrets
    *("OMP_*", "GOMP_*", "KMP_*", "MKL_*", "OPENBLAS_*", "MALLOC_*", "GLIBC_TUNABLES", "LD_PRELOAD"),
    *("XLA_*", "JAX_*", "TORCH*", "PYTORCH_*", "TRITON_*", "UV_TORCH_BACKEND", "NVIDIA_TF32_OVERRIDE", "CUBLAS_*"),
    *("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_LAUNCH_BLOCKING", "CUDA_MODULE_LOADING"),
)
SOLD_GIB = sorted(2.0**power * part for power in range(-3, 16) for part in (1, 1.25, 1.5, 1.75))
"""The sizes of memory that are sold: quarters between powers of two."""
SLACK = 1.02
"""A memory may be larger than the size it is sold as by so much."""
SIMD = ("avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "asimd", "sve", "sve2")
NOISE = r"\((?:r|tm|c)\)|\b(?:nvidia|geforce|intel|amd|cpu|processor|\d+-cores?|\d+th gen|with .* graphics)\b"


def revision(package: Path = Path(snnbench.__file__).parent) -> str | None:
    """The commit of this snnbench, with a + if its checkout has changed since; None if nothing names one.

    It is that of the checkout, or of the git address that it was installed from.
    """
    if not (package.parent / ".git").exists():
        with suppress(PackageNotFoundError):
            origin = json.loads(distribution("snnbench").read_text("direct_url.json") or "{}")
            commit = origin.get("vcs_info", {}).get("commit_id")
            return commit[:COMMIT_DIGITS] if commit else None
        return None
    git = ["git", "-C", str(package.parent)]
    with suppress(OSError, subprocess.CalledProcessError):
        of_git = partial(subprocess.run, check=True, capture_output=True, text=True)
        commit = of_git([*git, "rev-parse", f"--short={COMMIT_DIGITS}", "HEAD"]).stdout.strip()
        changed = of_git([*git, "status", "--porcelain", "--", package.name, "adapters"]).stdout
        return commit + "+" * bool(changed)
    return None


def facts(root: Path = ROOT) -> dict[str, Any]:
    """The content of machine.json. Sizes in bytes, frequencies in Hz."""
    total_bytes = int(match_in(r"MemTotal:\s*(\d+) kB", root / "proc/meminfo") or 0) * KIB
    known: dict[str, Any] = {
        "schema": SCHEMA,
        "host": hashed(platform.node()),
        "cpu": _cpu(root),
        "memory": {"total_bytes": total_bytes, "limit_bytes": _memory_limit_bytes(root, total_bytes)},
        "gpus": [gpu(nvidia_driver(), handle) for handle in usable_gpus()],
        "os": match_in(r'PRETTY_NAME="?([^"\n]+)', root / "etc/os-release") or platform.system(),
        "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "transparent_hugepages": text_in(root / "sys/kernel/mm/transparent_hugepage/enabled"),
        "virtualisation": _virtualisation(root),
        "container": container_engine(root, os.environ),
        "image": container_image(root, os.environ),
        "load": load(),
        "environment": settings(os.environ),
    }
    if (count := nodes.count()) > 1:
        known["nodes"] = count
    return known | {"model": model(known)}


def model(facts: Mapping[str, Any]) -> str:
    """The model name: two machines must share it for their times to be compared."""
    cpu, memory = facts["cpu"], f"{sold_gib(facts['memory']['total_bytes']):g} GiB"
    several = [f"{facts['nodes']} nodes"] if "nodes" in facts else []
    return ", ".join([processor_name(cpu), f"{cpu['usable_cpus']} CPUs", *_gpu_names(facts), memory, *several])


def sold_gib(total_bytes: int) -> float:
    """The memory as it is sold, in GiB: the kernel keeps a part for itself, and another kernel another part."""
    return next((size for size in SOLD_GIB if total_bytes <= size * SLACK * GIB), 0.0) if total_bytes else 0.0


def recorded_model(facts: Mapping[str, Any]) -> str | None:
    """The model name of recorded facts, also if an older snnbench gave them another; None if it is unknown."""
    known = facts.get("model")
    try:
        own = str(known).startswith(facts["cpu"]["model"])
        return model(facts) if own else known  # a name that is not ours, as of a recording by hand, stays
    except (LookupError, TypeError, ValueError, AttributeError):
        return known


def slug(facts: Mapping[str, Any]) -> str:
    """A short name for files and folders: of the GPU if there is one, else of the CPU, with its family and model."""
    cpu = facts["cpu"]
    names = _gpu_names(facts) or [f"{cpu['model']} {processor_number(cpu)} {cpu['usable_cpus']}cpu"]
    plain = re.sub(NOISE, " ", " ".join(names).lower())
    return re.sub(r"[^a-z0-9]+", "-", plain)[:60].strip("-")


def load() -> tuple[float, float, float]:
    """The load averages (processes that run or wait for a CPU) over the last 1, 5 and 15 minutes."""
    return os.getloadavg()


def settings(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment variables that are recorded."""
    return {name: environ[name] for name in sorted(environ) if any(map(partial(fnmatchcase, name), SETTINGS))}


def _gpu_names(facts: Mapping[str, Any]) -> list[str]:
    """Every GPU model once: a case runs on one GPU, however many there are. A MIG slice is another model."""
    return sorted({gpu["name"] + (" MIG" if gpu["mig"] else "") for gpu in facts["gpus"]})


def _cpu(root: Path) -> dict[str, Any]:
    block = text_in(root / "proc/cpuinfo").split("\n\n")[0]
    info = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in block.splitlines())}
    folders = [root / CPUS / f"cpu{cpu}" for cpu in sorted(allowed_cpus(None))]
    cores = {text_in(folder / "topology/thread_siblings_list") for folder in (root / CPUS).glob("cpu[0-9]*")} - {""}
    flags = (info.get("flags") or info.get("Features") or "").split()
    no_turbo, boost = integer_in(root / CPUS / "intel_pstate/no_turbo"), integer_in(root / CPUS / "cpufreq/boost")
    return {
        "model": " ".join((info.get("model name") or f"{platform.machine()} {info.get('CPU part', '')}").split()),
        "identity": "-".join(info.get(name, "") for name in ("cpu family", "model", "stepping")),
        "simd": [name for name in SIMD if name in flags],
        "logical_cpus": os.cpu_count(),
        "physical_cores": len(cores) or None,
        "allowed_cpus": sorted(allowed_cpus(None)),
        "quota_cpus": quota_cpus(root),
        "usable_cpus": usable_cpus(root),
        "caches_bytes": caches_bytes(folders[0] / "cache"),
        "numa_nodes": len(list((root / "sys/devices/system/node").glob("node[0-9]*"))) or None,
        "frequency_max_hz": (integer_in(folders[0] / "cpufreq/cpuinfo_max_freq") or 0) * 1000 or None,
        "frequency_governors": sorted({text_in(folder / "cpufreq/scaling_governor") for folder in folders} - {""}),
        "turbo": not no_turbo if no_turbo is not None else (bool(boost) if boost is not None else None),
    }


def caches_bytes(folder: Path) -> dict[str, int]:
    """Name of a cache of one CPU, such as L1d, -> its size; shared caches count in full."""
    sizes = {}
    for index in sorted(folder.glob("index*")):
        kind = {"Data": "d", "Instruction": "i"}.get(text_in(index / "type"), "")
        size = re.fullmatch(r"(\d+)([KM]?)", text_in(index / "size"))
        if size:
            sizes[f"L{text_in(index / 'level')}{kind}"] = int(size[1]) * {"": 1, "K": KIB, "M": MIB}[size[2]]
    return sizes


def _memory_limit_bytes(root: Path, total_bytes: int) -> int | None:
    """The control group's memory limit; None without a limit below the total (version 1 writes 2^63 for no limit)."""
    texts = cgroup(root, "memory", "memory.max") + cgroup(root, "memory", "memory.limit_in_bytes")
    return min((int(text) for text in texts if text.isdigit() and int(text) < total_bytes), default=None)


def _virtualisation(root: Path) -> str | None:
    """The hypervisor or its vendor; falsy if no hypervisor is visible. On bare metal the vendor is the mainboard's."""
    flag = match_in(r"flags\s*:.*\b(hypervisor)\b", root / "proc/cpuinfo")
    return text_in(root / "sys/hypervisor/type") or (flag and text_in(root / "sys/class/dmi/id/sys_vendor")) or flag


def memory_bytes(facts: Mapping[str, Any]) -> int:
    """A worker's default memory limit: all memory of the machine or its control group; 0 if it is unknown."""
    memory = facts["memory"]
    return int(memory["limit_bytes"] or memory["total_bytes"])
