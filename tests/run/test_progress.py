"""Tests of progress: what a worker announces is shown for its cell, and never mistaken for its reply."""

import io
import sys

import pytest
from rich.console import Console

from snnbench.plan.cell import Cell
from snnbench.run.progress import Display, Lines
from snnbench.run.progress import shown as shown_on_screen
from snnbench.worker.messages import Note
from tests.bench import SMALL, Bench, bench
from tests.fakes import altered

__all__ = ["bench"]

ANNOUNCING = altered(
    "import os, sys\n"
    'reply = int(sys.argv[sys.argv.index("--reply-fd") + 1])\n'
    "for done in (3, 9):\n"
    "    os.write(reply, b'note [\"samples cached\", %d, 9]\\n' % done)\n"
    "return right"
)
CELL = Cell(SMALL, "fake", "default", 0, "time")


@pytest.mark.parametrize("trials", [1, 2])
def test_notes_of_a_worker_reach_the_listener(bench: Bench, trials: int) -> None:
    """Alone, or in a relay of two workers."""
    bench.add("fake", ANNOUNCING)
    plan = [Cell(SMALL, "fake", "default", trial, "time") for trial in range(trials)]
    records = bench.run(plan)
    assert [record.status for record in records] == ["measured"] * trials
    for cell in plan:
        notes = [note for of_cell, note in bench.watcher.noted if of_cell == cell]
        assert notes and notes == [Note("samples cached", done, 9) for done in (3, 9)] * (len(notes) // 2)


def shown(display: Display) -> str:
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(display.live.get_renderable())
    return console.export_text()


def test_display_shows_a_note_until_its_work_is_done() -> None:
    display = Display([CELL])
    display.start(CELL)
    display.note(CELL, Note("samples \x1b[31mcached", 3, 9))
    assert shown(display).splitlines()[-1].rstrip() == "     3 of 9 samples �[31mcached", "a name may fill the line"
    display.note(CELL, Note("samples cached", 9, 9))
    assert "cached" not in shown(display) and "now: fake" in shown(display)


def test_lines_show_no_notes(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines([CELL])
    lines.start(CELL)
    lines.note(CELL, Note("samples cached", 3, 9))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("terminal", ["dumb", "unknown"])
def test_terminal_that_cannot_draw_gets_a_line_for_each_cell(monkeypatch: pytest.MonkeyPatch, terminal: str) -> None:
    monkeypatch.setenv("TERM", terminal)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with shown_on_screen([CELL]) as progress:
        assert isinstance(progress, Lines)


def test_bar_is_drawn_with_what_the_terminal_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(io.BytesIO(), "ascii"))
    display = Display([CELL])
    display.start(CELL)
    assert shown(display).isascii()
