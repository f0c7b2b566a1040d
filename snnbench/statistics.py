"""Statistics over trials. The trial is the replicate: repetitions within one process are not independent."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles


@dataclass(frozen=True, slots=True)
class Summary:
    """Median and quartiles of `count` trials, in the unit of what was summarised."""

    median: float
    low: float
    high: float
    count: int


def summarise(trials: Sequence[float]) -> Summary:
    """Summary of one value a trial. Raises ValueError without any."""
    if not trials:
        raise ValueError("no trials to summarise")
    if len(trials) == 1:
        return Summary(trials[0], trials[0], trials[0], 1)
    low, _, high = quantiles(trials, n=4, method="inclusive")
    return Summary(median(trials), low, high, len(trials))


def trial_median(repetitions: Sequence[float], passes: int) -> float:
    """Median duration of one pass, from repetitions that are `passes` passes each."""
    return median(repetitions) / passes
