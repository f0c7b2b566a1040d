"""Compare two recordings of the same work: a ratio and a word for each cell. Above 1 is slower, or more memory.

A cell is one time or memory peak of one phase, of one contender in one case (cells.py).
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from snnbench.analysis.cells import (
    CONTENDED,
    CONTENDED_ALLOWED,
    ComparedCell,
    by_interest,
    cells_of,
    disturbance,
    judged,
    with_intervals,
)
from snnbench.analysis.comparability import both_at_once, changed, matched
from snnbench.analysis.decision import WORDS, Thresholds
from snnbench.analysis.movement import Explained, Movement, movement
from snnbench.recording.reading import Recording

DRIFT = "drift"
"""The value of --allow that keeps words which the movement of the machine may explain."""
MOVED = "the machine moved"
DRIFT_ALLOWED = "drift: words may be the machine's movement"


@dataclass(frozen=True, slots=True)
class Comparison:
    """All cells of two recordings, changes first. `allowed` lists the facts that differ and that the user allowed.

    `movement` is the movement of the machine; None if both sides took turns. If the machine moved, `ab_command` is the
    command that gives an answer; otherwise it is empty.
    """

    base: str
    new: str
    thresholds: Thresholds
    allowed: list[str]
    changed: list[str]
    cells: list[ComparedCell] = field(default_factory=list)
    movement: Movement | None = None
    ab_command: str = ""

    @property
    def counts(self) -> dict[str, int]:
        """How many cells there are of each word."""
        words = [cell.word for cell in self.cells]
        return {word: words.count(word) for word in WORDS}


def compare(
    base: Recording,
    new: Recording,
    thresholds: Thresholds,
    phases: Collection[str] = (),
    allowed: Collection[str] = (),
    explained: bool = False,
) -> Comparison:
    """Every cell of either recording, of these phases or of all. Raises Incomparable.

    All p of the comparison are adjusted together. `explained` adds bootstrap intervals, which take time and decide
    nothing.
    """
    cases, facts = matched(base, new, allowed)
    cells = cells_of(base, new, cases, phases, allowed)
    facts += [CONTENDED_ALLOWED] if CONTENDED in allowed else []
    cells = judged(cells, thresholds)
    times = {
        (cell.case, cell.contender, cell.phase): cell.ratio
        for cell in cells
        if cell.metric == "time" and cell.ratio is not None and not disturbance(cell)
    }
    moved = movement(base, new, cases, times, thresholds.alpha)
    cells = [replace(cell, explained=_explained(cell, moved)) for cell in cells]
    if DRIFT in allowed:
        facts.append(DRIFT_ALLOWED)
    else:
        cells = [_allow_for_movement(cell, thresholds.time_floor) for cell in cells]
    if explained:
        cells = with_intervals(cells)
    ab_command = both_at_once(base, new) if any(MOVED in cell.reason for cell in cells) else ""
    return Comparison(base.name, new.name, thresholds, facts, changed(base, new), by_interest(cells), moved, ab_command)


def _explained(cell: ComparedCell, moved: Movement) -> Explained | None:
    return moved.explained.get((cell.case, cell.contender, cell.phase)) if cell.metric == "time" else None


def _allow_for_movement(cell: ComparedCell, floor: float) -> ComparedCell:
    """The cell; inconclusive if the movement of the machine may explain its word, or hide a change behind `same`."""
    explained, ratio = cell.explained, cell.ratio
    if explained is None or ratio is None or cell.word not in ("slower", "faster", "same"):
        return cell
    beyond = ratio > explained.high * (1 + floor) if cell.word == "slower" else ratio < explained.low / (1 + floor)
    still = max(explained.middle, 1 / explained.middle) <= 1 + floor
    if still if cell.word == "same" else beyond:
        return cell
    control = f", and this is {ratio / explained.control:.2f} of the control" if explained.control else ""
    moved = f"{MOVED}, which explains {explained.low:.2f} to {explained.high:.2f}{control}"
    reason = "; ".join(part for part in (moved, cell.reason) if part)
    return replace(cell, word="inconclusive", reason=reason)
