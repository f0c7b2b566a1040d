"""Tests of the floor in a worker: a fake faster than the machine gets no time, and peaks are measured again."""

import re
from pathlib import Path
from typing import Any

import pytest

from snnbench.worker import floor
from snnbench.worker.floor import Peak
from snnbench.worker.messages import Reply
from tests.fakes import CASE, CORRECT, PHASES, ask, document, overridden, quantities, reply_of, request
from tests.recordings import EXACT

READY = """
def load_cotangent(self, cotangent):
    super().load_cotangent(cotangent)
    spikes, kept = self.network.forward(self.input)
    self.ready = spikes, (spikes, kept), self.network.backward(kept, self.cotangent)

def inference(self):
    return self.ready[0]

def forward(self):
    return self.ready[1]

def backward(self, kept):
    return self.ready[2]

def train(self):
    return self.ready[0], self.ready[2]
"""
"""A fake with right answers, all made before the clock starts."""
CASE_256 = CASE.with_(neurons=256, batch=8, time_steps=40)
"""A case in which a product takes some hundred times longer than a call."""


def timed(folder: Path, source: str, **changes: Any) -> Reply:
    """The reply about an adapter with this text, timed at N = 256."""
    return reply_of(ask(folder, source, request("time", CASE_256, **changes)))


@pytest.mark.parametrize("phase", PHASES)
def test_answer_faster_than_the_machine_has_no_time(tmp_path: Path, phase: str) -> None:
    reply = timed(tmp_path, overridden(READY), phases=(phase,))
    assert (reply.outcome.status, reply.outcome.kind) == ("failed", "below-floor"), reply.outcome
    number = r"[\d.e-]+"
    expected = rf"a pass of {phase} took {number} ms, which is below the floor of {number} ms by more than the spread"
    assert re.match(expected, reply.outcome.reason)
    assert all(check["correct"] for check in reply.checks.values()), "nothing but the clock tells it"
    assert (reply.phases, reply.peaks) == ({}, {})
    assert quantities(document(reply)) == []


def test_one_too_fast_phase_removes_all_times(tmp_path: Path) -> None:
    inference = READY[READY.index("def inference") : READY.index("def forward")]
    reply = timed(tmp_path, overridden(READY[: READY.index("def inference")] + inference))
    assert reply.outcome.kind == "below-floor"
    assert "inference" in reply.outcome.reason and "train" not in reply.outcome.reason
    assert (reply.phases, reply.peaks) == ({}, {})


def test_deviation_does_not_excuse_a_too_fast_phase(tmp_path: Path) -> None:
    reply = timed(tmp_path, overridden(READY) + '\nDEVIATION = "in no time"\n', phases=("train",))
    assert reply.outcome.kind == "below-floor"


def test_honest_answer_is_measured_as_a_multiple_of_its_floor(tmp_path: Path) -> None:
    reply = timed(tmp_path, CORRECT)
    assert reply.outcome == EXACT
    assert set(reply.peaks) == {"current", "weight_gradient", "input_gradient", "copy", "call"}
    measured = {name: Peak(**peak) for name, peak in reply.peaks.items()}
    for name in PHASES:
        phase = reply.phases[name]
        assert phase["flops"] == floor.flops(CASE_256, name)
        assert phase["least_bytes"] == floor.least_bytes(CASE_256, name)
        assert phase["floor_ns"] == pytest.approx(floor.floor_ns(CASE_256, name, measured), abs=1)
        middle = sorted(phase["repetitions_ns"])[1] / phase["passes"]
        assert phase["times_floor"] == pytest.approx(middle / phase["floor_ns"], rel=1e-3)
        assert phase["times_floor"] >= 1
    assert reply.phases["train"]["floor_ns"] > reply.phases["inference"]["floor_ns"] > 1000


def test_peaks_are_measured_for_the_requested_phases_only(tmp_path: Path) -> None:
    assert set(timed(tmp_path, CORRECT, phases=("inference",)).peaks) == {"current", "copy", "call"}


WITHOUT_PEAKS = (
    CORRECT
    + """
from snnbench.backends import numpy as driver


class Backend(driver.Backend):
    def peaks(self, *matrices):
        raise RuntimeError("a look at the peaks")


driver.Backend = Backend
"""
)


@pytest.mark.parametrize(("measure", "met"), [("time", True), ("memory", False), ("verify", False)])
def test_only_a_timing_process_measures_peaks(tmp_path: Path, measure: Any, met: bool) -> None:
    outcome = reply_of(ask(tmp_path, WITHOUT_PEAKS, request(measure))).outcome
    assert (outcome.status == "failed") is met
    assert not met or outcome.reason.startswith("RuntimeError: a look at the peaks")


DISTURBED = (
    CORRECT
    + """
import time
from pathlib import Path

from snnbench.backends import numpy as driver
from snnbench.measures.probes.worker import PRODUCT_SIZE


class Backend(driver.Backend):
    looks = 0

    def peaks(self, entering, *given):
        given = entering, *given
        if given[-1] == PRODUCT_SIZE["cpu"]:  # the rows of a probe
            return super().peaks(*given)
        Backend.looks += 1
        Path(__file__).with_suffix(".looks").write_text(str(self.looks))
        slow = 0.1 if self.looks <= {disturbed} else 0.0
        return {{name: lambda run=run: (time.sleep(slow), run())[1] for name, run in super().peaks(*given).items()}}


driver.Backend = Backend
"""
)
"""A fake on a machine that is busy only during the first looks at its peaks."""


@pytest.mark.parametrize(("disturbed", "looks"), [(0, 2), (3, 4)])
def test_peaks_are_measured_again_before_a_time_is_rejected(tmp_path: Path, disturbed: int, looks: int) -> None:
    source = DISTURBED.format(disturbed=disturbed)
    reply = reply_of(ask(tmp_path, source, request("time", phases=("train",))))
    assert reply.outcome == EXACT
    assert (tmp_path / "fake.looks").read_text() == str(looks)
    assert reply.phases["train"]["times_floor"] > 1


def test_peaks_are_measured_before_between_and_after_phases(tmp_path: Path) -> None:
    """Here always, because SHARE is 0."""
    source = "from snnbench.worker import peaks\npeaks.SHARE = 0\n" + DISTURBED.format(disturbed=0)
    reply = reply_of(ask(tmp_path, source, request("time")))
    assert (tmp_path / "fake.looks").read_text() == str(len(PHASES) + 1)
    assert len(reply.peaks["copy"]["repetitions_ns"]) > len(PHASES)
