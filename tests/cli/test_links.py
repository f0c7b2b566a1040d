"""Tests of links and of neighbours that cannot be read: a command works, or ends with one clear line."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from snnbench.adapter.discovery import discover
from snnbench.recording.reading import read
from tests.shipped import QUICK, copied
from tests.sweep import Workspace

Change = Callable[[Path], object]
OTHERS: dict[str, tuple[Change, str, str]] = {
    "broken link": (lambda path: path.symlink_to("absent"), "no such file", "No such file or directory"),
    "loop of links": (lambda path: path.symlink_to(path.name), "Too many levels", "Too many levels of symbolic links"),
    "folder": (Path.mkdir, "Is a directory", "Is a directory"),
}
"""What is in the place of a file -> how it is made, and the words of a config and of an adapter on it."""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def test_links_to_results_recording_adapter_and_config_work(workspace: Workspace) -> None:
    folder = workspace.folder
    (folder / "disk").mkdir()
    (folder / "results").symlink_to("disk")
    for adapter in workspace.adapters:
        (folder / "links").mkdir(exist_ok=True)
        (folder / "links" / adapter.name).symlink_to(adapter)
    (folder / "link.toml").symlink_to(workspace.config)
    workspace.adapters = [folder / "links" / adapter.name for adapter in workspace.adapters]
    workspace.config = folder / "link.toml"
    assert workspace.run().returncode == 0
    (made,) = (folder / "disk").iterdir()
    (folder / "latest").symlink_to(made)
    assert read(folder / "latest").finished and read(folder / "latest").name == made.name
    assert workspace.ask("report", "latest") == workspace.ask("report", made)


@pytest.mark.parametrize("name", ["records.jsonl", "config.json", "machine.json"])
@pytest.mark.parametrize("make", [*(make for make, *_ in OTHERS.values()), os.mkfifo], ids=[*OTHERS, "pipe"])
def test_recording_that_cannot_be_read_is_no_obstacle_for_others(workspace: Workspace, make: Change, name: str) -> None:
    results = workspace.folder / "results"
    results.mkdir()
    sound, odd = copied(results, QUICK), results / "odd"
    shutil.copytree(sound, odd)
    (odd / name).unlink()
    make(odd / name)
    cell = next(one.cell for one in read(sound).records)
    assert f"cell {cell} of " in workspace.ask("show", cell)
    assert workspace.run("--dry-run").returncode == 0
    done = workspace("report", odd)
    if done.returncode:  # else it lacks the document only
        assert (done.returncode, len(done.stderr.splitlines())) == (1, 1) and str(odd) in done.stderr


@pytest.mark.parametrize(("make", "of_config", "of_adapter"), OTHERS.values(), ids=OTHERS)
def test_config_and_adapter_that_cannot_be_read_are_one_line(
    workspace: Workspace, make: Change, of_config: str, of_adapter: str
) -> None:
    odd = [workspace.folder / name for name in ("odd.toml", "odd.py")]
    for path in odd:
        make(path)
    done = workspace("run", "--config", odd[0], "--dry-run")
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    assert f"odd.toml: {of_config}" in done.stderr and "did you mean 'odd" not in done.stderr
    done = workspace("list", "--adapter", odd[1])
    assert (done.returncode, done.stderr) == (4, f"snnbench: {odd[1]}: {of_adapter}\n")
    assert workspace.run("--dry-run").returncode == 0, "they are no obstacle for their neighbours"


def test_editors_lock_beside_adapters_is_no_adapter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (Path(__file__).parents[2] / "adapters").glob("norse*.py"):
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / ".#norse.py").symlink_to("reader@host.1234:1700000000")
    monkeypatch.setattr("snnbench.adapter.discovery.data_folder", lambda name: tmp_path)
    assert [*discover()] == ["norse"]
