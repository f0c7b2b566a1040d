"""Steps: the days on which a contender's time changed for good, in many recordings of the same work.

Each time is first divided by the movement of the machine in its recording: the median of its witnesses, which are the
probes of its own processes, and contenders of other libraries in the same case. The quotients become ranks, so neither
their distribution nor a single odd day matters, and `ruptures` divides the ranks into stretches of least squares.

Two kinds of step are left out: those of at most the time floor, and those that the machine may explain. The machine may
explain as much as single witnesses moved beyond their median, with the margins that `compare` gives to witnesses.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from snnbench.analysis.decision import Thresholds
from snnbench.analysis.movement import Timed, explain, witnesses
from snnbench.measures.probes.levels import WORDS, levels
from snnbench.recording.reading import Recording
from snnbench.recording.record import Record

FEWEST = 20
"""The fewest recordings in which steps are looked for."""
SHORTEST = 5
"""The fewest recordings between two steps, before the first and after the last."""
NEAR = 20
"""The most recordings on either side of a step that measure it and its witnesses."""
PENALTY = 13.0
"""A step must explain so many times the variance of all ranks. In 20 to 250 recordings at most 1 % of series of equal
work then show a step before its size is looked at: `python -m benchmarks steps` counts them."""

Times = Mapping[Timed, float]
"""(case, contender, phase) -> the median over trials, in ns."""


@dataclass(frozen=True, slots=True)
class Step:
    """`at` is the number of the first recording after the step.

    `ratio` is the time after it over that before, in recordings near it, both divided by the machine's movement.
    """

    at: int
    ratio: float


def places(values: Sequence[float]) -> list[int]:
    """The numbers of the values at which another stretch begins; `values` [n] are in the order of time."""
    from ruptures import KernelCPD
    from scipy.stats import rankdata

    ranks = rankdata(values)
    if ranks.std() == 0:
        return []
    scores = (ranks - ranks.mean()) / ranks.std()
    ends = KernelCPD("linear", min_size=SHORTEST).fit_predict(scores[:, None], pen=PENALTY)
    return [int(end) for end in ends[:-1]]


def steps(recordings: Sequence[Recording], times: Sequence[Times], timed: Timed, thresholds: Thresholds) -> list[Step]:
    """The steps of one time in comparable recordings, the oldest first; `times` [n] are all times of each of them."""
    moved = _movement(recordings, times, timed)
    divided = np.array([log(each[timed]) for each in times]) - moved
    bounds, floor = [0, *places(list(divided)), len(divided)], log(1 + thresholds.time_floor)
    significant = []
    for start, at, end in zip(bounds, bounds[1:], bounds[2:], strict=False):
        near = slice(max(start, at - NEAR), at), slice(at, min(end, at + NEAR))
        step = _step(divided, near)
        low, high = _explained(recordings, times, moved, timed, near, thresholds.alpha)
        if step > high + floor or step < low - floor:
            significant.append(Step(at, exp(step)))
    return significant


def _step(values: NDArray[np.float64], near: tuple[slice, slice]) -> float:
    before, after = (float(np.median(values[side])) for side in near)
    return after - before


def _movement(recordings: Sequence[Recording], times: Sequence[Times], timed: Timed) -> NDArray[np.float64]:
    """The logarithm [n] of how much slower the machine was in each recording: the median of the witnesses."""
    case, contender, phase = timed
    library = contender.partition("/")[0]
    witnesses = [
        [log(each[other]) for each in times]
        for other in times[0]
        if (other[0], other[2]) == (case, phase)
        and other[1].partition("/")[0] != library
        and all(other in each for each in times)
    ]
    by_recording = []
    for recording in recordings:
        own = [one for one in recording.records if (one.case, one.label) == (case, contender) and one.probes]
        by_recording.append({name: fmean(levels(one.probes)[name] for one in own) for name in WORDS if _has(own, name)})
    witnesses += [[each[name] for each in by_recording] for name in set.intersection(*map(set, by_recording))]
    if not witnesses:
        return np.zeros(len(recordings))
    lines = np.array(witnesses)
    centred = lines - np.median(lines, axis=1, keepdims=True)
    return np.asarray(np.median(centred, axis=0))


def _has(records: Sequence[Record], probe: str) -> bool:
    return bool(records) and all(probe in one.probes for one in records)


def _explained(
    recordings: Sequence[Recording],
    times: Sequence[Times],
    moved: NDArray[np.float64],
    timed: Timed,
    near: tuple[slice, slice],
    alpha: float,
) -> tuple[float, float]:
    """The logarithms of ratios that the machine explains beside its movement, which is divided out of all."""
    case, _, phase = timed
    everywhere = set.intersection(*(set(each) for side in near for each in times[side]))
    alike = [one for one in everywhere if (one[0], one[2]) == (case, phase)]
    logs = {one: np.array([log(each[one]) if one in each else np.nan for each in times]) for one in alike}
    ratios = {one: exp(_step(logs[one] - moved, near)) for one in alike}
    base, new = (_joined(recordings[side], case) for side in near)
    probes, controls = witnesses(base, new, {case: case}, ratios).beside(timed)
    if not probes and not controls:
        return 0.0, 0.0
    machine = _step(moved, near)
    explained = explain([probe - machine for probe in probes], controls, "", alpha / len(alike))
    return log(explained.low), log(explained.high)


def _joined(recordings: Sequence[Recording], case: object) -> Recording:
    """The records of a case in several recordings, as one recording."""
    environments = {key: packages for each in recordings for key, packages in each.environments.items()}
    records = [record for each in recordings for record in each.records if record.case == case]
    return replace(recordings[-1], records=records, environments=environments)
