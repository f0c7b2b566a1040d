"""Compare two recordings of the same work, by ratios and words. A ratio above 1 is slower, or more memory.

A comparison is of one time or memory peak of one phase, of one contender in one case (comparisons.py).
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from snnbench.analysis.comparability import both_at_once, changed, matched
from snnbench.analysis.comparisons import (
    CONTENDED,
    CONTENDED_ALLOWED,
    Comparison,
    by_interest,
    comparisons_of,
    disturbance,
    judged,
    with_intervals,
)
from snnbench.analysis.decision import WORDS, Thresholds
from snnbench.analysis.movement import Explained, Movement, movement
from snnbench.recording.reading import Recording

DRIFT = "drift"
"""The value of --allow that keeps words which the movement of the machine may explain."""
MOVED = "the machine moved"
DRIFT_ALLOWED = "drift: words may be the machine's movement"


@dataclass(frozen=True, slots=True)
class Comparisons:
    """All comparisons of two recordings, changes first. `allowed` lists differing facts that the user allowed.

    `movement` is the movement of the machine; None if both sides took turns. If the machine moved, `ab_command` is the
    command that gives an answer; otherwise it is empty.
    """

    base: str
    new: str
    thresholds: Thresholds
    allowed: list[str]
    changed: list[str]
    each: list[Comparison] = field(default_factory=list)
    movement: Movement | None = None
    ab_command: str = ""

    @property
    def counts(self) -> dict[str, int]:
        """How many comparisons there are of each word."""
        words = [comparison.word for comparison in self.each]
        return {word: words.count(word) for word in WORDS}


def compare(
    base: Recording,
    new: Recording,
    thresholds: Thresholds,
    phases: Collection[str] = (),
    allowed: Collection[str] = (),
    explained: bool = False,
) -> Comparisons:
    """Every comparison of either recording, of these phases or of all. Raises Incomparable.

    All p of the comparison are adjusted together. `explained` adds bootstrap intervals, which take time and decide
    nothing.
    """
    cases, facts = matched(base, new, allowed)
    comparisons = comparisons_of(base, new, cases, phases, allowed)
    facts += [CONTENDED_ALLOWED] if CONTENDED in allowed else []
    comparisons = judged(comparisons, thresholds)
    times = {
        (comparison.case, comparison.contender, comparison.phase): comparison.ratio
        for comparison in comparisons
        if comparison.metric == "time" and comparison.ratio is not None and not disturbance(comparison)
    }
    moved = movement(base, new, cases, times, thresholds.alpha)
    comparisons = [replace(comparison, explained=_explained(comparison, moved)) for comparison in comparisons]
    if DRIFT in allowed:
        facts.append(DRIFT_ALLOWED)
    else:
        comparisons = [_allow_for_movement(comparison, thresholds.time_floor) for comparison in comparisons]
    if explained:
        comparisons = with_intervals(comparisons)
    ab_command = both_at_once(base, new) if any(MOVED in comparison.reason for comparison in comparisons) else ""
    return Comparisons(
        base.name, new.name, thresholds, facts, changed(base, new), by_interest(comparisons), moved, ab_command
    )


def _explained(comparison: Comparison, moved: Movement) -> Explained | None:
    return (
        moved.explained.get((comparison.case, comparison.contender, comparison.phase))
        if comparison.metric == "time"
        else None
    )


def _allow_for_movement(comparison: Comparison, floor: float) -> Comparison:
    """The comparison; inconclusive if the machine's movement may explain its word, or hide a change behind `same`."""
    explained, ratio = comparison.explained, comparison.ratio
    if explained is None or ratio is None or comparison.word not in ("slower", "faster", "same"):
        return comparison
    beyond = (
        ratio > explained.high * (1 + floor) if comparison.word == "slower" else ratio < explained.low / (1 + floor)
    )
    still = max(explained.middle, 1 / explained.middle) <= 1 + floor
    if still if comparison.word == "same" else beyond:
        return comparison
    control = f", and this is {ratio / explained.control:.2f} of the control" if explained.control else ""
    moved = f"{MOVED}, which explains {explained.low:.2f} to {explained.high:.2f}{control}"
    reason = "; ".join(part for part in (moved, comparison.reason) if part)
    return replace(comparison, word="inconclusive", reason=reason)
