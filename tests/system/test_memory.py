"""Tests of a pass's memory in a worker: its peak and its retained memory, without the memory of others."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snnbench.recording.flags import raised
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

class Backend(driver.Backend):
    \"\"\"A device whose allocator has 100 bytes in use more each time it is asked.\"\"\"

    asked = 0

    def device_bytes(self):
        self.asked += 1
        in_use = 1000 + 100 * self.asked
        return {"peak": in_use + 5000, "in_use": in_use, "reserved": 8000, "used": %(used)s}


driver.Backend = Backend
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


COUNTER = (
    overridden("""
    def planned_bytes(self, phase):
        return 7777 if phase == "train" else -1
    """)
    + """

class Backend(driver.Backend):
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


driver.Backend = Backend
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
