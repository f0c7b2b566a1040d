"""Tests of what bounds an epoch: numbers by hand."""

from dataclasses import replace

import pytest

from snnbench.analysis.epochs import BOTH, COMPUTE, LOADER, Epoch
from tests.small_epochs import SMALL

ALONE = Epoch(SMALL, "norse", 8e9, 3e9, 5e9, {}, {}, 0.0, 0.0)
BESIDE = replace(ALONE, case=SMALL.with_(workers=2))


def test_loader_and_network_take_turns_in_one_process() -> None:
    assert (ALONE.longer_ns, ALONE.expected_ns) == (5e9, 8e9)
    assert (BESIDE.longer_ns, BESIDE.expected_ns) == (5e9, 5e9)


@pytest.mark.parametrize(
    ("alone_ns", "compute_ns", "bound"),
    [(5e9, 3e9, LOADER), (3e9, 5e9, COMPUTE), (5e9, 4.6e9, BOTH), (4.4e9, 5e9, COMPUTE), (5e9, 5e9, BOTH)],
)
def test_longer_part_bounds_the_epoch(alone_ns: float, compute_ns: float, bound: str) -> None:
    assert replace(ALONE, alone_ns=alone_ns, compute_ns=compute_ns).bound == bound


def test_rate_counts_the_samples_of_whole_batches() -> None:
    """16 of 18 samples make batches of 4, in 8 seconds."""
    assert ALONE.samples_per_s == 2.0
