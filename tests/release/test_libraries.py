"""Tests of every library of the config quick, timed once, and of variants that need a CUDA device."""

import re
from pathlib import Path

import pytest

from snnbench.adapter.declaration import Adapter
from snnbench.adapter.discovery import discover
from snnbench.environments import store
from snnbench.files import home
from snnbench.machine import gpus
from snnbench.plan import config
from snnbench.recording.record import Record
from snnbench.run.process import environment, run
from snnbench.worker.messages import Request
from tests.fakes import CASE
from tests.managed import ROOT, recorded
from tests.recordings import EXACT

pytestmark = pytest.mark.libraries


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """One trial of the first command in the README, on a smaller case."""
    folder = tmp_path_factory.mktemp("quick") / "recording"
    changes = ("protocol.trials=1", "protocol.repetitions=3", "protocol.remeasure=0")
    return recorded("quick", folder, *changes, "case.neurons=64", "case.time_steps=50")


@pytest.fixture(scope="module")
def adapters() -> dict[str, Adapter]:
    return discover()


def test_every_library_is_measured_with_raw_durations(quick: list[Record], adapters: dict[str, Adapter]) -> None:
    timed = [record for record in quick if record.measure == "time"]
    loaded = config.load(ROOT / "configs" / "quick.toml", default_threads=2)
    assert {record.library for record in timed} == {work.library for work in config.expand(loaded, adapters)}
    for record in timed:
        assert record.outcome == EXACT
        assert set(record.phases) == {"inference", "forward", "backward", "train"}
        for phase in record.phases.values():
            repetitions_ns = phase.get("contested_ns") or phase["repetitions_ns"]
            assert len(repetitions_ns) == 3 and min(phase["repetitions_ns"]) > 0
            assert len(phase["warmup_ns"]) == 2 and phase["first_call_ns"] > 0 and phase["compilations"] == 0
            assert phase["floor_ns"] > 0 and phase["times_floor"] > 1
    for record in quick:
        if record.measure == "memory":
            assert record.memory["host"]["peak_bytes"] > 0 and record.memory["host"]["retained_bytes"] > 0
            assert record.memory["static_bytes"] >= 4 * (64 * 64 + 64 + 2 * 50 * 16 * 64)


@pytest.mark.skipif(gpus.has_cuda(), reason="there is a CUDA device")
def test_cuda_variant_without_a_device_is_refused(tmp_path: Path, adapters: dict[str, Adapter]) -> None:
    """On the CPU the declaration refuses; on a missing device the framework does. It never crashes."""
    ready = {"torch": "torch-loop", "jax": "jax-scan"}
    for adapter in adapters.values():
        for name, variant in adapter.variants.items():
            if variant.devices != ("cuda",):
                continue
            own = store.plan(adapter, name, cuda=False)
            python = (
                own.python
                if store.is_ready(own)
                else store.plan(
                    adapters[ready[variant.backend]], adapters[ready[variant.backend]].default, cuda=False
                ).python
            )
            assert variant.refusal(CASE) == "runs on cuda only"
            request = Request(measure="verify", case=CASE.with_(device="cuda"), variant=name)
            ending = run(python, adapter.path, request, environment(1, home()), timeout_s=120)
            assert ending.reply is not None, ending.log
            outcome = ending.reply.outcome
            if outcome.kind == "import":  # the substitute Python lacks the library
                assert not store.is_ready(own), outcome
                continue
            lacking = re.search("sees no CUDA device|is built without CUDA|has no device cuda", outcome.reason)
            declined = re.search("reset|subtract|the reference in", outcome.reason)
            assert lacking or declined, (name, outcome)
            assert outcome.kind == ("unavailable" if lacking else "unsupported"), (name, outcome)
