"""Progress on standard error: a bar on a terminal, a line a cell elsewhere; both say how long is left."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from snnbench.plan.cell import Cell
from snnbench.recording.record import Record
from snnbench.run.estimate import Estimate, format_duration
from snnbench.run.executor import Progress


def say(text: str) -> None:
    """Print a line for the user to standard error."""
    print(text, file=sys.stderr, flush=True)


class Pace:
    """Measures how long cells take, and estimates the time left."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self.total, self.count = len(cells), 0
        self._estimate = Estimate(cells)
        self._started: dict[Cell, float] = {}
        self._last = time.monotonic()
        self._beside = 1

    def start(self, cell: Cell) -> None:
        """A cell starts; cells on other cards may still run."""
        self._started[cell] = self._last = time.monotonic()
        self._beside = len(self._started)

    def end(self, cell: Cell) -> None:
        """A cell has ended. If it ran elsewhere, the time of the last event stands for its unknown start."""
        self.count += 1
        now = time.monotonic()
        self._estimate.learn(cell, now - self._started.pop(cell, self._last))
        self._last = now

    def add(self, cells: Sequence[Cell]) -> None:
        """Add cells to be run."""
        self.total += len(cells)
        self._estimate.add(cells)

    @property
    def left(self) -> str:
        """The time left as text; "" as long as it is unknown, and after the last cell."""
        seconds = self._estimate.seconds_left()
        known = seconds is not None and self.count < self.total
        return f"about {format_duration((seconds or 0) / self._beside)} left" if known else ""


class Lines:
    """A line for each cell that ended."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self.pace = Pace(cells)

    def start(self, cell: Cell) -> None:
        """Note the start; prints nothing."""
        self.pace.start(cell)

    def end(self, cell: Cell, record: Record) -> None:
        """Print how the cell ended."""
        self.pace.end(cell)
        left = f" ({self.pace.left})" if self.pace.left else ""
        say(f"[{self.pace.count}/{self.pace.total}] {describe(cell)}: {ending(record)}{left}")

    def add(self, cells: Sequence[Cell]) -> None:
        """Add them to the estimate."""
        self.pace.add(cells)


class Bar:
    """A bar with the running cell, the count and the time left; failures stay on the screen."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self.pace = Pace(cells)
        self.display = Progress(
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.description}", markup=False),
            console=Console(stderr=True),
            transient=True,
            # Redrawing costs CPU time that belongs to the worker being timed.
            auto_refresh=False,
        )
        self.task = self.display.add_task("", total=len(cells), left="")

    def start(self, cell: Cell) -> None:
        """Show the cell."""
        self.display.update(self.task, description=describe(cell), left=self.pace.left, refresh=True)
        self.pace.start(cell)

    def end(self, cell: Cell, record: Record) -> None:
        """Advance the bar; print a failure."""
        self.pace.end(cell)
        if record.status == "failed":
            self.display.console.print(f"{describe(cell)}: {ending(record)}", markup=False, highlight=False)
        self.display.advance(self.task)

    def add(self, cells: Sequence[Cell]) -> None:
        """Make the bar longer."""
        self.pace.add(cells)
        self.display.update(self.task, total=self.pace.total)


@contextmanager
def shown(cells: Sequence[Cell]) -> Iterator[Progress]:
    """Show progress over these cells; at the end, print how long they took."""
    started = time.monotonic()
    progress: Bar | Lines
    if sys.stderr.isatty():
        progress = Bar(cells)
        with progress.display:
            yield progress
    else:
        progress = Lines(cells)
        yield progress
    say(f"{progress.pace.count} cells in {format_duration(time.monotonic() - started)}")


def describe(cell: Cell) -> str:
    """A cell in a few words."""
    case = cell.case
    size = f"N={case.neurons} B={case.batch} T={case.time_steps}" + (f" L={case.layers}" if case.layers > 1 else "")
    side = f" {cell.side}" if cell.side else ""
    return f"{cell.label} {case.profile} {size} {case.device} {case.dtype}, {cell.measure} {cell.trial}{side}"


def ending(record: Record) -> str:
    """How a cell ended, on one line."""
    if record.status == "measured":
        circumstances = ["measured again"] * (record.attempt > 0) + ["disturbed by others"] * (
            "contended" in record.flags
        )
        return ", ".join([str(record.outcome.verdict), f"{record.wall_s:.1f} s", *circumstances])
    return str(record.outcome)
