"""Looks: after how many trials an A/B run asks whether its answer is clear, and how much error each asking may cost.

A run that asks several times and stops at the first yes is wrong more often than one that asks once. So every look
spends a share of alpha, and all shares together are alpha: by Bonferroni's inequality all looks together give no more
false words than alpha allows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

FEWEST = 4
"""Trials of the first look: fewer know nothing of their own spread."""
EARLY = ((1 / 3, 0.2), (1 / 2, 0.2), (2 / 3, 0.2))
"""(share of the most trials, share of alpha) of each look but the last, which has what is left."""


@dataclass(frozen=True, slots=True)
class Look:
    """After `trials` trials a side, words may be wrong with the rate `alpha`."""

    trials: int
    alpha: float


def looks(most: int, alpha: float, stops_early: bool = True) -> Iterator[Look]:
    """The looks of a run of `most` trials a side; one, at the end, where it does not stop early."""
    left, last = alpha, 0
    for part, share in EARLY if stops_early else ():
        trials = ceil(most * part)
        if FEWEST <= trials < most and trials != last:
            yield Look(trials, alpha * share)
            left, last = left - alpha * share, trials
    yield Look(most, left)
