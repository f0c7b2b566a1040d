"""Tests of a pass's memory: its peak and its retained memory, without the memory of others."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snnbench.adapter.refusal import Unavailable
from snnbench.recording.flags import raised
from snnbench.worker import memory
from tests.fakes import CASE, CORRECT, altered, ask, overridden, reply_of, request
from tests.recordings import EXACT

MIB = 1 << 20
SMALL = CASE.with_(time_steps=8, batch=2, neurons=16)
LARGE = CASE.with_(time_steps=100, batch=8, neurons=256)

SPIKE = """
def forward(x):
    held = np.ones(64 << 20, np.uint8)
    started = time.perf_counter()
    while time.perf_counter() - started < 0.005:
        pass
    del held
    return right.forward(x)

import time
return Network(forward, right.backward)
"""

KEEPING = """
def forward(x):
    spikes, kept = right.forward(x)
    return spikes, (kept, np.ones({mib} << 20, np.uint8))

return Network(forward, lambda kept, cotangent: right.backward(kept[0], cotangent))
"""


def measured(folder: Path, source: str, case: Any = SMALL, **changes: Any) -> dict[str, Any]:
    """A worker's reply about the memory of the adapter with this text."""
    reply = reply_of(ask(folder, source, request("memory", case, **changes)))
    assert reply.outcome == EXACT
    return reply.memory


def test_memory_of_the_parent_is_not_counted(tmp_path: Path) -> None:
    alone = measured(tmp_path, CORRECT, LARGE)["host"]["peak_bytes"]
    held = np.ones(1 << 30, np.uint8)
    beside = measured(tmp_path, CORRECT, LARGE)["host"]["peak_bytes"]
    assert held.nbytes == 1 << 30
    assert alone > 2 * MIB, "a peak of nothing would agree with any other"
    assert abs(beside - alone) < MIB


def test_spike_of_five_milliseconds_is_seen(tmp_path: Path) -> None:
    host = measured(tmp_path, altered(SPIKE))["host"]
    assert abs(host["peak_bytes"] - 64 * MIB) < 2 * MIB
    assert host["retained_bytes"] < MIB, "it is gone when the pass is over"


@pytest.mark.parametrize("mib", [0, 32])
def test_memory_kept_for_the_backward_pass_is_counted(tmp_path: Path, mib: int) -> None:
    host = measured(tmp_path, altered(KEEPING.format(mib=mib)))["host"]
    assert abs(host["retained_bytes"] - mib * MIB) < 2 * MIB
    assert abs(host["peak_bytes"] - mib * MIB) < 2 * MIB


def test_earlier_peak_is_not_counted(tmp_path: Path) -> None:
    """Earlier memory of an import or the exam does not belong to the pass."""
    source = CORRECT + "\nnp.ones(200 << 20, np.uint8)\n"
    assert measured(tmp_path, source)["host"]["peak_bytes"] < 2 * MIB


def test_peak_agrees_with_the_arrays_of_the_case(tmp_path: Path) -> None:
    """At least spikes, potentials and decayed potentials, and the gradients of input and current."""
    measurement = measured(tmp_path, CORRECT, LARGE)
    array = 4 * LARGE.updates
    assert measurement["phase"] == "train"
    assert measurement["static_bytes"] == 2 * array + 4 * 256 * 257
    assert 5 * array < measurement["host"]["peak_bytes"] < 15 * array
    assert 3 * array <= measurement["host"]["retained_bytes"] < 3 * array + 2 * MIB
    assert "device" not in measurement


def test_inference_retains_no_memory(tmp_path: Path) -> None:
    measurement = measured(tmp_path, altered(SPIKE), phases=("inference",))
    assert (measurement["phase"], measurement["host"]["retained_bytes"]) == ("inference", None)
    assert abs(measurement["host"]["peak_bytes"] - 64 * MIB) < 2 * MIB


DEVICE = (
    overridden("pass")
    + """

class Backend(Backend):
    \"\"\"A device whose allocator has 100 bytes in use more each time it is asked.\"\"\"

    asked = 0

    def device_bytes(self):
        self.asked += 1
        in_use = 1000 + 100 * self.asked
        return {"peak": in_use + 5000, "in_use": in_use, "reserved": 8000, "used": %(used)s}
"""
)


@pytest.mark.parametrize(("used", "unaccounted"), [("9500", 1500), ("None", None)])
def test_device_bytes_come_from_its_allocator(tmp_path: Path, used: str, unaccounted: int | None) -> None:
    device = measured(tmp_path, DEVICE % {"used": used})["device"]
    assert device == {
        "before_bytes": 1100,
        "peak_bytes": 1200 + 5000 - 1100,
        "reserved_bytes": 8000,
        "used_bytes": None if unaccounted is None else 9500,
        "unaccounted_bytes": unaccounted,
        "retained_bytes": 100,
        "growth_bytes": 100 // 40,  # one query in the last 40 passes
    }


@dataclass
class Pass:
    """A session and its backend. They derive the bytes in use from the passes, and note all events in order.

    A train pass leaves 1000 bytes in use until the next wait, and 40 for good. So the bytes show the time of a read.
    """

    events: list[str] = field(default_factory=list)
    in_use: int = 500
    pending: int = 0

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
    until_growth_is_read = [[*["train", "wait"] * passes, "read"] for passes in (2, 8, 40)]
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


def test_growth_is_measured_for_300_ms_and_at_least_ten_passes() -> None:
    """The clock starts at 0 and gains 40 ms at each call: 7 passes after the tenth begin before 300 ms."""
    bench, ticks = Pass(), iter(range(0, 10**9, 40_000_000))
    measurement = memory._growth(bench, bench, "train", lambda: next(ticks))  # type: ignore[arg-type]
    assert bench.events.count("train") == 10 + 7
    assert measurement.device_bytes == 40


def test_growth_of_slow_passes_is_of_the_first_ten() -> None:
    bench, ticks = Pass(), iter([0, *[10**9] * 99])
    assert memory._growth(bench, bench, "train", lambda: next(ticks)).device_bytes == 40  # type: ignore[arg-type]
    assert bench.events.count("train") == 10


def test_growth_starts_at_the_first_reading_of_an_allocator() -> None:
    bench = Pass()
    reads = iter([{}, {"in_use": 1000}, {"in_use": 1400}])
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


COUNTER = (
    overridden("""
    def planned_bytes(self, phase):
        return 7777 if phase == "train" else -1
    """)
    + """

class Backend(Backend):
    \"\"\"A device whose allocator had a peak of 9000 bytes before the pass, and 1000 in use.\"\"\"

    peak = 9000

    def device_bytes(self):
        return {"peak": self.peak, "in_use": 1000, "reserved": 9000, "used": 9000}

    def reset_peak(self):
        self.peak = %(reset)s
        return %(resets)s

    def session(self, *build):
        session = super().session(*build)
        real = session.train

        def train():
            self.peak = max(self.peak, %(pass_peak)s)
            return real()

        session.train = train
        return session
"""
)


@pytest.mark.parametrize(
    ("reset", "resets", "pass_peak", "expected"),
    [
        ("1000", "True", "3000", 2000),  # the counter is reset: memory before the pass is forgotten
        ("9000", "False", "12000", 11000),  # it cannot be reset, and rises in the pass: it is the pass's
        ("9000", "False", "3000", 7777),  # it cannot be reset, and does not rise: the compiler's plan
    ],
)
def test_device_peak_is_the_passes_own(tmp_path: Path, reset: str, resets: str, pass_peak: str, expected: int) -> None:
    source = COUNTER % {"reset": reset, "resets": resets, "pass_peak": pass_peak}
    assert measured(tmp_path, source)["device"]["peak_bytes"] == expected


def test_kernel_without_peak_reset_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "CLEAR_REFS", tmp_path / "gone" / "clear_refs")
    with pytest.raises(Unavailable, match=r"clear_refs cannot be written .*CONFIG_PROC_PAGE_MONITOR; gVisor has none$"):
        memory.reset_peak()


LEAKING = """
held = []

def forward(x):
    held.append(np.ones({kib} << 10, np.uint8))
    return right.forward(x)

return Network(forward, right.backward)
"""


@pytest.mark.parametrize(("kib", "grows"), [(0, False), (8, False), (512, True)])
def test_leak_of_every_pass_is_measured_and_flagged(tmp_path: Path, kib: int, grows: bool) -> None:
    reply = reply_of(ask(tmp_path, altered(LEAKING.format(kib=kib)), request("memory", SMALL)))
    grown_bytes = reply.memory["host"]["growth_bytes"]
    assert abs(grown_bytes - (kib << 10)) < 48 << 10
    assert ("grows" in raised({}, reply.memory, {}, 1, ())) is grows


def test_memory_taken_only_by_first_passes_is_not_growth(tmp_path: Path) -> None:
    once = LEAKING.format(kib=4096).replace("held.append(", "len(held) > 5 or held.append(")
    assert measured(tmp_path, altered(once))["host"]["growth_bytes"] < 48 << 10
