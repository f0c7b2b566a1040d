"""Tests of the machine's facts, read from made-up /proc and /sys trees."""

import json
import os
import platform
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from snnbench.machine import cpus, description
from snnbench.recording.schema import complaint

Tree = Callable[[dict[str, str]], Path]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    def write(files: dict[str, str]) -> Path:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return tmp_path

    return write


def topology(siblings: dict[int, str], packages: dict[int, int] | None = None) -> dict[str, str]:
    files = {f"{cpus.CPUS}/cpu{cpu}/topology/thread_siblings_list": f"{text}\n" for cpu, text in siblings.items()}
    for cpu, package in (packages or {}).items():
        files[f"{cpus.CPUS}/cpu{cpu}/topology/physical_package_id"] = f"{package}\n"
    return files


def facts_of(cpu: str = "Intel(R) Xeon(R) Processor @ 2.50GHz", usable: int = 2, *cards: str) -> dict[str, Any]:
    return {
        "cpu": {"model": cpu, "usable_cpus": usable},
        "memory": {"total_bytes": 25_276_514_304},
        "gpus": [{"name": name, "mig": False} for name in cards],
    }


def test_facts_are_json_quick_and_without_the_host_name(monkeypatch: pytest.MonkeyPatch) -> None:
    platform.uname()  # `platform` caches the first result: the real one, not the made-up one
    monkeypatch.setattr(platform, "node", lambda: "secret-host")
    monkeypatch.setattr("socket.gethostname", lambda: "secret-host")
    monkeypatch.setattr("os.uname", lambda: os.uname_result(("Linux", "secret-host", "6", "#1", "x86_64")))
    description.facts()  # the first call imports and loads
    start = time.perf_counter()
    facts = description.facts()
    assert time.perf_counter() - start < 0.2
    text = json.dumps(facts)
    assert "secret-host" not in text
    assert re.fullmatch("[0-9a-f]{12}", facts["host"])
    assert facts["memory"]["total_bytes"] > 2**27
    assert 1 <= facts["cpu"]["usable_cpus"] <= facts["cpu"]["logical_cpus"]
    assert facts["model"] == description.model(facts)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", description.slug(facts))
    assert len(description.load()) == 3


def test_revision_is_the_commit_of_the_checkout_and_says_if_it_changed(tmp_path: Path) -> None:
    package = tmp_path / "clone" / "snnbench"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    git = ["git", "-C", str(package.parent), "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *command], check=True)
    commit = description.revision(package)
    assert commit is not None and re.fullmatch("[0-9a-f]{12}", commit)
    (package.parent / "notes").touch()
    assert description.revision(package) == commit, "no part of the package"
    (package / "more.py").touch()
    assert description.revision(package) == commit + "+"


def test_facts_of_an_empty_machine(tmp_path: Path) -> None:
    facts = description.facts(tmp_path)
    assert facts["memory"] == {"total_bytes": 0, "limit_bytes": None}
    assert facts["cpu"]["caches_bytes"] == {}
    assert facts["cpu"]["turbo"] is facts["cpu"]["frequency_max_hz"] is facts["virtualisation"] is None
    assert facts["cpu"]["model"] == platform.machine()


def test_facts_from_proc_and_sys(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})
    cpu = f"{cpus.CPUS}/cpu0"
    root = tree(
        topology({0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3"})
        | {
            "proc/cpuinfo": "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 1\nmodel name\t: AMD  EPYC 7763 64-Core\n"
            "stepping\t: 1\nflags\t\t: fpu avx avx2 hypervisor\n\nprocessor\t: 1\nmodel name\t: other\n",
            "proc/meminfo": "MemTotal:       16384000 kB\nMemFree: 1 kB\n",
            "proc/self/cgroup": "0::/user/job\n",
            "sys/fs/cgroup/user/memory.max": "8589934592\n",
            "sys/fs/cgroup/user/job/memory.max": "max\n",
            "sys/class/dmi/id/sys_vendor": "QEMU\n",
            "sys/devices/system/node/node0/cpulist": "0-3\n",
            "sys/devices/system/node/node1/cpulist": "\n",
            f"{cpu}/cpufreq/cpuinfo_max_freq": "3500000\n",
            f"{cpu}/cpufreq/scaling_governor": "performance\n",
            f"{cpu}/cache/index0/level": "1",
            f"{cpu}/cache/index0/type": "Data",
            f"{cpu}/cache/index0/size": "32K",
            f"{cpu}/cache/index3/level": "3",
            f"{cpu}/cache/index3/type": "Unified",
            f"{cpu}/cache/index3/size": "36608K",
            f"{cpus.CPUS}/intel_pstate/no_turbo": "1\n",
            "etc/os-release": 'NAME="Ours"\nPRETTY_NAME="Ours 12"\n',
            ".dockerenv": "",
        }
    )
    facts = description.facts(root)
    assert facts["cpu"] == {
        "model": "AMD EPYC 7763 64-Core",
        "identity": "25-1-1",
        "simd": ["avx2"],
        "logical_cpus": facts["cpu"]["logical_cpus"],
        "physical_cores": 2,
        "allowed_cpus": [0, 1],
        "quota_cpus": None,
        "usable_cpus": 2,
        "caches_bytes": {"L1d": 32 * 1024, "L3": 36608 * 1024},
        "numa_nodes": 2,
        "frequency_max_hz": 3_500_000_000,
        "frequency_governors": ["performance"],
        "turbo": False,
    }
    assert facts["memory"] == {"total_bytes": 16384000 * 1024, "limit_bytes": 8589934592}
    assert (facts["os"], facts["virtualisation"]) == ("Ours 12", "QEMU")
    assert facts["container"] in ("docker", "kubernetes", "apptainer")


def test_container_image_is_recorded(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(description.DIGEST, raising=False)
    assert description.facts(tree({"proc/cpuinfo": ""}))["image"] is None
    root = tree({description.IMAGE: '{"revision": "0123abc", "device": "cpu"}\n'})
    assert description.facts(root)["image"] == {"revision": "0123abc", "device": "cpu"}
    monkeypatch.setenv(description.DIGEST, "sha256:12")
    facts = description.facts(root)
    assert facts["image"] == {"revision": "0123abc", "device": "cpu", "digest": "sha256:12"}
    assert description.DIGEST not in facts["environment"]
    assert complaint("machine", facts) is None


def test_model_contains_the_comparable_facts() -> None:
    plain = facts_of()
    assert description.model(plain) == "Intel(R) Xeon(R) Processor @ 2.50GHz, 2 CPUs, 24 GiB"
    same = facts_of() | {"memory": {"total_bytes": 25_300_000_000}, "load": (9.0, 9.0, 9.0)}
    assert description.model(same) == description.model(plain)
    two_cards = facts_of("X", 8, "NVIDIA H200", "NVIDIA H200")
    assert (
        description.model(two_cards)
        == "X, 8 CPUs, NVIDIA H200, 24 GiB"
        == description.model(facts_of("X", 8, "NVIDIA H200"))
    )
    assert description.model(plain | {"nodes": 2}) == f"{description.model(plain)}, 2 nodes"
    two_cards["gpus"][0]["mig"] = True
    assert description.model(two_cards) == "X, 8 CPUs, NVIDIA H200, NVIDIA H200 MIG, 24 GiB"


def processor_of(identity: str, total_bytes: int = 25_276_514_304) -> dict[str, Any]:
    facts = facts_of("AMD EPYC") | {"memory": {"total_bytes": total_bytes}}
    return facts | {"cpu": facts["cpu"] | {"identity": identity}}


def test_two_processors_are_two_machines() -> None:
    """A hypervisor calls both AMD EPYC; the floor of one case was 1.31 ms on one and 3.1 ms on the other."""
    newer, older, unknown = map(processor_of, ("26-2-1", "25-17-1", "6-9999-3"))
    assert description.model(newer) == "AMD EPYC (Zen 5, family 26 model 2), 2 CPUs, 24 GiB"
    assert description.model(older) == "AMD EPYC (Zen 4, family 25 model 17), 2 CPUs, 24 GiB"
    assert description.model(unknown) == "AMD EPYC (family 6 model 9999), 2 CPUs, 24 GiB"
    assert description.slug(newer) == "epyc-26-2-2cpu" != description.slug(older)
    assert description.model(processor_of("26-2-0")) == description.model(newer), "another stepping"
    assert description.model(processor_of("--")) == "AMD EPYC, 2 CPUs, 24 GiB"


def test_recorded_machine_has_the_name_that_it_would_have_now() -> None:
    named = processor_of("25-17-1") | {"model": "AMD EPYC, 2 CPUs, 24 GiB"}
    assert description.recorded_model(named) == "AMD EPYC (Zen 4, family 25 model 17), 2 CPUs, 24 GiB"
    assert description.recorded_model(named | {"model": "an abacus"}) == "an abacus"
    assert description.recorded_model({"model": "a laptop", "cpu": 3}) == "a laptop"
    assert description.recorded_model({}) is None


@pytest.mark.parametrize(
    ("mem_total_gib", "sold"), [(23.54, 24), (23.5, 24), (24.0, 24), (31.2, 32), (125.87, 128), (503.5, 512), (0.95, 1)]
)
def test_memory_is_named_by_the_size_that_is_sold(mem_total_gib: float, sold: float) -> None:
    """Another kernel keeps another part: 0.17 % less was another machine."""
    for part in (1.0, 0.9983, 1.0017):
        assert description.sold_gib(round(mem_total_gib * part * 2**30)) == sold
    assert description.sold_gib(0) == 0


@pytest.mark.parametrize(
    ("name", "cards", "expected"),
    [
        ("Intel(R) Xeon(R) Processor @ 2.50GHz", [], "xeon-2-50ghz-2cpu"),
        ("AMD EPYC 7763 64-Core Processor", [], "epyc-7763-2cpu"),
        ("AMD Ryzen 7 5800H with Radeon Graphics", [], "ryzen-7-5800h-2cpu"),
        ("13th Gen Intel(R) Core(TM) i7-1370P", [], "core-i7-1370p-2cpu"),
        ("aarch64 0xd40", [], "aarch64-0xd40-2cpu"),
        ("X", ["NVIDIA H200"], "h200"),
        ("X", ["NVIDIA GeForce RTX 4090", "NVIDIA A100-SXM4-80GB"], "a100-sxm4-80gb-rtx-4090"),
    ],
)
def test_slug(name: str, cards: list[str], expected: str) -> None:
    assert description.slug(facts_of(name, 2, *cards)) == expected


def test_slug_length_is_limited() -> None:
    assert description.slug(facts_of("x" * 59 + " y", 2)) == "x" * 59


def test_memory_limit_of_version_1(tree: Tree) -> None:
    files = {"proc/self/cgroup": "4:memory:/a/b\n", "proc/meminfo": "MemTotal: 1024 kB\n"}
    limit = "sys/fs/cgroup/memory/a/b/memory.limit_in_bytes"
    assert description.facts(tree(files | {limit: "9223372036854771712\n"}))["memory"]["limit_bytes"] is None
    assert description.facts(tree(files | {limit: "4096\n"}))["memory"]["limit_bytes"] == 4096


def test_only_listed_settings_are_recorded() -> None:
    environ = {
        "OMP_NUM_THREADS": "2",
        "JAX_PLATFORMS": "cpu",
        "PYTORCH_CUDA_ALLOC_CONF": "x",
        "TORCHINDUCTOR_CACHE_DIR": "y",
        "LD_PRELOAD": "z",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "LD_PRELOADED": "no",
        "MY_OMP_TOKEN": "secret",
        "PIP_INDEX_URL": "secret",
    }
    assert list(description.settings(environ)) == [
        "JAX_PLATFORMS",
        "LD_PRELOAD",
        "OMP_NUM_THREADS",
        "PYTORCH_CUDA_ALLOC_CONF",
        "TORCHINDUCTOR_CACHE_DIR",
    ]
