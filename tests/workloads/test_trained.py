"""Tests of trained constants: their gradients, what they are called, and lies about them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snnbench.adapter.discovery import discover
from snnbench.cases import constants, reference
from snnbench.cases.rule import rule_of
from snnbench.plan import config
from snnbench.plan.config_file import ConfigError
from snnbench.proof.scan import knows
from snnbench.report import wording
from snnbench.workloads import layers
from tests.examination import reply_to
from tests.fakes import CORRECT, altered, profile, request
from tests.plan.test_configs import CONFIGS
from tests.workloads.test_layers import SYNAPTIC, WIDE

BOTH = WIDE.with_(trained="beta-threshold")
ALONE = BOTH.with_(widths="30-48")
DECLARED = 'RECURRENT = ("subtract",)\nTRAINED = ("beta", "threshold")\n' + SYNAPTIC
"""Put before a fake: it declares trained constants, recurrent layers and synaptic currents."""


@pytest.mark.parametrize("widths", ["5-4", "5-4R"])
@pytest.mark.parametrize("alpha", [0.0, 0.8])
@pytest.mark.parametrize("name", ["subtract", "zero", "subtract-detached", "zero-attached", "none"])
def test_gradient_of_each_constant_is_that_of_forward_differentiation(name: str, alpha: float, widths: str) -> None:
    """The derivative of every spike by one neuron's constant is carried forward in time."""
    changes: dict[str, Any] = {"widths": widths, "batch": 2, "time_steps": 12, "alpha": alpha, "trained_each": "neuron"}
    case = ALONE.with_(**changes, **profile(name))
    problem, rule = layers.Problem(case), rule_of(case)
    [(weight, bias)] = [(w.astype(np.float64), b.astype(np.float64)) for w, b in problem.layers()]
    x, cotangent = problem.input(0).astype(np.float64), problem.cotangent(0).astype(np.float64)
    traces = reference.network_forward([(weight, bias)], x, case)
    got = reference.network_backward([(weight, bias)], x, traces, cotangent, case)
    own = weight[:, 5:] if case.is_recurrent else np.zeros((4, 4))
    through = reference.slopes(traces[0], rule)
    for index, neuron in np.ndindex(2, 4):
        of_beta, of_threshold = (np.eye(4)[neuron] * (index == number) for number in (0, 1))
        before, v, i, s = np.zeros((2, 4)), np.zeros((2, 4)), np.zeros((2, 4)), np.zeros((2, 4))
        derivative = 0.0
        for t, (u, spikes) in enumerate(zip(traces[0].potential, traces[0].spikes, strict=True)):
            i = case.alpha * i + s @ own.T
            du = case.beta * v + of_beta * before + i
            s = through[t] * (du - of_threshold)
            of_reset = 0.0 if case.detach_reset else s
            v = {
                "subtract": du - case.threshold * of_reset - of_threshold * spikes,
                "zero": du * (1 - spikes) - u * of_reset,
                "none": du,
            }[case.reset]
            before = rule.after_reset(u, spikes)
            derivative += float((cotangent[t] * s).sum())
        assert derivative == pytest.approx(got.constants[index][neuron], rel=1e-9, abs=1e-12)
    of_layer = reference.network_backward([(weight, bias)], x, traces, cotangent, case.with_(trained_each="layer"))
    assert [each.shape for each in of_layer.constants] == [(1,), (1,)]
    for whole, each in zip(of_layer.constants, got.constants, strict=True):
        assert whole[0] == pytest.approx(each.sum())


def test_case_says_what_it_trains() -> None:
    assert BOTH.trained_constants == ("beta", "threshold") and WIDE.trained_constants == ()
    assert constants.names(rule_of(BOTH), 2)[2] == "beta of layer 1"
    assert BOTH.is_judged_by_layer and not ALONE.is_judged_by_layer
    assert "trained" not in WIDE.as_dict() and BOTH.key != WIDE.key != BOTH.with_(trained_each="neuron").key
    assert "threshold=1, beta and threshold trained, one a layer, fast_sigmoid" in wording.title(BOTH)
    assert "trained" not in wording.title(WIDE)


def test_config_lists_the_constants() -> None:
    for given, cases in (
        ('["beta"]', ["beta"]),
        ('["threshold", "beta"]', ["beta-threshold"]),
        ('["none", "beta-threshold"]', ["none", "beta-threshold"]),
        ('[[], ["beta"], ["beta", "threshold"]]', ["none", "beta", "beta-threshold"]),
    ):
        loaded = config.load(CONFIGS / "tutorial.toml", [f"case.trained={given}"], default_threads=2)
        assert list(dict.fromkeys(each.trained for sweep in loaded.sweeps for each in sweep.cases())) == cases
    with pytest.raises(ConfigError, match="""should be "none", or a list of some of 'beta', 'threshold'"""):
        config.load(CONFIGS / "tutorial.toml", ['case.trained=["alpha"]'], default_threads=2)


def test_library_that_declares_no_trained_constant_is_not_asked_for_one() -> None:
    refusals = {name: one.variants[one.default].refusal(BOTH) for name, one in discover().items()}
    assert refusals["brainpy"] == "a trained beta and threshold: this adapter trains no constant"
    assert refusals["spyx"] == "a trained threshold: this adapter trains its beta only"
    assert not refusals["torch-loop"]


@pytest.mark.parametrize(
    "case",
    [
        BOTH,
        ALONE,
        ALONE.with_(trained_each="neuron"),
        BOTH.with_(widths="30-48R-20", alpha=0.8),
        ALONE.with_(dtype="float64"),
    ],
)
def test_right_library_is_exact_and_every_gradient_is_compared(tmp_path: Path, case: layers.Case) -> None:
    reply = reply_to(tmp_path, DECLARED + CORRECT, request("time", case))
    assert reply.outcome and reply.outcome.verdict == "exact", reply.outcome
    named = constants.names(rule_of(case), case.sites)
    assert set(named) <= set(reply.checks["spot-train"]["gradient_errors"])
    assert not knows(case, rule_of(case)), "a scan on a card does not sum constants"


WITH = """
        def backward(kept, g):
            weights, biases, entering, trained = right.backward(kept, g)
            return weights, biases, entering, {}
        return Network(right.forward, backward)
"""
LIES = {
    "left out": WITH.format("[]"),
    "one of them": WITH.format("trained[:1]"),
    "swapped": WITH.format("trained[::-1]"),
    "a mean": WITH.format("[each / case.neurons for each in trained]"),
    "zero": WITH.format("[0 * each for each in trained]"),
    "without the reset": """
        def backward(kept, g):
            x, traces = kept
            weights, biases, entering, trained = right.backward(kept, g)
            current = reference.backward(g, traces[0], case)
            lost = (current[1:] * traces[0].spikes[:-1]).sum() * case.beta
            return weights, biases, entering, [trained[0], trained[1] + lost]
        return Network(right.forward, backward)
    """,
    "without a step": """
        from snnbench.cases.constants import terms
        def backward(kept, g):
            x, traces = kept
            weights, biases, entering, trained = right.backward(kept, g)
            of_beta = terms("beta", reference.backward(g, traces[0], case), traces[0], rule_of(case))
            return weights, biases, entering, [trained[0] - of_beta[5].sum(), trained[1]]
        return Network(right.forward, backward) if case.neurons == 48 else right
    """,
    "without a neuron": """
        from snnbench.cases.constants import terms
        def backward(kept, g):
            x, traces = kept
            weights, biases, entering, trained = right.backward(kept, g)
            of_beta = terms("beta", reference.backward(g, traces[0], case), traces[0], rule_of(case))
            return weights, biases, entering, [trained[0] - of_beta[:, :, 7].sum(), trained[1]]
        return Network(right.forward, backward) if case.neurons == 48 else right
    """,
    "kept": """
        last = []
        def backward(kept, g):
            weights, biases, entering, trained = right.backward(kept, g)
            last.append(trained)
            return weights, biases, entering, last[0]
        return Network(right.forward, backward) if case.neurons == 48 else right
    """,
}


@pytest.mark.parametrize("lie", LIES)
def test_wrong_gradient_of_a_constant_is_found(tmp_path: Path, lie: str) -> None:
    outcome = reply_to(tmp_path, DECLARED + altered(LIES[lie]), request("time", ALONE)).outcome
    assert outcome and outcome.kind == "incorrect" and ("beta" in outcome.reason or "threshold" in outcome.reason), (
        outcome
    )


def test_wrong_constant_of_a_second_layer_is_found(tmp_path: Path) -> None:
    lie = WITH.format("[*trained[:3], 1.01 * trained[3]] if case.neurons == 20 and len(trained) == 4 else trained")
    outcome = reply_to(tmp_path, DECLARED + altered(lie), request("time", BOTH)).outcome
    assert outcome and outcome.kind == "incorrect" and "threshold of layer 1" in outcome.reason, outcome
