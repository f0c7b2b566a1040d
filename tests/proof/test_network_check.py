"""Tests of the check of several layers: a sample may diverge only if rounding explains it."""

from typing import Any

import numpy as np
import pytest

from snnbench.proof.comparison import Finding
from snnbench.proof.network_check import NetworkCheck
from snnbench.workloads.answer import Answer
from snnbench.workloads.rule import Rule
from tests.fakes import CASE

NUMBERS: dict[str, Any] = {
    "beta": 0.5,
    "threshold": 1.0,
    "reset": "subtract",
    "detach_reset": False,
    "surrogate": "fast_sigmoid",
    "slope": 1.0,
}


def complaints(rule: Rule, weight: float, bias: float) -> list[str]:
    """Complaints about one spike too many: of the only neuron, in the first step of the first of two samples."""
    case = CASE.with_(neurons=1, batch=2, time_steps=1, layers=1)
    layers = [(np.full((1, 1), weight, np.float32), np.full(1, bias, np.float32))]
    ones = np.ones((1, 2, 1), np.float32)
    check = NetworkCheck(case, rule, layers, ones, ones)
    spikes = check.traces[-1].spikes.copy()
    assert not spikes.any()
    spikes[0, 0, 0] = 1.0
    finding = Finding()
    check.check(finding, Answer(spikes), spikes, lambda summed: 1e-6)
    return finding.complaints


@pytest.mark.parametrize(("weight", "bias"), [(0.999, 0.0), (1000.999, -1000.0)])
def test_large_negative_bias_widens_the_margin(weight: float, bias: float) -> None:
    """A current of 0.999 is 0.001 below the threshold; float32 holds 1000.999 to 0.00003."""
    assert (complaints(Rule(**NUMBERS), weight, bias) == []) is (bias != 0.0)


@pytest.mark.parametrize(("weight", "bias", "is_close"), [(0.6, 0.15, True), (0.6, 0.2, False)])
def test_fixed_point_current_on_a_multiple_may_be_one_unit_off(weight: float, bias: float, is_close: bool) -> None:
    """0.75 is a multiple of 1/4, and one more is the threshold; 0.8 is cut to 0.75 with certainty."""
    assert (complaints(Rule(**NUMBERS, unit=0.25), weight, bias) == []) is is_close
