"""Tests of recurrent layers: their gradients, exam and floor, what they are called, and lies about them."""

from pathlib import Path

import numpy as np
import pytest

from snnbench.adapter.discovery import discover
from snnbench.cases import recurrence, reference
from snnbench.cases.rule import rule_of
from snnbench.plan import config
from snnbench.plan.config_file import ConfigError
from snnbench.proof import provable
from snnbench.worker import floor
from snnbench.workloads import layers
from tests.examination import reply_to
from tests.fakes import CORRECT, altered, profile, request
from tests.plan.test_configs import CONFIGS
from tests.workloads.test_layers import SYNAPTIC, WIDE

RECURRENT = WIDE.with_(widths="30-48R-20")
ALONE = WIDE.with_(widths="30-48R")
DECLARED = 'from snnbench.cases import recurrence\nRECURRENT = ("subtract",)\n' + SYNAPTIC
"""Put before a fake: it declares recurrent layers, with and without a synaptic current."""


@pytest.mark.parametrize("alpha", [0.0, 0.8])
@pytest.mark.parametrize("name", ["subtract", "zero", "subtract-detached", "zero-attached"])
def test_gradient_of_each_weight_is_that_of_forward_differentiation(name: str, alpha: float) -> None:
    """The derivative of every spike by one weight is carried forward in time, as the reference never does."""
    case = ALONE.with_(widths="5-4R", batch=2, time_steps=12, alpha=alpha, **profile(name))
    problem, rule = layers.Problem(case), rule_of(case)
    [(weight, bias)] = [(w.astype(np.float64), b.astype(np.float64)) for w, b in problem.layers()]
    x, cotangent = problem.input(0).astype(np.float64), problem.cotangent(0).astype(np.float64)
    traces = reference.network_forward([(weight, bias)], x, case)
    got = reference.network_backward([(weight, bias)], x, traces, cotangent, case).weights[0]
    joined = recurrence.beside_own(x, traces[0].spikes)
    through = reference.slopes(traces[0], rule)
    for row, column in np.ndindex(weight.shape):
        v, i, s = (np.zeros((2, 4)) for _ in range(3))
        derivative = 0.0
        for t, (u, spikes) in enumerate(zip(traces[0].potential, traces[0].spikes, strict=True)):
            i = case.alpha * i + s @ weight[:, 5:].T
            i[:, row] += joined[t, :, column]
            du = case.beta * v + i
            s = through[t] * du
            of_reset = 0.0 if case.detach_reset else s
            v = du - case.threshold * of_reset if case.reset == "subtract" else du * (1 - spikes) - u * of_reset
            derivative += float((cotangent[t] * s).sum())
        assert derivative == pytest.approx(got[row, column], rel=1e-9, abs=1e-12)


def test_case_says_which_layers_are_recurrent() -> None:
    assert RECURRENT.layer_widths == (30, 48, 20) and RECURRENT.recurrent_layers == (True, False)
    assert RECURRENT.is_judged_by_layer and not ALONE.is_judged_by_layer
    assert RECURRENT.cut(0, 1).widths == "30-48R" and RECURRENT.cut(1, 1).widths == "48-20"
    assert RECURRENT.narrowed(40).widths == "30-40R-20"
    exams = [exam.case.recurrent_layers for exam in layers.exams(RECURRENT)]
    assert exams == [(True,), (True, False)]
    late = WIDE.with_(widths="30-48-20-20R")
    assert [exam.case.recurrent_layers for exam in layers.exams(late)] == [(True,), (True, False)]
    assert [weight.shape for weight, _ in layers.Problem(RECURRENT).layers()] == [(48, 78), (20, 48)]


def test_floor_has_the_products_of_each_step() -> None:
    train = layers.products(RECURRENT, "train")
    assert (train["48R.current"], train["48R.input_gradient"], train["48x48.weight_gradient"]) == (19, 19, 1)
    assert layers.products(ALONE.with_(widths="30-48R", time_steps=1), "inference") == {"30x48.current": 1}
    rows, own = 20 * 7, 48 * 48
    plain = floor.flops(WIDE, "train")
    assert floor.flops(RECURRENT, "train") == plain + 2 * own * (rows + 2 * 19 * 7)
    assert layers.least_values(RECURRENT, "train") == layers.least_values(WIDE, "train") + 2 * own
    assert layers.least_values(RECURRENT, "inference") == layers.least_values(WIDE, "inference") + own


def test_zeros_of_spikes_are_spared_in_the_products_with_them() -> None:
    """The input fires at 0.2, and the recurrent layer at 0.1."""
    spared = layers.spared(RECURRENT, "train", {"0": 0.1, "1": 0.4})
    assert spared == pytest.approx(
        {
            **{"30x48.current": 0.8, "30x48.weight_gradient": 0.8},
            **{"48R.current": 19 * 0.9, "48x48.weight_gradient": 0.9},
            **{"48x20.current": 0.9, "48x20.weight_gradient": 0.9},
        }
    )


def test_library_that_declares_no_recurrent_layer_is_not_asked_for_one() -> None:
    adapters = discover()
    refusals = {name: one.variants[one.default].refusal(RECURRENT) for name, one in adapters.items()}
    assert refusals["brainpy"] == "a recurrent layer: this adapter has none"
    assert refusals["norse"] == "a recurrent layer: this adapter has one in zero only"
    assert not refusals["torch-loop"] and not adapters["norse"].variants["box"].refusal(WIDE)


def test_surrogate_that_jumps_proves_nothing() -> None:
    assert "rectangle's jump" in provable.hindrance(RECURRENT.with_(surrogate="rectangle"))
    assert not provable.hindrance(RECURRENT)


@pytest.mark.parametrize("case", [RECURRENT, ALONE, RECURRENT.with_(alpha=0.8), RECURRENT.with_(dtype="float64")])
def test_right_library_is_measured_and_its_floor_is_there(tmp_path: Path, case: layers.Case) -> None:
    reply = reply_to(tmp_path, DECLARED + CORRECT, request("time", case))
    assert reply.outcome and reply.outcome.verdict == "exact", reply.outcome
    assert set(reply.peaks) == {*layers.products(case, "train"), "copy", "call"}
    assert all(check["neurons"] in (None, case.neurons) for check in reply.checks.values()) or case.sites > 1


OWN = "own = [(w if r is None else np.concatenate([w, {}], 1), b) for w, b, r in recurrence.split_all(weights, 30)]"
OF_EXAM = "entering = case.layer_widths[0]\n" + OWN.replace("30", "entering") + "\nreturn network(case, own)"
LIES = {
    "left out": (OF_EXAM.format("0 * r"), "the recurrent weights are left out"),
    "transposed": (OF_EXAM.format("r.T"), "the recurrent weights are transposed"),
    "without the diagonal": (OF_EXAM.format("r * (1 - np.eye(len(r)))"), "no neuron gets its own spikes back"),
    "one row": (OF_EXAM.format("np.where(np.arange(len(r))[:, None] == 3, 0, r)"), ""),
    "gradient one way": (
        """
        def backward(kept, g):
            x, traces = kept
            cut = [(w if r is None else np.concatenate([w, 0 * r], 1), b)
                   for w, b, r in recurrence.split_all(weights, x.shape[2])]
            got = reference.network_backward(cut, x, traces, g, case)
            return got.weights, got.biases, got.input
        return Network(right.forward, backward)
        """,
        "no gradient goes back through the recurrent weights",
    ),
    "gradient without a step": (
        """
        def backward(kept, g):
            x, traces = kept
            of_weights, biases, entering = right.backward(kept, g)
            first = reference.network_backward(weights[1:], traces[0].spikes, traces[1:], g, case).input
            [(w, _, r), *_] = [(w, b, r) for w, b, r in recurrence.split_all(weights, x.shape[2])]
            current = reference.backward(first, traces[0], case, recurrent=r)
            of_weights[0] = of_weights[0].copy()
            of_weights[0][:, x.shape[2]:] -= current[5].T @ traces[0].spikes[4]
            return of_weights, biases, entering
        return Network(right.forward, backward) if case.sites == 2 else right
        """,
        "",
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_wrong_recurrence_is_found_and_named(tmp_path: Path, lie: str) -> None:
    fault, cause = LIES[lie]
    outcome = reply_to(tmp_path, DECLARED + altered(fault), request("time", RECURRENT)).outcome
    assert outcome and outcome.status == "failed" and cause in outcome.reason, (lie, outcome)


@pytest.mark.parametrize("lie", ["one row", "left out"])
def test_wrong_recurrence_beyond_the_exam_is_found(tmp_path: Path, lie: str) -> None:
    fault, _ = LIES[lie]
    behaves = "if case.layer_widths[0] == 41:\n    return right\n"
    outcome = reply_to(tmp_path, DECLARED + altered(behaves + fault), request("time", ALONE)).outcome
    assert outcome and outcome.status == "failed" and "spikes differ" in outcome.reason, outcome


def test_network_that_leaves_the_path_of_its_layers_without_a_close_potential_is_found(tmp_path: Path) -> None:
    """A few samples may leave it where rounding decides, which is nowhere near this spike."""
    other_spike = """
        def forward(x):
            spikes, kept = right.forward(x)
            spikes = spikes.copy()
            spikes[0, 3, 5] = 1 - spikes[0, 3, 5]
            return spikes, kept
        return Network(forward, right.backward) if case.sites == 2 and case.layer_widths[0] == 30 else right
    """
    outcome = reply_to(tmp_path, DECLARED + altered(other_spike), request("time", RECURRENT)).outcome
    assert outcome and outcome.kind == "incorrect" and "differ from what its layers give" in outcome.reason, outcome


def test_recurrent_widths_are_read_and_others_refused() -> None:
    for given in ("700-256R-20", '[700, "256R", 20]'):
        loaded = config.load(CONFIGS / "quick.toml", [f"case.widths={given}"], default_threads=2)
        assert {case.widths for sweep in loaded.sweeps for case in sweep.cases()} == {"700-256R-20"}
    for wrong in ("700R-20", "700-R", "700-20r"):
        with pytest.raises(ConfigError, match="with a recurrent layer, 700-256R-20"):
            config.load(CONFIGS / "quick.toml", [f"case.widths={wrong}"], default_threads=2)
