"""Tests of layers of different widths: their problem, exam and floor, configs, and lies about a width."""

from pathlib import Path
from typing import Any

import pytest

from snnbench import workloads
from snnbench.adapter.discovery import discover
from snnbench.cases.outcome import Outcome
from snnbench.plan import config
from snnbench.plan.cell import Cell
from snnbench.plan.config_file import ConfigError
from snnbench.worker import floor
from snnbench.workloads import layers
from tests.bench import PROTOCOL
from tests.examination import reply_to
from tests.fakes import CASE, CORRECT, altered, request
from tests.plan.test_configs import CONFIGS

SHARED = {name: value for name, value in CASE.as_dict().items() if name in layers.Case.names() and name != "workload"}
SYNAPTIC = 'from snnbench.adapter import rule_of\nSYNAPTIC = ("subtract",)\n'
"""Put before a fake: it declares a synaptic current."""
WIDE = layers.Case(**SHARED, widths="30-48-20")
ALONE = WIDE.with_(widths="30-48")


def test_arrays_have_the_widths_of_their_layers() -> None:
    problem = layers.Problem(WIDE)
    assert [weight.shape for weight, _ in problem.layers()] == [(48, 30), (20, 48)]
    assert problem.input(0).shape == (20, 7, 30) and problem.cotangent(0).shape == (20, 7, 20)
    second = problem.layer(1, problem.input(0), problem.cotangent(0))
    assert second.case.widths == "48-20" and problem.first(1).case.widths == "30-48"
    assert [len(set(exam.case.layer_widths)) for exam in workloads.of(WIDE).exams(WIDE)] == [2, 3]


def test_floor_has_the_products_of_each_layer() -> None:
    products = ("current", "weight_gradient", "input_gradient")
    named = [f"{size}.{name}" for size in ("30x48", "48x20") for name in products]
    assert layers.products(WIDE, "train") == dict.fromkeys(named, 1)
    without = layers.products(WIDE.with_(input_gradient=False), "backward")
    assert set(without) == {"30x48.weight_gradient", "48x20.weight_gradient", "48x20.input_gradient"}
    rows, weights = 20 * 7, 30 * 48 + 48 * 20
    assert floor.flops(WIDE, "inference") == 2 * rows * weights and floor.flops(WIDE, "train") == 6 * rows * weights
    parameters = weights + 48 + 20
    assert layers.least_values(WIDE, "inference") == rows * (30 + 20) + parameters
    assert layers.least_values(WIDE, "backward") == rows * (30 + 20) + weights + parameters + rows * 30
    assert layers.least_values(WIDE, "train") == rows * (30 + 20 + 20) + 2 * parameters + rows * 30


@pytest.mark.parametrize("case", [WIDE, ALONE, WIDE.with_(widths="30-48-20-24")], ids=lambda case: str(case.widths))
def test_right_library_is_measured_and_its_floor_is_there(tmp_path: Path, case: layers.Case) -> None:
    reply = reply_to(tmp_path, CORRECT, request("time", case))
    assert reply.outcome and reply.outcome.verdict == "exact", reply.outcome
    assert set(reply.peaks) == {*layers.products(case, "train"), "copy", "call"}
    assert all(phase["floor_ns"] > 0 for phase in reply.phases.values())


def test_case_without_a_synaptic_current_keeps_its_key() -> None:
    """Recordings of such cases lack the field."""
    fields = WIDE.as_dict()
    assert "alpha" not in fields and workloads.decode(fields).key == WIDE.key
    assert Cell(WIDE, "a", "default", 0, "time").key("x", "y", "z", PROTOCOL) == "0670bb664f3dbda1"
    assert WIDE.with_(alpha=0.8).as_dict()["alpha"] == 0.8 and WIDE.with_(alpha=0.8).key != WIDE.key


def test_library_that_declares_no_synaptic_current_is_not_asked_for_one() -> None:
    case, adapters = WIDE.with_(alpha=0.8), discover()
    refused = {name: one.variants[one.default].refusal(case) for name, one in adapters.items()}
    assert refused["brainpy"] == "a synaptic current (alpha): this adapter has none"
    assert not refused["torch-loop"] and not adapters["fused"].variants["cpu"].refusal(WIDE)


SYNAPTIC_LIES = {
    "no synapse": "return network(case.with_(alpha=0.0), weights)",
    "alpha after the sum": "return network(replace(rule_of(case), gain=case.alpha), weights)",
    "decays swapped": "return network(case.with_(alpha=case.beta, beta=case.alpha), weights)",
    "state kept": """
        import numpy as np
        last = []
        def forward(x):
            whole = np.concatenate([*last[-1:], x])
            last.append(x.copy())
            spikes, (_, traces) = right.forward(whole)
            return spikes[-len(x):], (whole, traces)
        def backward(kept, g):
            return right.backward(kept, np.concatenate([np.zeros_like(kept[1][-1].spikes[: -len(g)]), g]))
        return Network(forward, backward)
    """,
    "gradient of one step": """
        def backward(kept, g):
            x, traces = kept
            cut = replace(rule_of(case), synapse=0.0)
            got = reference.network_backward(weights, x, traces, g, cut)
            return got.weights, got.biases, got.input
        return Network(right.forward, backward)
    """,
}


@pytest.mark.parametrize("alpha", [0.8, 0.5])
def test_right_synaptic_current_is_exact(tmp_path: Path, alpha: float) -> None:
    reply = reply_to(tmp_path, SYNAPTIC + CORRECT, request("time", WIDE.with_(alpha=alpha)))
    assert reply.outcome and reply.outcome.verdict == "exact", reply.outcome


@pytest.mark.parametrize("lie", SYNAPTIC_LIES)
def test_wrong_synaptic_current_is_found(tmp_path: Path, lie: str) -> None:
    source = SYNAPTIC + altered(SYNAPTIC_LIES[lie])
    outcome = reply_to(tmp_path, source, request("time", WIDE.with_(alpha=0.8))).outcome
    assert outcome and outcome.status == "failed" and outcome.reason, lie
    causes = {"alpha after the sum": "alpha is applied after the sum", "state kept": "state"}
    assert causes.get(lie, "") in outcome.reason


LIES = {
    "narrow": "narrow = [(np.where(np.arange(w.shape[1]) < 20, w, 0), b) for w, b in weights]\n"
    "return network(case, narrow if case.neurons == 20 else weights)",
    "one row": "first = [(np.where(np.arange(len(w))[:, None] == 3, 0, w), b) for w, b in weights]\n"
    "return network(case, first)",
}


@pytest.mark.parametrize("lie", LIES)
def test_width_that_is_padded_or_cut_is_found(tmp_path: Path, lie: str) -> None:
    outcome: Outcome | None = reply_to(tmp_path, altered(LIES[lie]), request("time", WIDE)).outcome
    assert outcome and outcome.status == "failed", lie


@pytest.mark.parametrize(
    ("given", "widths"),
    [
        ("[784, 1000, 10]", ["784-1000-10"]),
        ("784-1000-10", ["784-1000-10"]),
        ('[[30, 20], "40-30"]', ["30-20", "40-30"]),
    ],
)
def test_widths_take_the_place_of_neurons_and_layers(given: str, widths: list[str]) -> None:
    loaded = config.load(CONFIGS / "quick.toml", [f"case.widths={given}"], default_threads=2)
    cases: list[Any] = [case for sweep in loaded.sweeps for case in sweep.cases()]
    assert [case.widths for case in cases] == widths * 2
    assert {case.workload for case in cases} == {"layers"} and loaded.resolved()["sweep"][0]["workload"] == "layers"
    again = config.load(CONFIGS / "quick.toml", (), 2, {"widths": widths})
    assert [case for sweep in again.sweeps for case in sweep.cases()] == cases


@pytest.mark.parametrize("wrong", ["784", "784-0", "784-x", "[784, 1.5]"])
def test_other_widths_are_refused_in_one_line(wrong: str) -> None:
    with pytest.raises(ConfigError, match="2 to 100 numbers from 1 to 1000000, such as 784-1000-10") as error:
        config.load(CONFIGS / "quick.toml", [f"case.widths={wrong}"], default_threads=2)
    assert "widths" in str(error.value)
