"""Test of `show --replay`: a recorded cell is measured again, and compared with its record."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from snnbench.plan.cell import Cell
from snnbench.recording.reading import read
from snnbench.run import local
from snnbench.run.setup import RunContext
from snnbench.run.store import InMemory
from tests.fakes import CORRECT, altered
from tests.sweep import recordings, run_arguments, snnbench, write_config


def ran(folder: Path, sources: Sequence[str]) -> tuple[Path, list[Path]]:
    """A recording of fakes, and their adapter files."""
    adapters = []
    for number, source in enumerate(sources):
        adapters.append(folder / f"fake{number}.py")
        adapters[-1].write_text(source)
    config = write_config(folder, [path.stem for path in adapters])
    snnbench(folder, *run_arguments(config, adapters))
    (made,) = recordings(folder)
    return made, adapters


def test_cell_is_replayed(tmp_path: Path) -> None:
    made, (good, bad) = ran(tmp_path, [CORRECT, altered("raise ValueError('broken by design')")])
    cells = {one.library: one for one in read(made).records if one.measure == "time"}
    options = ("--adapter", str(good), "--adapter", str(bad), "--env", "current", "--replay", "--trials", "1")
    done = snnbench(tmp_path, "show", cells["fake0"].cell, *options)
    assert done.returncode == 0, done.stderr
    assert "\n1 of 1 trials measured, exact\n" in done.stdout and "train time: " in done.stdout
    assert "no ratio to the baseline: the cell is the baseline's own" in done.stdout
    assert "changed since then" not in done.stdout
    good.write_text(CORRECT + "\n# another\n")
    done = snnbench(tmp_path, "show", cells["fake0"].cell, *options)
    assert f"changed since then: the adapter file: {cells['fake0'].adapter} then, " in done.stdout
    done = snnbench(tmp_path, "show", cells["fake1"].cell, "--log", *options)
    assert done.returncode == 5 and done.stdout.count("broken by design") >= 2
    done = snnbench(tmp_path, "show", cells["fake0"].cell, "--replay")
    assert done.returncode == 2 and "fake0/default is not here; --adapter FILE adds it" in done.stderr


def test_baseline_is_replayed_beside_a_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupted replay prints what it has: here the cell's first trial, and none of the baseline."""
    made, adapters = ran(tmp_path, [CORRECT, CORRECT])
    options = (*(word for path in adapters for word in ("--adapter", str(path))), "--env", "current", "--replay")
    (cell,) = (one.cell for one in read(made).records if (one.library, one.trial, one.measure) == ("fake1", 0, "time"))
    done = snnbench(tmp_path, "show", cell, *options, "--trials", "2")
    assert done.returncode == 0 and "measuring fake1 and fake0 again, 2 trials" in done.stderr, done.stderr
    assert re.search(r"\n[\w ]+: [\d.]+ of the recorded ratio to fake0 \([\d.]+ to [\d.]+\), in train", done.stdout)
    execute = local.execute

    def interrupted(plan: Sequence[Cell], run: RunContext, kept: InMemory) -> None:
        execute(plan[:1], run, kept)
        raise KeyboardInterrupt

    monkeypatch.setattr(local, "execute", interrupted)
    done = snnbench(tmp_path, "show", cell, *options)
    assert "\n1 of 3 trials measured, exact\ninference time: " in done.stdout
    assert done.stdout.endswith("\nno ratio to the baseline: no new trial has both times\n")
