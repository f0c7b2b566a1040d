"""Known outcomes: cells that need no run, because an earlier cell of the same run implies their outcome."""

from dataclasses import replace

from snnbench.cases.case import Case
from snnbench.cases.outcome import Outcome
from snnbench.plan.cell import Cell
from snnbench.worker.messages import EXCHANGES

FAR_BEHIND = 5.0
"""A contender of a race that takes so many times as long as the fastest so far needs no further passes."""


class KnownOutcomes:
    """Predicts outcomes of cells from earlier ones, and which passes of a race are too slow to matter.

    If a library cannot express a case, all its trials are skipped. If a case ran out of memory, an equal case
    with larger sizes fails too, recorded as inferred.
    """

    def __init__(self) -> None:
        self._skipped: dict[Cell, Outcome] = {}
        self._too_large: list[tuple[Cell, Outcome]] = []
        self._broken: set[Cell] = set()
        self._fastest_ns: dict[Case, float] = {}

    def learn(self, cell: Cell, outcome: Outcome) -> None:
        """Remember how a cell ended."""
        if outcome.status == "skipped":
            self._skipped[_work(cell)] = outcome
        elif outcome.kind in ("oom-device", "oom-host"):
            self._too_large.append((cell, outcome))
        elif outcome.kind in ("import", "crash"):
            self._broken.add(replace(_work(cell), side=""))

    def learn_time(self, case: Case, ns: float) -> None:
        """Remember the time of a contender's pass."""
        self._fastest_ns[case] = min(ns, self._fastest_ns.get(case, ns))

    def enough_ns(self, cell: Cell) -> int:
        """The time from which a pass of a race's cell is too slow to matter; 0 if none is."""
        return round(FAR_BEHIND * self._fastest_ns.get(cell.case, 0)) if cell.phases else 0

    def is_broken(self, cell: Cell) -> bool:
        """Whether the cell's contender crashed in its case, on either side: further trials would end alike."""
        return replace(_work(cell), side="") in self._broken

    def predict(self, cell: Cell) -> Outcome | None:
        """The outcome of a cell that need not be run, or None."""
        if known := self._skipped.get(_work(cell)):
            return known
        for small, outcome in self._too_large:
            if (
                replace(small, case=cell.case, trial=cell.trial) == cell
                and small.case != cell.case
                and _no_smaller(cell, small)
            ):
                size = ", ".join(f"{name}={getattr(small.case, name)}" for name in small.case.SIZES)
                return replace(outcome, reason=f"inferred: it already ran out at {size}", inferred_from=size)
        return None


def _work(cell: Cell) -> Cell:
    """A key that all trials and measurements of a contender share, in one case and on one side."""
    return replace(cell, trial=0, measure=cell.measure if cell.measure in EXCHANGES else "time")


def _no_smaller(cell: Cell, than: Cell) -> bool:
    if cell.case.SIZES != than.case.SIZES:
        return False
    sizes = {name: getattr(than.case, name) for name in than.case.SIZES}
    if cell.case.with_(**sizes) != than.case:
        return False
    given = {name: getattr(cell.case, name) for name in sizes}
    return all(given[name] >= size if isinstance(size, int) else given[name] == size for name, size in sizes.items())
