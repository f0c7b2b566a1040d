"""Tests of the choice of a run's folder: a run finds its own unfinished recording again, or starts a new one."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from snnbench.recording.reading import CONFIG
from snnbench.recording.writer import append, choose
from tests.recording.test_record import ABOUT, FACTS

TODAY = date(2026, 11, 21)


def begun(root: Path, name: str, finished: bool = False, **about: Any) -> Path:
    """A recording under `root`."""
    with append(root / name, ABOUT | about, FACTS) as writer:
        if finished:
            writer.finish()
    return root / name


def chosen(root: Path, identity: str = "this", machine: str = "laptop") -> str:
    """The folder for a run."""
    return choose(root, "quick", identity, machine, TODAY).relative_to(root).name


def test_run_continues_its_own_unfinished_recording(tmp_path: Path) -> None:
    begun(tmp_path, "2026-11-20_quick_laptop")
    assert chosen(tmp_path) == "2026-11-20_quick_laptop"


@pytest.mark.parametrize("about", [{"identity": "other"}, {"machine": "server"}, {"finished": True}], ids=str)
def test_other_or_finished_recording_is_not_continued(tmp_path: Path, about: dict[str, Any]) -> None:
    begun(tmp_path, "2026-11-20_quick_laptop", **about)
    assert chosen(tmp_path) == "2026-11-21_quick_laptop"


def test_later_unfinished_recording_is_continued(tmp_path: Path) -> None:
    for day in ("19", "20", "18"):
        begun(tmp_path, f"2026-11-{day}_quick_laptop")
    assert chosen(tmp_path) == "2026-11-20_quick_laptop"


def test_second_recording_of_a_day_has_a_number(tmp_path: Path) -> None:
    names = []
    for _ in range(3):
        names.append(chosen(tmp_path))
        begun(tmp_path, names[-1], finished=True)
    assert names == [f"2026-11-21_quick_laptop{end}" for end in ("", "_2", "_3")]


def test_tenth_of_a_day_is_later_than_the_ninth(tmp_path: Path) -> None:
    for end in ("", "_2", "_10", "_9"):
        begun(tmp_path, f"2026-11-20_quick_laptop{end}")
    assert chosen(tmp_path) == "2026-11-20_quick_laptop_10"
    begun(tmp_path, "2026-11-21_quick_laptop")
    assert chosen(tmp_path) == "2026-11-21_quick_laptop"


def test_bare_number_is_a_name(tmp_path: Path) -> None:
    for end in ("_9", "_10"):
        begun(tmp_path, end)
    assert chosen(tmp_path) == "_9", "these are two names, of which _9 is the later"


def test_other_files_under_results_are_ignored(tmp_path: Path) -> None:
    for name, text in (("published", "[1, 2]"), ("broken", '{"ident'), ("empty", "{}")):
        (tmp_path / name).mkdir()
        (tmp_path / name / CONFIG).write_text(text)
    assert chosen(tmp_path) == "2026-11-21_quick_laptop"
