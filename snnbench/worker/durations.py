"""Durations: from the raw times of repetitions to one number a trial, and from trials to a summary."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any


@dataclass(frozen=True, slots=True)
class Summary:
    """Median and quartiles of trials, in the unit of the trials; `trials` has one value each, in order."""

    median: float
    low: float
    high: float
    trials: tuple[float, ...]

    @property
    def count(self) -> int:
        """The number of trials."""
        return len(self.trials)


def summarise(trials: Sequence[float]) -> Summary:
    """Summary of one value a trial. Raises ValueError without any."""
    if not trials:
        raise ValueError("no trials to summarise")
    if len(trials) == 1:
        return Summary(trials[0], trials[0], trials[0], tuple(trials))
    low, _, high = quantiles(trials, n=4, method="inclusive")
    return Summary(median(trials), low, high, tuple(trials))


def pass_ns(timing: Mapping[str, Any]) -> list[float]:
    """Duration of one pass [ns] in each repetition of a phase or peak, as a record holds it."""
    return [repetition_ns / timing["passes"] for repetition_ns in timing["repetitions_ns"]]


def median_ns(timing: Mapping[str, Any], name: str = "repetitions_ns") -> float:
    """Median of one pass over the repetitions of a phase, as a record holds it; `name` may be another raw number."""
    return trial_median(timing[name], timing["passes"])


def trial_median(repetitions: Sequence[float], passes: int) -> float:
    """Median duration of one pass, from repetitions of `passes` passes each."""
    return median(repetitions) / passes
