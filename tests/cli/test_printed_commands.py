"""Test that the commands which snnbench prints for its user run as they stand, also with a space in a name."""

import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from snnbench.adapter.reading import read as read_adapter
from snnbench.analysis.comparability import both_at_once
from snnbench.checking import files
from snnbench.datasets import heidelberg
from snnbench.environments import store
from snnbench.recording.reading import Recording
from snnbench.report.overview import find
from snnbench.report.page import sections
from tests.documents import parse
from tests.fakes import CORRECT
from tests.recordings import failed, recording, timed
from tests.sweep import snnbench

ODD = "my runs"


def environment_made(folder: Path) -> str:
    (folder / "mine.py").write_text(CORRECT)
    return store.plan(read_adapter(folder / "mine.py"), "default", cuda=False).about["command"]


def listed(folder: Path) -> str:
    (folder / "mine.py").write_text(CORRECT)
    done = snnbench(folder, "list", "mine", "--adapter", str(folder / "mine.py"))
    return str(re.findall("`(snnbench .*)`", done.stdout)[0])


def both_sides(folder: Path) -> str:
    old, new = (
        replace(made := recording(timed("a", train=3.0, version=version, environment="e")), config=config(made))
        for version in ("1.0", "1.0'; rm -rf x")
    )
    return both_at_once(old, new)


def config(made: Recording) -> dict[str, Any]:
    return {**made.config, "config": {**made.config["config"], "name": ODD}}


def failures_shown(folder: Path, side: str = "") -> str:
    made = recording(failed("a", "crash", "died", side=side), name=ODD)
    sides: dict[str, Any] = {"sides": {"base": [], "new": []}} if side else {}
    section = sections.failures(find(replace(made, folder=folder / ODD, config={**made.config, **sides})))
    return str(section.tables[0].rows[0][-1])


def closing(folder: Path) -> str:
    made = replace(recording(timed("a", train=3.0)), folder=folder / ODD)
    (text,) = (text for _, text in files.complaints(made, []) if "`" in text)
    return str(re.findall("`(.*)`", text)[0])


def data_made(folder: Path) -> str:
    with pytest.raises(heidelberg.DatasetError) as caught, heidelberg.opened(folder / ODD):
        pass
    return str(re.findall("`(.*)`", str(caught.value))[0])


PRINTED: dict[str, Any] = {
    "env": environment_made,
    "list": listed,
    "compare": both_sides,
    "page": failures_shown,
    "page of an A/B test": lambda folder: failures_shown(folder, "base"),
    "check": closing,
    "data": data_made,
}


@pytest.mark.parametrize("printed", PRINTED.values(), ids=PRINTED)
def test_printed_command_runs(printed: Any, tmp_path: Path) -> None:
    """It has its parts, is quoted, and names an adapter of the user's by its file. Nobody replays one side alone."""
    folder = tmp_path / "a folder"
    folder.mkdir()
    program, *arguments = shlex.split(printed(folder))
    given = parse(arguments)
    assert program == "snnbench"
    if "mine" in arguments:
        assert given["adapter"] == [folder / "mine.py"]
    assert not given.get("replay") or printed is failures_shown
    assert "rm" not in arguments
    assert printed is not both_sides or given["config"] == f"{ODD}.toml"
