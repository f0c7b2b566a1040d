"""Tests of the conversion of NIR graphs: what a converted graph computes, its text, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snnbench.cases import network_reference
from snnbench.cases.operations import Scaling
from snnbench.conformance import conversion, graph
from snnbench.conformance.graph import SPIKING, Array, Graph, GraphError, Node
from snnbench.workloads import graphs, nir
from tests.nir_cases import NIR
from tests.nir_graphs import AFFINE, CHAIN, ENDS, GRAPHS, LIF, write

THREE = {**AFFINE, "weight": np.ones((3, 2)), "bias": np.ones(3)}
OTHER = {"tau": [0.004, 0.004], "r": [1.0, 2.0], "v_leak": [0.0, 0.0]}
CUBA = {"tau_syn": [0.003] * 2, "tau_mem": [0.005] * 2, "r": [1.0] * 2, "v_leak": [0.0] * 2, "w_in": [2.0] * 2}
BRANCHES = {
    **ENDS,
    "map": AFFINE,
    "scale": {"type": "Scale", "scale": [0.5, 3.0]},
    "if": {"type": "IF", "r": [317.0, 213.0], "v_threshold": [1.0, 0.7]},
    "threshold": {"type": "Threshold", "threshold": [0.4, 0.8]},
    "cuba": {"type": "CubaLIF", **CUBA, "v_threshold": [0.3, 0.5]},
    "li": {"type": "LI", **OTHER},
    "cubali": {"type": "CubaLI", **CUBA},
}
WAYS = (
    *(("input", "map"), ("input", "scale"), ("map", "if"), ("scale", "if"), ("scale", "threshold"), ("if", "if")),
    *(("if", "cuba"), ("threshold", "cuba"), ("cuba", "li"), ("li", "cubali"), ("cubali", "output")),
)
"""Edges of a graph with sums, a value with two consumers, and neurons that get their own spikes as they are."""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNNBENCH_HOME", str(tmp_path / "home"))


def branches(folder: Path) -> Path:
    return write(folder / "branches.nir", BRANCHES, WAYS)


def simulated(read: Graph, dt: float, inputs: Array) -> Array:
    """The output [T, B, ...] of a graph by NIR's own equations, node after node in each step."""
    state: dict[str, Any] = {}
    outputs = []
    for given in inputs:
        values: dict[str, Any] = {}
        for node in read.nodes:
            x = given if node.kind == "Input" else sum(values[source] for source in node.sources)
            values[node.name] = _value(node, x, state, dt)
        outputs.append(values[read.nodes[-1].name])
    return np.array(outputs)


def _value(node: Node, x: Any, state: dict[str, Any], dt: float) -> Any:
    given = node.parameters
    if node.kind in ("Input", "Output"):
        return x
    if node.kind == "Threshold":
        return (x > given["threshold"]).astype(float)
    if node.kind not in (*SPIKING, "LI", "CubaLI"):
        operation, parameters = conversion.stateless(node, node.name, ("", x.shape[1:]))
        return operation.value([x], list(parameters.values()))
    v, current, spikes = state.get(node.name, (given.get("v_reset", 0.0), 0.0, np.zeros_like(x)))
    if node.back is not None:
        weight = node.back.parameters.get("weight")
        through = spikes * node.back.parameters["scale"] if weight is None else spikes @ weight.T
        x = x + through + node.back.parameters.get("bias", 0.0)
    if "tau_syn" in given:
        x = current = current + dt / given["tau_syn"] * (given["w_in"] * x - current)
    tau = given.get("tau", given.get("tau_mem"))
    v = v + (dt * given["r"] * x if tau is None else dt / tau * (given["v_leak"] - v + given["r"] * x))
    if node.kind in SPIKING:
        spikes = (v > given["v_threshold"]).astype(float)
        state[node.name] = np.where(spikes > 0, given["v_reset"], v), current, spikes
        return spikes
    state[node.name] = v, current, spikes
    return v


def problem_of(path: Path, dt: float = 1e-3) -> nir.Problem:
    text = conversion.keep(path, graph.read(path)).text()
    return nir.Problem(NIR.with_(graph=text, dt=dt, time_steps=60))


@pytest.mark.parametrize("name", [*(path.stem for path in sorted(GRAPHS.glob("[!l]*.nir"))), "lif-leak", "branches"])
def test_converted_graph_computes_what_the_equations_say(tmp_path: Path, name: str) -> None:
    path = branches(tmp_path) if name == "branches" else GRAPHS / f"{name}.nir"
    problem = problem_of(path)
    inputs = problem.input(0).astype(np.float64)
    values = network_reference.run(problem, inputs)
    got = values[problem.operations()[-1].name].reshape(problem.case.shape)
    expected = simulated(graph.read(path), problem.case.dt, inputs)
    np.testing.assert_allclose(got, expected.reshape(got.shape), atol=1e-5)
    assert got.any()


def test_text_has_all_but_the_numbers(tmp_path: Path) -> None:
    for path in (branches(tmp_path), *(GRAPHS / f"{name}.nir" for name in ("images", "recurrent", "own-constants"))):
        converted = conversion.keep(path, graph.read(path))
        assert graphs.parse(converted.text()) == converted
        assert all(operation.name in converted.text() for operation in converted.operations)


def test_neurons_scale_the_operation_before_them_if_it_is_theirs_alone(tmp_path: Path) -> None:
    added = {each.name for each in problem_of(branches(tmp_path)).operations() if isinstance(each, Scaling)}
    assert added == {"scale", "if.current", "threshold.current", "cuba.current", "li.current", "cubali.current"}
    nested = problem_of(GRAPHS / "nested.nir").operations()
    assert [each.name for each in nested] == ["first.fc", "first.lif", "second.fc", "second.lif"]


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ({"map": THREE}, "node 'neurons': tau of shape (2,) does not fit a value of shape (3,)"),
        ({"output": {"type": "Output", "shape": [3]}}, "its output has the shape (2,), not that of Output, (3,)"),
        (
            {"neurons": {**LIF, "tau": [0.1, 0.1, 0.1]}},
            "'neurons': tau of shape (3,) does not fit a value of shape (2,)",
        ),
        ({"neurons": {**LIF, "v_reset": [0.0, 2.0]}}, "node 'neurons': v_threshold should be above v_reset"),
        (
            {"neurons": {"type": "CubaLIF", **CUBA, "v_threshold": [1.0] * 2, "v_leak": [0.1] * 2}},
            "v_leak is not v_reset",
        ),
        ({"neurons": {"type": "CubaLI", **CUBA}}, "it has no spiking neurons"),
        ({"spare": {**AFFINE}}, "node 'spare': nothing of it reaches Output"),
        ({"map": {**AFFINE, "bias": [1.0, 2.0, 3.0]}}, "node 'map': "),
        ({"neurons": {"type": "LI", **OTHER, "tau": [0.1, 0.2]}}, "whose neurons have a tau of their own is not read"),
    ],
)
def test_graph_that_no_library_can_fill_is_one_clear_line(tmp_path: Path, nodes: Any, words: str) -> None:
    edges = (*CHAIN, ("neurons", "spare")) if "spare" in nodes else CHAIN
    path = write(tmp_path / "a.nir", {**ENDS, "map": AFFINE, "neurons": LIF, **nodes}, edges)
    with pytest.raises(GraphError) as error:
        conversion.keep(path, graph.read(path))
    assert words in str(error.value) and str(path) in str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("images", "expected NAME@DIGEST"),
        ("a@0123456789abcdef input 2; b = Linear(input) 2 inputs=2", "no spiking neurons"),
        ("a@0123456789abcdef input 2; b = LIF(c) 2 tau=0.1", "b takes c, which comes later or not at all"),
        ("a@0123456789abcdef input 2; b = Loop(input) 2", "is no operation"),
        ("a@0123456789abcdef input 2; b = LIF(input) 2 beta=0.5", "beta is no option of a LIF"),
        ("a@0123456789abcdef input 2; b = Linear(input) 2", "inputs"),
    ],
)
def test_text_of_a_stranger_is_checked(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        graphs.parse(text)


def test_missing_numbers_are_one_clear_line() -> None:
    absent = graphs.parse("a@0123456789abcdef input 2; b = Linear(input) 2 inputs=2; c = LIF(b) 2 tau=0.1")
    with pytest.raises(graphs.MissingGraph, match="name its file with --nir"):
        absent.numbers()
