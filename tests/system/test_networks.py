"""Tests of whole networks by the real libraries, in their managed environments."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from snnbench.adapter.contender import label
from snnbench.adapter.discovery import discover
from snnbench.plan import config
from snnbench.plan.cell import Work
from snnbench.recording.record import Record
from tests.managed import ROOT, recorded

pytestmark = pytest.mark.libraries

SMALLEST = (
    *("case.model=convolutional", "case.image=mnist", "case.width=8", "case.time_steps=4", "case.batch=2"),
    *("protocol.trials=1", "protocol.memory_trials=0", "protocol.repetitions=2", "protocol.max_phase_seconds=1"),
    *("protocol.min_repetition_ms=1", "protocol.remeasure=0"),
)


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """The smallest network, timed once by every library of the config."""
    return recorded("network", tmp_path_factory.mktemp("networks") / "recording", *SMALLEST)


def test_every_library_of_the_config_is_exact_and_timed(networks: list[Record]) -> None:
    for record in networks:
        assert record.outcome.verdict == "exact", (record.library, record.outcome)
        assert set(record.phases) == {"inference", "train"}
        assert record.checks["spot-train"]["compared"] == record.case.updates
    plan = config.expand(config.load(ROOT / "configs" / "network.toml", default_threads=2), discover())
    assert contenders(networks) == contenders(plan) and len(networks) == len(plan)


def contenders(cells: Iterable[Record | Work]) -> set[tuple[str, str, str]]:
    """The contender, the reset and the statistics of each cell."""
    return {(label(cell.library, cell.variant), cell.case.reset, cell.case.normalisation) for cell in cells}


def test_jax_needs_frozen_statistics(tmp_path: Path) -> None:
    changes = ('sweep.subtract.libraries=["jax-scan"]',)
    only = "library=jax-scan,normalisation=batch"
    (record,) = recorded("network", tmp_path / "recording", *SMALLEST, *changes, only=only)
    assert record.outcome.kind == "unsupported" and "use frozen statistics" in record.outcome.reason


@pytest.mark.parametrize(("name", "surrogate"), [("jax-scan", "fast_sigmoid"), ("rockpool/jax", "one_sided")])
def test_resnet_in_jax_is_exact_with_a_compiled_floor(tmp_path: Path, name: str, surrogate: str) -> None:
    """A ResNet has every operation, and LIFJax's currents have a gain."""
    resnet = (
        *("case.model=spiking-resnet18", "case.image=cifar10", "case.width=4", "case.normalisation=frozen"),
        *(f"case.surrogate={surrogate}", f'sweep.frozen.libraries=["{name}"]', f'baseline="{name}"'),
    )
    only = f"library={name},normalisation=frozen"
    (record,) = recorded("network", tmp_path / "recording", *SMALLEST, *resnet, only=only)
    assert record.outcome.verdict == "exact", record.outcome
    looks = [peak for kind, peak in record.peaks.items() if "." in kind]
    again = [peak for peak in looks if max(peak["repetitions_ns"]) > peak["first_call_ns"] / 2]
    assert len(looks) > 30 and len(again) < len(looks) / 2
