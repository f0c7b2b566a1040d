"""Tests of the simulated card, with workers that sleep for no time, and with some that sleep too long."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks import charts, simulated_card
from snnbench.adapter.contender import label
from snnbench.adapter.discovery import discover
from snnbench.plan import config


def parts(seconds: float) -> list[dict[str, Any]]:
    """The parts of a cell, each of which takes so long."""
    return [part | {"seconds": seconds} for part in simulated_card.table()]


def test_all_cells_of_all_parts_are_measured(tmp_path: Path) -> None:
    found = simulated_card.simulate(10, tmp_path / "charts", parts(0.0))
    assert {name: part.measured for name, part in found.items()} == simulated_card.planned()
    times = [each for part in found.values() for each in (part.began_s, part.ended_s)]
    assert times == sorted(times)


def test_the_charts_stop_at_the_end_of_their_minutes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charts, "PARTS", {name: charts.PARTS[name] for name in ("cupy", "lava-dl")})
    monkeypatch.setattr(charts, "PATIENCE_S", 1.0)
    monkeypatch.setattr(charts, "LEAST_S", 1.0)
    found = simulated_card.simulate(0.1, tmp_path / "charts", parts(60.0))
    assert [(name, part.measured) for name, part in found.items()] == [("cupy", 0)]
    assert 6 <= found["cupy"].ended_s < 6 + charts.PATIENCE_S + charts.END_S + 1


def test_every_contender_of_the_charts_has_its_durations() -> None:
    works = config.expand(config.load(charts.CONFIG, default_threads=1), discover([]))
    cells = simulated_card.table()
    with_passes = [each for part in cells if part["name"].startswith("passes of a") for each in part["contenders"]]
    assert sorted(with_passes) == sorted({label(work.library, work.variant) for work in works})
    sizes = {str(work.case.neurons) for work in works}
    assert all(set(part["seconds"]) == sizes for part in cells if isinstance(part["seconds"], dict))
