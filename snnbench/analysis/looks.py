"""Looks: the interim analyses of an A/B run, each after a number of trials and with its share of alpha.

A run that tests several times and stops at the first significant result is wrong more often than one that tests once.
So every look spends a share of alpha, and the shares sum to alpha. By Bonferroni's inequality all looks together give
no more false words than alpha allows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

FEWEST_TRIALS = 4
"""Fewest trials at a look: fewer do not show their own spread."""
EARLY_LOOKS = ((1 / 3, 0.2), (1 / 2, 0.2), (2 / 3, 0.2))
"""(share of the most trials, share of alpha) of each look before the last. The last look has the rest of alpha."""


@dataclass(frozen=True, slots=True)
class Look:
    """A look after `trials` trials a side, with the false discovery rate `alpha`."""

    trials: int
    alpha: float


def looks(most: int, alpha: float, stops_early: bool = True) -> Iterator[Look]:
    """The looks of a run of `most` trials a side. If it does not stop early, it has one look, at the end."""
    left, last = alpha, 0
    for part, share in EARLY_LOOKS if stops_early else ():
        trials = ceil(most * part)
        if FEWEST_TRIALS <= trials < most and trials != last:
            yield Look(trials, alpha * share)
            left, last = left - alpha * share, trials
    yield Look(most, left)
