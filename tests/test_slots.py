"""Slots: one cell at a time on the CPUs, and one on each card, in whichever process."""

import multiprocessing
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from snnbench import slots
from snnbench.process import Stopped

CONTEXT = multiprocessing.get_context("spawn")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots.tempfile, "gettempdir", lambda: str(tmp_path))


def hold(folder: str, card: str | None, held: Any, go: Any) -> None:
    slots.tempfile.tempdir = folder
    with slots.held(card, print):
        held.set()
        go.wait(20)


@contextmanager
def another(folder: Path, card: str | None) -> Iterator[Any]:
    """Another process holds a slot until the event is set."""
    held, go = CONTEXT.Event(), CONTEXT.Event()
    process = CONTEXT.Process(target=hold, args=(str(folder), card, held, go))
    process.start()
    try:
        assert held.wait(20)
        yield go
    finally:
        go.set()
        process.join(20)


def wait_for(card: str | None) -> str:
    """What is said while a slot is waited for, before giving up; nothing if it was free."""
    said: list[str] = []
    stop = os.eventfd(0)
    try:
        os.eventfd_write(stop, 1)
        with slots.held(card, said.append, stop):
            return ""
    except Stopped:
        return said[0]
    finally:
        os.close(stop)


@pytest.mark.parametrize(
    ("theirs", "mine", "free"),
    [(None, None, False), (None, "a", False), ("a", None, False), ("a", "a", False), ("a", "b", True)],
)
def test_who_may_measure_beside_whom(tmp_path: Path, theirs: str | None, mine: str | None, free: bool) -> None:
    with another(tmp_path, theirs):
        said = wait_for(mine)
        assert (said == "") is free
        assert free or said.startswith(f"waiting for the {'card' if mine and theirs else 'CPUs'}, on which process ")
    assert wait_for(mine) == "", "free again"


def test_whoever_waits_goes_on_when_it_is_free(tmp_path: Path) -> None:
    said: list[str] = []
    with another(tmp_path, None) as go:

        def waiting(text: str) -> None:
            said.append(text)
            go.set()

        with slots.held(None, waiting):
            assert len(said) == 1


def test_a_slot_is_free_when_its_holder_is_killed(tmp_path: Path) -> None:
    held, go = CONTEXT.Event(), CONTEXT.Event()
    process = CONTEXT.Process(target=hold, args=(str(tmp_path), None, held, go))
    process.start()
    assert held.wait(20)
    process.kill()
    process.join()
    assert wait_for(None) == ""


def test_a_link_in_the_place_of_a_slot_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / slots.FOLDER).mkdir()
    (tmp_path / slots.FOLDER / "cpu").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError), slots.held(None, print):
        pass
    assert not (tmp_path / "precious").exists()
