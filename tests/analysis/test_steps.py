"""Tests of steps: nightly recordings of made-up times, with and without a change of a library or of the machine."""

from collections.abc import Sequence
from math import exp
from statistics import median

import numpy as np
import pytest

from snnbench.analysis.decision import Thresholds
from snnbench.analysis.steps import Step, Times, places, steps
from snnbench.recording.reading import Recording
from tests.analysis.test_movement import probed
from tests.fakes import CASE
from tests.recordings import recording, trials

NIGHTS = 60


def nightly(seed: int, library: Sequence[float], machine: Sequence[float], probe: float = 1.0) -> list[Step]:
    """The steps of the contender `lib/loop` that takes these times in its nights, on a machine so much slower.

    Its release is 1.1 from the first night on which the times differ from those of the first. Probes get slower by the
    power `probe` of the machine. Two other libraries do not change.
    """
    random = np.random.default_rng(seed)
    recordings: list[Recording] = []
    times: list[Times] = []
    for night in range(NIGHTS):
        level = machine[night] * exp(random.normal(0, 0.03))
        version = "1.0" if library[night] == library[0] else "1.1"
        records = []
        for name, ms in (("lib/loop", library[night]), ("other", 2.0), ("third", 3.0)):
            drawn = [ms * level * exp(random.normal(0, 0.03)) for _ in range(3)]
            release = version if name == "lib/loop" else "2.0"
            records += probed(trials(name, drawn), *[level**probe * exp(random.normal(0, 0.01))] * 4, version=release)
        recordings.append(recording(*records, name=f"night-{night}"))
        of_name = {one.label: [] for one in records}  # type: dict[str, list[float]]
        for one in records:
            of_name[one.label].append(one.phases["train"]["repetitions_ns"][0] / 2)
        times.append({(CASE, name, "train"): median(each) for name, each in of_name.items()})
    return steps(recordings, times, (CASE, "lib/loop", "train"), Thresholds())


def stepped(at: int, factor: float) -> list[float]:
    """1 until a night, and `factor` from it on."""
    return [1.0 if night < at else factor for night in range(NIGHTS)]


def test_library_that_gets_slower_is_found_at_its_night() -> None:
    for at in (12, 35, 52):
        (step,) = nightly(at, stepped(at, 1.12), [1.0] * NIGHTS)
        assert step.at == at and step.ratio == pytest.approx(1.12, abs=0.04)


def test_machine_that_gets_slower_is_no_step_of_the_library() -> None:
    """Neither where its probes move as much, nor where they move less than all libraries do."""
    for probe in (1.0, 0.4):
        assert nightly(3, [1.0] * NIGHTS, stepped(30, 1.5), probe) == []
    (step,) = nightly(4, stepped(40, 0.85), stepped(20, 1.5))
    assert step.at == 40 and step.ratio < 1


def test_noise_has_steps_in_one_series_of_a_hundred() -> None:
    random = np.random.default_rng(0)
    found = sum(bool(places(random.standard_t(2, NIGHTS))) for _ in range(2000))
    assert 0 < found <= 20
    assert places([1.0] * NIGHTS) == []
