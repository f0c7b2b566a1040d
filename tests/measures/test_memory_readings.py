"""Tests of readings of memory: when a pass's bytes are read, and how they grow from pass to pass."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snnbench.adapter.refusal import Unavailable
from snnbench.measures.memory import worker as memory
from tests.fakes import MEASURED, altered, ask, reply_of, request

MIB = 1 << 20


@dataclass
class Pass:
    """A session and its backend. They derive the bytes in use from the passes, and note all events in order.

    A train pass leaves 1000 bytes in use until the next wait, and 40 for good. So the bytes show the time of a read.
    """

    events: list[str] = field(default_factory=list)
    in_use: int = 500
    pending: int = 0
    retains: bool = True

    def compile(self, phase: str) -> None:
        self.events.append(f"compile {phase}")

    def synchronise(self, outputs: Any) -> None:
        self.in_use -= self.pending
        self.pending = 0
        self.events.append("wait")

    def train(self) -> tuple[str, str]:
        self.pending += 1000
        self.in_use += 1040
        self.events.append("train")
        return "spikes", "gradients"

    def inference(self) -> str:
        self.events.append("inference")
        return "spikes"

    def forward(self) -> str:
        self.in_use += 300
        self.events.append("forward")
        return "kept"

    def static_bytes(self) -> int:
        return 7

    def planned_bytes(self, phase: str) -> int:
        return -1

    def reset_peak(self) -> bool:
        self.events.append("reset")
        return True

    def device_bytes(self) -> dict[str, int | None]:
        self.events.append("read")
        return {"peak": self.in_use + 5000, "in_use": self.in_use, "reserved": 8000, "used": 9000}


def test_bytes_are_read_after_compilation_and_after_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "GROWTH_NS", 10**12)  # even on a slow machine
    bench = Pass()
    measurement, spikes, gradients = memory.measure(bench, bench, "train")  # type: ignore[arg-type]
    assert bench.events[:7] == ["compile train", "wait", "reset", "read", "train", "wait", "read"]
    assert bench.events[7:12] == ["compile forward", "read", "forward", "wait", "read"]
    until_growth_is_read = [[*["train", "wait"] * passes, "read"] for passes in (2, 4, 4, 40)]
    assert bench.events[12:] == [event for part in until_growth_is_read for event in part]
    assert (spikes, gradients) == ("spikes", "gradients")
    assert measurement["static_bytes"] == 7
    assert measurement["device"] == {
        "before_bytes": 500,
        "peak_bytes": 540 + 5000 - 500,
        "reserved_bytes": 8000,
        "used_bytes": 9000,
        "unaccounted_bytes": 1000,
        "retained_bytes": 300,
        "growth_bytes": 40,
    }


def test_inference_has_no_gradients_and_retains_nothing() -> None:
    bench = Pass()
    measurement, spikes, gradients = memory.measure(bench, bench, "inference")  # type: ignore[arg-type]
    assert bench.events[:7] == ["compile inference", "wait", "reset", "read", "inference", "wait", "read"]
    assert "train" not in bench.events and "forward" not in bench.events
    assert (spikes, gradients, measurement["phase"]) == ("spikes", None, "inference")
    assert (measurement["device"]["retained_bytes"], measurement["device"]["growth_bytes"]) == (None, 0)


def test_growth_is_measured_for_150_ms() -> None:
    """The clock starts at 0 and gains 20 ms at each call: 7 passes after the sixth begin before 150 ms."""
    bench, ticks = Pass(), iter(range(0, 10**9, 20_000_000))
    measurement = memory._growth(bench, bench, "train", lambda: next(ticks))  # type: ignore[arg-type]
    assert bench.events.count("train") == 6 + 7
    assert measurement.device_bytes == 40


def test_growth_of_slow_passes_is_of_the_first_six() -> None:
    bench, ticks = Pass(), iter([0, *[10**9] * 99])
    assert memory._growth(bench, bench, "train", lambda: next(ticks)).device_bytes == 40  # type: ignore[arg-type]
    assert bench.events.count("train") == 6


def test_growth_starts_at_the_first_reading_of_an_allocator() -> None:
    bench = Pass()
    reads = iter([{}, {"in_use": 1000}, {"in_use": 1040}, {"in_use": 1440}])
    bench.device_bytes = lambda: next(reads)  # type: ignore[method-assign, assignment, return-value]
    grown = memory._growth(bench, bench, "train", lambda: 0)  # type: ignore[arg-type]
    assert grown.device_bytes == 10, "400 bytes in 40 passes"


@pytest.mark.parametrize(
    ("used", "reserved", "unaccounted"), [(9, 4, 5), (9, None, None), (None, 4, None), (None, None, None)]
)
def test_unaccounted_bytes_need_both_counts(used: int | None, reserved: int | None, unaccounted: int | None) -> None:
    measurement = memory._device({"in_use": 1}, {"peak": 3, "used": used, "reserved": reserved})
    assert (measurement["unaccounted_bytes"], measurement["peak_bytes"]) == (unaccounted, 2)


def test_freed_bytes_are_zero_growth() -> None:
    bench = Pass()

    def train() -> tuple[str, str]:
        bench.in_use -= 10
        return "spikes", "gradients"

    bench.train = train  # type: ignore[method-assign]
    assert memory._growth(bench, bench, "train").device_bytes == 0  # type: ignore[arg-type]


def test_high_water_mark_falls_on_reset_and_rises_with_use() -> None:
    np.ones(64 << 20, np.uint8)
    memory.settle()
    memory.reset_peak()
    before = memory.resident()
    assert before.peak_bytes - before.now_bytes < 2 * MIB
    np.ones(64 << 20, np.uint8)
    after = memory.resident()
    assert abs(after.peak_bytes - before.now_bytes - 64 * MIB) < 2 * MIB


def test_kernel_without_peak_reset_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "CLEAR_REFS", tmp_path / "gone" / "clear_refs")
    with pytest.raises(Unavailable, match=r"clear_refs cannot be written .*CONFIG_PROC_PAGE_MONITOR; gVisor has none$"):
        memory.reset_peak()


CHILD = f"""
import subprocess
import sys

children = []
program = "values = bytearray(64 << 20); print(flush=True); input()"

def forward(x):
    if {MEASURED} and not children:
        children.append(subprocess.Popen([sys.executable, "-c", program], stdin=-1, stdout=-1))
        children[0].stdout.readline()
    return right.forward(x)

return Network(forward, right.backward)
"""
"""A process of the library's own holds 64 MiB."""


def test_memory_of_another_process_counts(tmp_path: Path) -> None:
    reply = reply_of(ask(tmp_path, altered(CHILD), request("memory", phases=("train",))))
    assert reply.memory["host"]["peak_bytes"] > 64 << 20


def test_memory_that_is_taken_before_the_pass_is_refused(tmp_path: Path) -> None:
    """What a framework loads for its first network takes up to 64 MiB, and is recorded."""
    hoard = f"if {MEASURED}:\n    globals()['hoard'] = np.ones({{}} << 20)\nreturn right"
    reply = reply_of(ask(tmp_path, altered(hoard.format(4)), request("memory", phases=("train",))))
    assert reply.memory["host"]["build_bytes"] >= 32 << 20 and len(reply.memory["passes_ns"]) >= 6
    reply = reply_of(ask(tmp_path, altered(hoard.format(10)), request("memory", phases=("train",))))
    assert reply.outcome and reply.outcome.kind == "incorrect" and not reply.memory
    assert re.match(r"the network takes \d+(\.\d+)? MiB when it is built, and its weights", str(reply.outcome.reason))


def test_high_water_marks_of_descendants_are_reset_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "7").mkdir()
    monkeypatch.setattr(memory, "PROC", tmp_path)
    monkeypatch.setattr(memory, "CLEAR_REFS", tmp_path / "clear_refs")
    monkeypatch.setattr(memory, "descendants", lambda pid: [7])
    memory.reset_peak()
    assert [(tmp_path / name).read_text() for name in ("clear_refs", "7/clear_refs")] == ["5", "5"]


def test_memory_settles_before_each_reading_of_what_a_pass_retains(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Pass()
    monkeypatch.setattr(memory, "settle", lambda: bench.events.append("settle"))
    memory._retained(bench, bench)  # type: ignore[arg-type]
    assert bench.events == ["compile forward", "settle", "read", "forward", "wait", "settle", "read"]
