"""Tests of epochs over event data: whole runs at the smallest size, by real libraries in their environments."""

from pathlib import Path

import pytest

from snnbench import checking
from snnbench.recording.record import Record
from tests.managed import recorded

pytestmark = pytest.mark.libraries

LEARNERS = Path(__file__).parents[2] / "benchmarks" / "liars" / "learners.py"
STRATEGIES = {"naive", "disk-cold", "disk-warm", "memory", "device-sparse"}
LIBRARIES = {"sinabs", "torch-loop", "spikingjelly", "fused"}
PROTOCOL = (
    'protocol.phases=["epoch", "compute"]',  # a tiny loader on a busy machine may seem to be below its floor
    *("protocol.trials=1", "protocol.remeasure=0", "protocol.repetitions=2", "protocol.max_phase_seconds=1"),
)
SIZES = ("samples=60", "batch=20", "time_steps=100")


def sizes(*sweeps: str) -> tuple[str, ...]:
    """The settings of so few samples in these sweeps."""
    return tuple(f"sweep.{sweep}.{size}" for sweep in sweeps for size in SIZES)


def losses(records: list[Record]) -> set[tuple[float, ...]]:
    """The losses of each record's epochs."""
    return {tuple(record.phases["epoch"]["losses"]) for record in records}


def test_strategies_of_loading_give_the_same_losses(tmp_path: Path) -> None:
    few = ('sweep.small.libraries=["torch-loop"]', "sweep.small-worker.strategy=disk-warm")
    folder = tmp_path / "recording"
    records = recorded("loading", folder, *PROTOCOL, *sizes("small", "small-worker"), *few, only="device=cpu")
    assert {record.outcome.verdict for record in records} == {"exact"}, [record.outcome for record in records]
    loops = [record for record in records if record.library == "torch-loop"]
    assert {record.case.strategy for record in loops} == STRATEGIES  # type: ignore[attr-defined]
    assert {record.library for record in records if record.case.workers} == LIBRARIES  # type: ignore[attr-defined]
    assert len(losses(loops)) == 1 and len(losses(records)) <= len(LIBRARIES)
    assert checking.check(folder) == []


def test_training_lowers_the_loss(tmp_path: Path) -> None:
    folder = tmp_path / "recording"
    settings = (*PROTOCOL, *sizes("small-zero"), "case.learning_rate=0.01")
    records = recorded("training", folder, *settings, only="device=cpu,profile=zero")
    assert {record.outcome.verdict for record in records} == {"exact"}, [record.outcome for record in records]
    assert {record.library for record in records} == {"snntorch", "torch-loop", "spikingjelly", "fused"}
    for first, *_, last in losses(records):
        assert last < first
    assert checking.check(folder) == []


def test_work_left_out_in_the_loop_only_is_found(tmp_path: Path) -> None:
    few = ('sweep.small.libraries=["learners/*"]', "sweep.small.strategy=naive")
    for config in ("loading", "training"):
        settings, folder = (*PROTOCOL, *sizes("small"), *few), tmp_path / config
        records = recorded(config, folder, *settings, adapters=[LEARNERS], only="library=learners", failing=True)
        kinds = {record.variant: record.outcome.kind or record.outcome.verdict for record in records}
        assert kinds == {"honest": "exact", "stateless": "incorrect", "shortened": "incorrect"}
