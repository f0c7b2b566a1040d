"""Tests of declared rules: a library's own neuron is checked by its own rule, and a wrong rule is found."""

from pathlib import Path

import pytest

from snnbench.adapter.refusal import AdapterError
from snnbench.worker.messages import Measure
from tests.fakes import CORRECT, document, quantities
from tests.proof.test_declared import replied

OTHER = """
from snnbench.adapter import Rule

DEVIATION = "a neuron of its own"


def rule(case, variant):
    return Rule({declared})


def build(case, weights, variant):
    own = Rule({real})
    weights = [(own.weights(weight), bias) for weight, bias in weights]

    def forward(x):
        traces = reference.network_forward(weights, x, own)
        return traces[-1].spikes, (x, traces)

    def backward(kept, cotangent):
        x, traces = kept
        got = reference.network_backward(weights, x, traces, cotangent, own)
        return got.weights, got.biases, got.input

    return Network(forward, backward)
"""
NUMBERS = {
    "beta": "0.8",
    "gain": "0.7",
    "synapse": "0.6",
    "threshold": "0.9",
    "reset": "'subtract'",
    "reset_by": "1.1",
    "detach_reset": "False",
    "most_spikes": "3",
    "surrogate": "'exponential'",
    "slope": "2.0",
}
FIXED_POINT = {
    **NUMBERS,
    "synapse": "0.0",
    "most_spikes": "1",
    "refractory": "2",
    "unit": "1 / 128",
    "weight_step": "1 / 16",
    "surrogate_gain": "0.5",
    "reset_in_backward": "False",
}
HELD = {**NUMBERS, "reset": "'zero'", "holds_removed": "True"}


def other(numbers: dict[str, str] = NUMBERS, **changes: str) -> str:
    """A library with its own neuron, declared with some changed numbers."""
    real, declared = (", ".join(f"{k}={v}" for k, v in said.items()) for said in (numbers, numbers | changes))
    return CORRECT + OTHER.format(real=real, declared=declared)


@pytest.mark.parametrize("measure", ["time", "memory", "verify"])
@pytest.mark.parametrize("layers", [1, 2])
def test_own_neuron_is_checked_by_its_own_rule(tmp_path: Path, measure: Measure, layers: int) -> None:
    reply = replied(tmp_path, other(), measure, layers=layers)
    assert (reply.outcome.status, reply.outcome.verdict) == ("measured", "deviates"), reply.outcome
    assert reply.outcome.own_rule["synapse"] == 0.6
    assert all(check["correct"] for check in reply.checks.values())
    common = reply.checks["common-train"]
    if layers == 1:
        assert 0 < common["differing"] < common["compared"]
        assert abs(common["rate"] - common["expected_rate"]) > 0.01
        assert 0 < common["cosines"]["weight"] < 0.99
    assert bool(reply.phases) == (measure == "time") and bool(reply.memory) == (measure == "memory")


@pytest.mark.parametrize("layers", [1, 2])
def test_fixed_point_neuron_is_checked_by_its_own_rule(tmp_path: Path, layers: int) -> None:
    reply = replied(tmp_path, other(FIXED_POINT), "verify", layers=layers)
    assert (reply.outcome.status, reply.outcome.verdict) == ("measured", "deviates"), reply.outcome
    assert reply.checks["exam-1"]["rate"] > 0.05


def test_silent_neuron_with_its_own_rule_is_incorrect(tmp_path: Path) -> None:
    reply = replied(tmp_path, other(), "verify")
    assert reply.checks["exam-1"]["rate"] > 0.05
    silent = other(FIXED_POINT, unit="1024.0").replace("unit=1 / 128", "unit=1024.0")
    reply = replied(tmp_path, silent)
    assert reply.outcome.kind == "incorrect" and "0 spikes per step" in reply.outcome.reason


@pytest.mark.parametrize(
    "lie",
    [
        {"beta": "0.79"},
        {"gain": "0.69"},
        {"synapse": "0.59"},
        {"threshold": "0.91"},
        {"reset": "'zero'"},
        {"reset_by": "None"},
        {"detach_reset": "True"},
        {"most_spikes": "1"},
        {"most_spikes": "2"},
        {"surrogate": "'fast_sigmoid'"},
        {"slope": "1.9"},
        {"refractory": "1"},
        {"refractory": "3"},
        {"unit": "1 / 64"},
        {"unit": "0.0"},
        {"weight_step": "1 / 32"},
        {"surrogate_gain": "0.51"},
        {"reset_in_backward": "True"},
        {"holds_removed": "False"},
    ],
    ids=lambda lie: "{}={}".format(*next(iter(lie.items()))),
)
def test_wrongly_declared_rule_is_incorrect(tmp_path: Path, lie: dict[str, str]) -> None:
    numbers = HELD if "holds_removed" in lie else FIXED_POINT if lie.keys() - NUMBERS.keys() else NUMBERS
    reply = replied(tmp_path, other(numbers, **lie))
    assert (reply.outcome.status, reply.outcome.kind) == ("failed", "incorrect"), reply.outcome
    assert quantities(document(reply)) == []


def test_malformed_rule_is_an_adapter_error(tmp_path: Path) -> None:
    source = CORRECT + '\nDEVIATION = "other"\ndef rule(case, variant): return 1\n'
    with pytest.raises(AdapterError, match=r"rule\(case, 'default'\) gave 1, expected a Rule or None"):
        replied(tmp_path, source)
