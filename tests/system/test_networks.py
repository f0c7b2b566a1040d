"""Tests of whole networks by the real libraries, in their managed environments."""

import pytest

from snnbench.adapter.contender import label
from snnbench.plan import config
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
    planned = {label(work.library, work.variant) for work in config.read(ROOT / "configs" / "network.toml").plan()}
    assert {label(record.library, record.variant) for record in networks} == planned


def test_library_of_another_framework_is_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("refused") / "recording"
    (record,) = recorded("network", folder, *SMALLEST, 'sweep.subtract.libraries=["jax-scan"]', only="library=jax-scan")
    assert record.outcome.kind == "unsupported" and "PyTorch" in record.outcome.reason
