"""Progress on standard error: a display on a terminal, a line a cell elsewhere; both say how long is left."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from snnbench.plan.cell import Cell
from snnbench.printable import cleaned
from snnbench.recording.record import Record
from snnbench.run.estimate import Effort, Estimate, alike, format_duration
from snnbench.run.executor import Progress
from snnbench.worker.messages import Note

BAR_WIDTH = 60
"""The widest bar, in columns of the terminal."""


def say(text: str) -> None:
    """Print a line for the user to standard error."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def bar(doing: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error if it is a terminal, which takes the done and the whole number."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn(doing), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task(doing, visible=False)  # until there is something to do
        yield lambda done, count: progress.update(task, completed=done, total=count, visible=True)


class Pace:
    """Measures how long cells take, and estimates the time left."""

    def __init__(self, cells: Sequence[Cell], effort: Effort = alike) -> None:
        self.total, self.count = len(cells), 0
        self._estimate = Estimate(cells, effort)
        self._started: dict[Cell, float] = {}
        self._last = time.monotonic()
        self._beside = 1

    def start(self, cell: Cell) -> None:
        """A cell starts; cells on other cards may still run."""
        self._started[cell] = self._last = time.monotonic()
        self._beside = len(self._started)

    def end(self, cell: Cell, ran: bool = True) -> None:
        """A cell has ended. If it `ran` elsewhere, the time of the last event stands for its unknown start."""
        self.count += 1
        now = time.monotonic()
        began = self._started.pop(cell, self._last if ran else now)
        self._estimate.learn(cell, now - began)
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

    def __init__(self, cells: Sequence[Cell], effort: Effort = alike) -> None:
        self.pace = Pace(cells, effort)

    def start(self, cell: Cell) -> None:
        """Note the start; prints nothing."""
        self.pace.start(cell)

    def note(self, cell: Cell, note: Note) -> None:
        """Print nothing."""

    def end(self, cell: Cell, record: Record) -> None:
        """Print how the cell ended."""
        self.pace.end(cell, record.status == "measured")
        left = f" ({self.pace.left})" if self.pace.left else ""
        say(f"[{self.pace.count}/{self.pace.total}] {describe(cell)}: {ending(record)}{left}")

    def add(self, cells: Sequence[Cell]) -> None:
        """Add them to the estimate."""
        self.pace.add(cells)


class Display:
    """A bar, the counts and the times, and the running cells, on lines of a terminal that are drawn anew.

    Failures stay on the screen above them.
    """

    def __init__(self, cells: Sequence[Cell], effort: Effort = alike) -> None:
        from rich.console import Console
        from rich.live import Live

        self.pace = Pace(cells, effort)
        self.failed = 0
        self.running: dict[Cell, str] = {}
        self.started = time.monotonic()
        # Redrawing costs CPU time that belongs to the worker being timed, so only a cell's start and end redraw, and
        # work that is not timed.
        self.live = Live(console=Console(stderr=True, highlight=False), transient=True, auto_refresh=False)

    def start(self, cell: Cell) -> None:
        """Show the cell."""
        self.pace.start(cell)
        self.running[cell] = ""
        self._draw()

    def note(self, cell: Cell, note: Note) -> None:
        """Show what the cell's worker does."""
        self.running[cell] = f"{note.done} of {note.count} {cleaned(note.doing)}" if note.done < note.count else ""
        self._draw()

    def end(self, cell: Cell, record: Record) -> None:
        """Advance the bar; print a failure."""
        self.pace.end(cell, record.status == "measured")
        self.running.pop(cell, None)
        if record.status == "failed":
            self.failed += 1
            self.live.console.print(f"{describe(cell)}: {ending(record)}", markup=False)
        self._draw()

    def add(self, cells: Sequence[Cell]) -> None:
        """Make the bar longer."""
        self.pace.add(cells)
        self._draw()

    @property
    def counts(self) -> str:
        """The numbers of cells by state, the time since the start, and the estimate of the time left."""
        waiting = self.pace.total - self.pace.count - len(self.running)
        parts = [f"{self.pace.count} of {self.pace.total} done", f"{len(self.running)} running", f"{waiting} waiting"]
        parts += [f"{self.failed} failed"] if self.failed else []
        parts += [format_duration(time.monotonic() - self.started)]
        return ", ".join([*parts, self.pace.left] if self.pace.left else parts)

    def _draw(self) -> None:
        from rich.text import Text

        width = min(self.live.console.width, BAR_WIDTH)
        done = width * self.pace.count // max(self.pace.total, 1)
        symbols = "━─" if self.live.console.encoding.lower().startswith("utf") else "#-"
        bar = Text.assemble((symbols[0] * done, "green"), (symbols[1] * (width - done), "dim"))
        lines = [self.counts]
        for cell, doing in self.running.items():
            lines += [f"now: {describe(cell)}", *([f"     {doing}"] if doing else [])]
        shown = Text("\n").join([bar, *map(Text, lines)])
        shown.no_wrap, shown.overflow = True, "ellipsis"
        self.live.update(shown, refresh=True)


@contextmanager
def shown(cells: Sequence[Cell], effort: Effort = alike) -> Iterator[Progress]:
    """Show progress over these cells; at the end, print how long they took."""
    started = time.monotonic()
    progress: Display | Lines
    if sys.stderr.isatty() and os.environ.get("TERM") not in ("dumb", "unknown"):  # rich draws nothing on these
        progress = Display(cells, effort)
        with progress.live:
            yield progress
    else:
        progress = Lines(cells, effort)
        yield progress
    say(f"{progress.pace.count} cells in {format_duration(time.monotonic() - started)}")


def describe(cell: Cell) -> str:
    """A cell in a few words."""
    case = cell.case
    size = case.sizes().replace(",", "")
    side = f" {cell.side}" if cell.side else ""
    return f"{cell.label} {case.kind} {size} {case.device} {case.dtype}, {cell.measure} {cell.trial}{side}"


def ending(record: Record) -> str:
    """How a cell ended, on one line."""
    if record.status == "measured":
        ready = not record.wall_s or record.wall_s < 0.05  # it ran before its turn to be waited for
        lived = [] if ready else [f"{record.wall_s:.1f} s"]
        circumstances = ["measured again"] * (record.attempt > 0) + ["disturbed by others"] * (
            "contended" in record.flags
        )
        return ", ".join([str(record.outcome.verdict), *lived, *circumstances])
    return str(record.outcome)
