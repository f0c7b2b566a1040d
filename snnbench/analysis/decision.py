"""Decisions: the words for a comparison, and the conditions for each."""

from dataclasses import dataclass
from math import isfinite

from snnbench.analysis.difference import Difference

WORDS = ("slower", "faster", "failed", "missing", "incomparable", "inconclusive", "same")
"""All words for a cell, most interesting first. For memory, slower means more."""

ADVICE = "run more trials"
"""The end of a reason if trials were tested and gave no word."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Limits that a change must pass. Floors are relative: 0.05 is a ratio of 1.05, or its inverse.

    A change within `time_floor` or `memory_floor` is too small to matter. `alpha` is the accepted false discovery rate.
    Raises ValueError.
    """

    time_floor: float = 0.05
    memory_floor: float = 0.01
    alpha: float = 0.05

    def __post_init__(self) -> None:
        for name in ("time_floor", "memory_floor"):
            if not (isfinite(value := getattr(self, name)) and value >= 0):
                raise ValueError(f"{name.replace('_', '-')}: expected a share, 0.05 for 5 %, got {value:g}")
        if not 0 < self.alpha < 1:
            raise ValueError(f"alpha: expected a probability between 0 and 1, got {self.alpha:g}")


def decide(difference: Difference, q: float | None, floor: float, alpha: float) -> tuple[str, str]:
    """(word, reason) of one cell: slower, faster, same or inconclusive; only inconclusive has a reason.

    A change is certain or has a q of at most `alpha`. It also lies beyond the floor, and has the same direction by the
    median and by the mean of logarithms, so that a single odd trial cannot make a change. The word is same if the whole
    interval lies within the floor. Otherwise the cell is inconclusive.
    """
    if difference.ratio is None or difference.low is None or difference.high is None:
        return "inconclusive", difference.lacking
    far = max(difference.ratio, 1 / difference.ratio)
    upwards = difference.ratio > 1
    agreed = difference.low * difference.high > 1 if upwards else difference.low * difference.high < 1
    significant = difference.certain or (q is not None and q <= alpha)
    if significant and agreed and far > 1 + floor:
        return ("slower" if upwards else "faster"), ""
    if max(far, difference.high, 1 / difference.low) <= 1 + floor:
        return "same", ""
    return "inconclusive", f"{_unknown(difference.low, difference.high, floor, agreed)}: {ADVICE}"


def _unknown(low: float, high: float, floor: float, agreed: bool) -> str:
    """Why tested trials give no word."""
    if low <= 1 + floor < high or low < 1 / (1 + floor) <= high:
        return f"the interval crosses {100 * floor:.3g} %"
    return "q is above alpha" if agreed else "the median and the mean of the trials disagree"
