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


LEFT_OUT = "spikingjelly/compile"
"""Compiling it takes most of a minute; torch-loop is compiled by the same way."""


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """The smallest network, timed once by every library and in every way of the config on a CPU."""
    only = f"device=cpu,library!={LEFT_OUT}"
    return recorded("network", tmp_path_factory.mktemp("networks") / "recording", *SMALLEST, only=only)


def test_every_library_of_the_config_is_right_and_timed(networks: list[Record]) -> None:
    for record in networks:
        expected = "exact" if record.case.dtype == "float32" else "equivalent"
        assert record.outcome.verdict == expected, (record.library, record.variant, record.outcome)
        assert set(record.phases) == {"inference", "train"}
        assert record.checks["spot-train"]["compared"] == record.case.updates
        assert ("graphs" in record.settings) is (record.variant == "compile")
    plan = config.expand(config.load(ROOT / "configs" / "network.toml", default_threads=2), discover())
    planned = [work for work in plan if work.case.device == "cpu" and label(work.library, work.variant) != LEFT_OUT]
    assert contenders(networks) == contenders(planned)


def contenders(cells: Iterable[Record | Work]) -> set[tuple[str, ...]]:
    """The contender, the reset, the statistics and the number format of each cell."""
    return {
        (label(cell.library, cell.variant), cell.case.profile, cell.case.normalisation, cell.case.dtype)
        for cell in cells
    }


def test_jax_needs_frozen_statistics(tmp_path: Path) -> None:
    """A neuron that would fail the exam is refused before it."""
    source = (ROOT / "adapters" / "jax-scan.py").read_text(encoding="utf-8")
    wrong = tmp_path / "wrong.py"
    wrong.write_text(source.replace("case.beta * v + x", "0.25 * v + x"), encoding="utf-8")
    changes = ('sweep.subtract.libraries=["wrong"]', 'baseline="wrong"')
    only = "library=wrong,normalisation=batch"
    (record,) = recorded("network", tmp_path / "recording", *SMALLEST, *changes, only=only, adapters=[wrong])
    assert record.outcome.kind == "unsupported" and "use frozen statistics" in record.outcome.reason


def test_jax_runs_no_network_in_16_bits(tmp_path: Path) -> None:
    only = "library=jax-scan,dtype=bfloat16"
    (record,) = recorded("network", tmp_path / "recording", *SMALLEST, "sweep.frozen.dtype=bfloat16", only=only)
    assert record.outcome.kind == "unsupported" and "adds gradients over images in bfloat16" in record.outcome.reason


def test_resnet_in_jax_is_exact_with_a_compiled_floor(tmp_path: Path) -> None:
    """A ResNet has every operation, and LIFJax's currents have a gain. XLA compiles it for half a minute."""
    resnet = (
        *("case.model=spiking-resnet18", "case.image=cifar10", "case.width=4", "case.normalisation=frozen"),
        *("case.surrogate=one_sided", 'sweep.frozen.libraries=["rockpool/jax"]', 'baseline="rockpool/jax"'),
    )
    only = "library=rockpool/jax,normalisation=frozen"
    (record,) = recorded("network", tmp_path / "recording", *SMALLEST, *resnet, only=only)
    assert record.outcome.verdict == "exact", record.outcome
    looks = [peak for kind, peak in record.peaks.items() if "." in kind]
    again = [peak for peak in looks if max(peak["repetitions_ns"]) > peak["first_call_ns"] / 2]
    assert len(looks) > 30 and len(again) < len(looks) / 2
