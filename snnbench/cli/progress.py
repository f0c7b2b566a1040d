"""Progress on standard error: a bar on a terminal, a line a cell elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from snnbench.cell import Cell
from snnbench.record import Record
from snnbench.runner import Progress


def say(text: str) -> None:
    """A line for the user."""
    print(text, file=sys.stderr, flush=True)


class Lines:
    """A line for each cell that ended."""

    def __init__(self, total: int) -> None:
        self.total, self.count = total, 0

    def start(self, cell: Cell) -> None:
        """Nothing yet."""

    def end(self, cell: Cell, record: Record) -> None:
        """Say how it ended."""
        self.count += 1
        say(f"[{self.count}/{self.total}] {describe(cell)}: {ending(record)}")


class Bar:
    """A bar with what runs now, how many cells are left and an estimate; failures stay on the screen."""

    def __init__(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self.display = Progress(
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.description}", markup=False),
            console=Console(stderr=True),
            transient=True,
            # Redrawing costs CPU time that belongs to the worker being timed.
            auto_refresh=False,
            # Cells differ a thousandfold in length: an estimate over many of them is the steadier one.
            speed_estimate_period=3600,
        )
        self.task = self.display.add_task("", total=total)

    def start(self, cell: Cell) -> None:
        """Show it."""
        self.display.update(self.task, description=describe(cell), refresh=True)

    def end(self, cell: Cell, record: Record) -> None:
        """Advance."""
        if record.status == "failed":
            self.display.console.print(f"{describe(cell)}: {ending(record)}", markup=False, highlight=False)
        self.display.advance(self.task)


@contextmanager
def shown(total: int) -> Iterator[Progress]:
    """Progress over `total` cells, and how long they took."""
    started = time.monotonic()
    if sys.stderr.isatty():
        bar = Bar(total)
        with bar.display:
            yield bar
    else:
        yield Lines(total)
    say(f"{total} cells in {time.monotonic() - started:.0f} s")


def describe(cell: Cell) -> str:
    """A cell in a few words."""
    case = cell.case
    size = f"N={case.neurons} B={case.batch} T={case.time_steps}" + (f" L={case.layers}" if case.layers > 1 else "")
    return f"{cell.label} {case.profile} {size} {case.device} {case.dtype}, {cell.measure} {cell.trial}"


def ending(record: Record) -> str:
    """How a cell ended, on one line."""
    if record.status == "measured":
        return f"{record.outcome['verdict']}, {record.wall_s:.1f} s"
    return f"{record.status}: {record.outcome['kind']}: {record.outcome['reason']}"
