"""Tests of coverage: the compared parts that spot checks report, joined over processes and phases."""

from typing import Any

import numpy as np
import pytest

from snnbench.analysis.results import coverage
from snnbench.proof.extent import sampled
from tests.fakes import CASE

LARGE = CASE.with_(neurons=200, batch=16)


def part(seed: int, neurons: int = 40, samples: int = 1) -> dict[str, Any]:
    """The coverage fields of a partial check."""
    return {"neurons": neurons, "samples": samples, "seed": seed}


def test_one_full_check_covers_all() -> None:
    assert coverage(LARGE, [part(1), {"neurons": 200, "samples": 16, "seed": None}]) == "all"


def test_checks_without_extent_have_no_coverage() -> None:
    """An older snnbench recorded no extent."""
    assert coverage(LARGE, [{"compared": 3}, {"neurons": None}]) == ""
    assert coverage(LARGE, []) == ""


def test_parts_are_joined_without_double_counting() -> None:
    neurons = {*sampled(200, 40, 1), *sampled(200, 40, 2)}
    samples = {*sampled(16, 1, 1), *sampled(16, 1, 2)}
    expected = f"{len(neurons) / 200:.0%} of neurons, {len(samples)} of 16 samples"
    assert coverage(LARGE, [part(1), part(2), part(1)]) == expected
    assert 40 < len(neurons) < 80


def test_every_sample_covers_all() -> None:
    seeds = range(400)
    assert {int(np.ravel(sampled(16, 1, seed))[0]) for seed in seeds} == set(range(16))
    assert coverage(LARGE, map(part, seeds)) == "all"


def test_either_all_neurons_or_all_samples_suffice() -> None:
    long, wide = LARGE.with_(neurons=40, batch=1000), LARGE.with_(neurons=1000, batch=4)
    assert coverage(long, [part(seed, neurons=20) for seed in range(30)]) == "all"
    assert coverage(wide, [part(seed, neurons=3) for seed in range(30)]) == "all"
    assert coverage(long, [part(seed, neurons=3) for seed in range(2)]).endswith("2 of 1000 samples")


@pytest.mark.parametrize(("neurons", "share"), [(16384, "under 1%"), (512, "6%")])
def test_small_share_is_not_rounded_to_0(neurons: int, share: str) -> None:
    case = LARGE.with_(neurons=neurons)
    assert coverage(case, [part(1, neurons=32)]).startswith(f"{share} of neurons")


@pytest.mark.parametrize("batch", [1, 2, 16])
def test_checks_without_samples_name_neurons_only(batch: int) -> None:
    assert coverage(LARGE.with_(batch=batch), [part(1, samples=0)]) == "20% of neurons"
