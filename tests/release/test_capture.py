"""Tests of the libraries' passes for operations that a CUDA graph cannot replay, with capture_watch.py, no GPU."""

import gc
import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from snnbench.files import home

torch = pytest.importorskip("torch")

from snnbench.adapter.discovery import discover
from snnbench.adapter.pins import Pins
from snnbench.backends.torch.graph import existing
from snnbench.environments import store
from snnbench.run.process import environment
from tests import capture_watch

SCRIPT = Path(capture_watch.__file__)
ADAPTERS = discover()
CAPTURED = [
    (library, name)
    for library, adapter in ADAPTERS.items()
    for name, variant in adapter.variants.items()
    if variant.way == "cuda-graph" and "cpu" in adapter.variants[variant.built_as].devices
]
"""Contenders with torch's kernels. Our own CUDA kernels allocate nothing; test_kernel_cuda.py captures them."""
NOTHING: dict[str, list[str]] = {"inference": [], "forward": [], "backward": [], "train": []}


OTHER_DEVICE: dict[tuple[str, Pins], list[str]] = {}
"""Torch variants of both devices, by library and environment, except if Inductor compiles them: it does not support the
device meta."""
for library, adapter in ADAPTERS.items():
    for name, variant in adapter.variants.items():
        eager = variant.backend == "torch" and variant.way == "" and "compile" not in f"{library}/{name}"
        divides = "def parts(" in adapter.path.read_text(encoding="utf-8")  # its ranks need real devices
        if eager and {"cpu", "cuda"} <= set(variant.devices) and not (variant.needs or divides):
            OTHER_DEVICE.setdefault((library, variant.pins), []).append(name)


def reported(command: str, library: str, *names: str) -> Any:
    """The output of capture_watch.py for variants that share the library's managed environment."""
    adapter = ADAPTERS[library]
    planned = store.sync(store.plan(adapter, names[0], cuda=False), print)
    done = subprocess.run(
        [planned.python, "-P", SCRIPT, command, adapter.path, *names],
        capture_output=True,
        text=True,
        env=environment(1, home()),
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


@cache
def watched(library: str, name: str) -> dict[str, dict[str, list[str]]]:
    """The report on a variant's passes."""
    report: dict[str, dict[str, list[str]]] = reported("passes", library, name)
    return report


def test_every_torch_library_is_watched() -> None:
    assert {library for library, _ in CAPTURED} >= {"torch-loop", "norse", "sinabs", "snntorch", "spikingjelly"}
    assert {library for library, _ in OTHER_DEVICE} >= {"bindsnet", "lava-dl", "rockpool", "norse", "spikingjelly"}


@pytest.mark.libraries
@pytest.mark.parametrize(("library", "name"), CAPTURED, ids=map("/".join, CAPTURED))
def test_pass_uses_no_memory_that_is_freed(library: str, name: str) -> None:
    assert watched(library, name)["freed though held"] == NOTHING


@pytest.mark.libraries
@pytest.mark.parametrize(("library", "name"), CAPTURED, ids=map("/".join, CAPTURED))
def test_pass_neither_copies_from_the_host_nor_waits_for_it(library: str, name: str) -> None:
    assert watched(library, name)["host"] == NOTHING


@pytest.mark.libraries
def test_sinabs_frees_its_state_unless_it_is_held() -> None:
    freed = watched("sinabs", "cuda-graph")["freed"]
    assert freed["train"] == freed["inference"] == ["aten.zero_.default of (3, 16)"]


@pytest.mark.libraries
def test_rockpool_copies_from_the_host_and_is_not_captured() -> None:
    host = watched("rockpool", "torch")["host"]
    assert host["train"] == host["inference"] == ["aten._to_copy.default copies between host and device"]
    assert "cuda-graph" not in ADAPTERS["rockpool"].variants


@pytest.mark.libraries
@pytest.mark.parametrize(
    ("library", "names"),
    [(library, names) for (library, _), names in OTHER_DEVICE.items()],
    ids=[f"{library}/{names[0]}" for (library, _), names in OTHER_DEVICE.items()],
)
def test_networks_run_on_another_device_than_the_host(library: str, names: list[str]) -> None:
    """A tensor left on the host that belongs on the device is a crash on a GPU."""
    assert reported("devices", library, *names) == dict.fromkeys(names, "meta")


ON_META = torch.ones(3, device="meta")
HOST = {
    "item": (lambda: ON_META.sum().item(), "aten._local_scalar_dense.default waits"),
    "truth": (lambda: bool(ON_META.sum()), "aten._local_scalar_dense.default waits"),
    "nonzero": (lambda: ON_META.nonzero(), "aten.nonzero.default waits"),
    "mask": (lambda: ON_META[ON_META > 0], "aten.index.Tensor waits"),
    "to the device": (lambda: torch.ones(3).to("meta"), "aten._to_copy.default copies between host and device"),
    "to the host": (lambda: ON_META.cpu(), "aten._to_copy.default copies between host and device"),
    "copy_": (lambda: ON_META.copy_(torch.ones(3)), "aten.copy_.default copies between host and device"),
    "numbers": (lambda: torch.tensor([1.0, 2.0], device="meta"), "torch.tensor copies from the host"),
}


@pytest.mark.parametrize("name", HOST)
def test_watch_sees_operations_that_need_the_host(name: str) -> None:
    function, expected = HOST[name]
    with capture_watch.HostFunctions() as functions, capture_watch.HostOperators() as operators:
        try:
            function()
        except RuntimeError:  # the device meta holds no numbers
            assert operators.seen
    assert functions.seen + operators.seen == [expected]


def test_watch_ignores_operations_on_the_device() -> None:
    with capture_watch.HostFunctions() as functions, capture_watch.HostOperators() as operators:
        state = torch.zeros(3, device="meta") + ON_META * 2.0
        torch.where(state > 0, state, torch.zeros_like(state)).sum()
    assert functions.seen + operators.seen == []


class Network:
    """A pass that reads the state of the pass before and replaces it."""

    def __init__(self) -> None:
        self.state = torch.zeros(3)

    def run(self) -> Any:
        self.state = self.state * 2
        return self.state


def test_watch_sees_freed_but_not_held_state() -> None:
    network = Network()
    with capture_watch.Lifetimes() as lifetimes:
        network.run()
    assert lifetimes.freed() == ["aten.mul.Tensor of (3,)"]
    held = existing(torch.device("cpu"))
    with capture_watch.Lifetimes() as lifetimes:
        network.run()
    assert lifetimes.freed() == []
    assert any(tensor is network.state for tensor in existing(torch.device("cpu"))) and held


def test_existing_tensors_of_a_device_include_frozen_ones() -> None:
    here = torch.ones(2)
    gc.freeze()  # as the measurement of memory does
    everything = existing(torch.device("cpu"))
    assert any(tensor is here for tensor in everything)
    assert not any(tensor is ON_META for tensor in everything)
    assert any(tensor is ON_META for tensor in existing(torch.device("meta")))
