"""Tests of slots: one cell at a time on the CPUs, and one on each card, over all processes."""

import getpass
import multiprocessing
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from snnbench.recording.reading import CONFIG, RECORDS
from snnbench.run import slots
from snnbench.run.process import Stopped
from tests.shipped import QUICK, copied, edited

CONTEXT = multiprocessing.get_context("fork")  # a new interpreter would import this module for a second


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(slots.VARIABLE, str(tmp_path / "slots"))


def hold(card: str | None, held: Any, go: Any) -> None:
    with slots.held(card, print):
        held.set()
        go.wait(20)


@contextmanager
def another(card: str | None) -> Iterator[Any]:
    """Let another process hold a slot until the event is set."""
    held, go = CONTEXT.Event(), CONTEXT.Event()
    process = CONTEXT.Process(target=hold, args=(card, held, go))
    process.start()
    try:
        assert held.wait(20)
        yield go
    finally:
        go.set()
        process.join(20)


def wait_for(card: str | None) -> str:
    """The message while waiting for a slot, before giving up; empty if the slot is free."""
    messages: list[str] = []
    stop = os.eventfd(0)
    try:
        os.eventfd_write(stop, 1)
        with slots.held(card, messages.append, stop):
            return ""
    except Stopped:
        return messages[0]
    finally:
        os.close(stop)


@pytest.mark.parametrize(
    ("theirs", "mine", "free"),
    [(None, None, False), (None, "a", False), ("a", None, False), ("a", "a", False), ("a", "b", True)],
)
def test_slot_conflicts(theirs: str | None, mine: str | None, free: bool) -> None:
    with another(theirs):
        message = wait_for(mine)
        assert (message == "") is free
        assert free or message.startswith(
            f"waiting for the {'card' if mine and theirs else 'CPUs'}, on which another run"
        )
    assert wait_for(mine) == "", "free again"


def test_waiting_process_continues_when_the_slot_is_free() -> None:
    messages: list[str] = []
    with another(None) as go:

        def waiting(text: str) -> None:
            messages.append(text)
            go.set()

        with slots.held(None, waiting):
            assert len(messages) == 1


def test_wait_names_whose_run_it_is_and_how_to_run_beside_it(tmp_path: Path) -> None:
    folder = copied(tmp_path, QUICK)
    edited(folder, CONFIG, lambda config: config.update(finished=False, planned=1000))
    held, go = CONTEXT.Event(), CONTEXT.Event()

    def hold_and_write() -> None:
        with (folder / RECORDS).open("ab"):
            hold(None, held, go)

    process = CONTEXT.Process(target=hold_and_write)
    process.start()
    assert held.wait(20)
    message = wait_for(None)
    go.set()
    process.join(20)
    assert f"(process {process.pid}, of {getpass.getuser()}, since {time.strftime('%Y-')}" in message
    assert f"into {folder}, about " in message and " left); " in message and f"{slots.VARIABLE}=FOLDER" in message


def test_long_wait_is_not_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "SAY_EVERY_S", 0.3)
    messages: list[str] = []
    with another(None) as go:

        def waiting(text: str) -> None:
            messages.append(text)
            if len(messages) == 2:
                go.set()

        with slots.held(None, waiting):
            assert re.match(r"waiting for the CPUs, for \d s now, on which another run measures \(process", messages[1])


def test_slot_is_free_when_its_holder_is_killed() -> None:
    held, go = CONTEXT.Event(), CONTEXT.Event()
    process = CONTEXT.Process(target=hold, args=(None, held, go))
    process.start()
    assert held.wait(20)
    process.kill()
    process.join()
    assert wait_for(None) == ""


def test_link_instead_of_a_slot_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "slots").mkdir()
    (tmp_path / "slots" / "cpu").symlink_to(tmp_path / "precious")
    with pytest.raises(slots.SlotError, match=r"cannot be locked .*SNNBENCH_SLOTS"), slots.held(None, print):
        pass
    assert not (tmp_path / "precious").exists()


def cells_of(card: str | None, count: int, order: Any, started: Any) -> None:
    for _ in range(count):
        with slots.held(card, lambda text: None):
            started.set()
            order.put(card)
            time.sleep(0.02)


@pytest.mark.parametrize("others", [["a", "b"], [None]])
def test_cells_take_turns_without_starvation(others: list[str | None]) -> None:
    """A process that wants the CPUs gets them, though others run cell after cell without a pause."""
    order, started = CONTEXT.Queue(), CONTEXT.Event()
    busy = [CONTEXT.Process(target=cells_of, args=(card, 200, order, started)) for card in others]
    for process in busy:
        process.start()
    assert started.wait(20)
    for _ in range(3):
        with slots.held(None, lambda text: None):
            assert any(process.is_alive() for process in busy), "it was kept out until the others had ended"
    for process in busy:
        process.kill()
        process.join()
