"""Tests of the timing of asynchronous work, on a real clock: it is timed in full, and only a GPU is kept busy."""

from pathlib import Path
from typing import Any

import pytest

from snnbench.worker import timed_phase, timing
from tests.fakes import CASE, CORRECT, OWN, PHASES, ask, reply_of, request
from tests.recordings import EXACT
from tests.worker.test_timing import MS

pytestmark = pytest.mark.quiet

TRUE_MS = 40
ASYNCHRONOUS = (
    CORRECT
    + """
import threading
import time

from snnbench.backends import numpy as driver

class Device:
    \"\"\"Does one thing after the other, each in %(true_ms)s ms, while nobody waits for it.\"\"\"

    def __init__(self):
        self.free_at = 0.0

    def start(self):
        self.free_at = max(time.perf_counter(), self.free_at) + %(true_ms)s / 1000

    def wait(self):
        while (left := self.free_at - time.perf_counter()) > 0:
            if left > 0.002:
                time.sleep(left - 0.002)


class Session(driver.Session):
    device = Device()

    def inference(self):
        self.device.start()
        return self.input.copy()

    def forward(self):
        return self.inference(), None

    def backward(self, kept):
        self.device.start()
        return kept[0], self.cotangent.copy()

    def train(self):
        outputs = self.forward()
        return outputs[0], self.backward(outputs)

    def synchronise(self, outputs):
        %(synchronise)s

    def answer(self, spikes, gradients):
        spikes, kept = self.network.forward(spikes)
        if gradients is not None:
            gradients = self.network.backward(kept, gradients[1])
        return super().answer(spikes, gradients)


driver.Session = Session
"""
)
"""Every pass returns at once, as on an accelerator, and its work ends TRUE_MS later; train takes twice TRUE_MS.

The answer is computed when it is read: a pass contains only the device's own time.
"""


def passes_ms(folder: Path, synchronise: str, **changes: Any) -> dict[str, list[float]]:
    """Milliseconds of a pass in every repetition, for every phase of the asynchronous fake."""
    source = ASYNCHRONOUS % {"true_ms": TRUE_MS, "synchronise": synchronise}
    reply = reply_of(ask(folder, source, request("time", CASE, repetitions=5, **changes)))
    assert reply.outcome == EXACT
    assert set(reply.phases) == set(PHASES)
    return {
        name: [duration_ns / phase["passes"] / MS for duration_ns in phase["repetitions_ns"]]
        for name, phase in reply.phases.items()
    }


def timed_in_full(by_phase: dict[str, list[float]]) -> bool:
    """Whether every phase's fastest repetition takes its true time within 2 %."""
    true = {"inference": TRUE_MS, "forward": TRUE_MS, "backward": TRUE_MS, "train": 2 * TRUE_MS}
    return all(0.98 * true[name] < min(passes) < 1.02 * true[name] for name, passes in by_phase.items())


@pytest.mark.parametrize("min_repetition_ns", [1, 50 * MS], ids=["one pass", "passes in a row"])
def test_asynchronous_work_is_timed_in_full(tmp_path: Path, min_repetition_ns: int) -> None:
    by_phase = passes_ms(tmp_path, "self.device.wait()", min_repetition_ns=min_repetition_ns)
    assert timed_in_full(by_phase), by_phase


def test_without_synchronisation_a_pass_is_faster_than_its_floor(tmp_path: Path) -> None:
    """A product of N = 256 takes a hundred times as long as the start of a pass, and the fake waits for no pass."""
    source = ASYNCHRONOUS % {"true_ms": TRUE_MS, "synchronise": "pass"}
    brief = request("time", CASE.with_(neurons=256), repetitions=5, max_phase_ns=10 * MS)
    outcome = reply_of(ask(tmp_path, source, brief)).outcome
    assert outcome.kind == "below-floor"
    assert all(f"a pass of {name} took" in outcome.reason for name in PHASES), outcome


def test_only_a_gpu_is_kept_busy(tmp_path: Path) -> None:
    cuda = altered_device("cuda")
    busy = reply_of(ask(tmp_path, cuda, request("time", CASE.with_(device="cuda"))))
    assert all(phase["busy_passes"] > 1 for phase in busy.phases.values()), busy.outcome
    assert all(len(phase["fresh_ns"]) >= 2 and phase["drawn_ns"] for phase in busy.phases.values())
    idle = reply_of(ask(tmp_path, CORRECT, request("time")))
    assert all(phase["busy_passes"] == 0 for phase in idle.phases.values())


def altered_device(device: str) -> str:
    """The correct fake, with its own backend for this device."""
    return (
        CORRECT
        + OWN.format(methods="    pass")
        + f"""

    def __init__(self, case):
        assert case.device == {device!r}
        super().__init__(replace(case, device="cpu"))
"""
    )


def test_card_is_kept_busy_before_a_fresh_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    busy_ns: list[int] = []
    monkeypatch.setattr(timing, "keep_busy", lambda phase, duration_ns, clock: busy_ns.append(duration_ns))
    phase = object.__new__(timed_phase.TimedPhase)
    phase._on_cpu, phase._phase = False, None
    phase._settle()
    assert busy_ns == [timed_phase.BUSY_AGAIN_NS] and 0 < timed_phase.BUSY_AGAIN_NS < timed_phase.BUSY_NS
