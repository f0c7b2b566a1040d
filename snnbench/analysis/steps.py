"""Steps: the days on which a contender's time changed for good, in many recordings of the same work.

Each time is first divided by the movement of the machine in its recording: the median of its witnesses, which are the
probes of its own processes, and contenders of other libraries in the same case. The quotients become ranks, so neither
their distribution nor a single odd day matters, and `ruptures` divides the ranks into stretches of least squares. A
step that is small, or that the machine may explain by the rule of `compare`, is none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log
from statistics import fmean, median

import numpy as np
from numpy.typing import NDArray

from snnbench.analysis.decision import Thresholds
from snnbench.analysis.movement import Explained, Timed, movement
from snnbench.measures.probes.levels import WORDS, levels
from snnbench.recording.reading import Recording
from snnbench.recording.record import Record

FEWEST = 20
"""The fewest recordings in which steps are looked for."""
SHORTEST = 5
"""The fewest recordings between two steps, before the first and after the last."""
NEAR = 10
"""The most recordings on either side of a step that say whether the machine explains it: it may move at other times."""
PENALTY = 13.0
"""A step must explain so many times the variance of all ranks. In 20 to 250 recordings at most 1 % of series of equal
work then show a step before its size is looked at: `python -m benchmarks steps` counts them."""

Times = Mapping[Timed, float]
"""(case, contender, phase) -> the median over trials, in ns."""


@dataclass(frozen=True, slots=True)
class Step:
    """`at` is the number of the first recording after the step. `ratio` is the time after it over that before, both
    divided by the movement of the machine.
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
    logs = np.array([log(each[timed]) for each in times])
    divided = logs - _movement(recordings, times, timed)
    bounds, floor = [0, *places(list(divided)), len(logs)], 1 + thresholds.time_floor
    found = []
    for start, at, end in zip(bounds, bounds[1:], bounds[2:], strict=False):
        before, after = slice(max(start, at - NEAR), at), slice(at, min(end, at + NEAR))
        ratio = exp(np.median(logs[after]) - np.median(logs[before]))
        explained = _explained(recordings, times, timed, (before, after), thresholds.alpha)
        low, high = (explained.low, explained.high) if explained else (1.0, 1.0)
        if ratio > high * floor or ratio < low / floor:
            found.append(Step(at, exp(np.median(divided[at:end]) - np.median(divided[start:at]))))
    return found


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
    recordings: Sequence[Recording], times: Sequence[Times], timed: Timed, sides: tuple[slice, slice], alpha: float
) -> Explained | None:
    """The ratios that the machine explains between two stretches, each taken as one recording."""
    case, _, phase = timed
    everywhere = set.intersection(*(set(each) for side in sides for each in times[side]))
    medians = [{one: median(each[one] for each in times[side]) for one in everywhere} for side in sides]
    alike = [one for one in everywhere if (one[0], one[2]) == (case, phase)]
    base, new = (_joined(recordings[side], case) for side in sides)
    ratios = {one: medians[1][one] / medians[0][one] for one in alike}
    return movement(base, new, {case: case}, ratios, alpha).explained.get(timed)


def _joined(recordings: Sequence[Recording], case: object) -> Recording:
    """The records of a case in several recordings, as one recording."""
    environments = {key: packages for each in recordings for key, packages in each.environments.items()}
    records = [record for each in recordings for record in each.records if record.case == case]
    return replace(recordings[-1], records=records, environments=environments)
