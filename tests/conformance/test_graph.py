"""Tests of interpretation NIR graphs: parameters, order, and one clear line for each kind of bad file."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snnbench.conformance.graph import GraphError, read
from tests.nir_graphs import AFFINE, CHAIN, ENDS, GRAPHS, LIF, dense, write


def test_parameters_are_read_and_nodes_ordered(tmp_path: Path) -> None:
    graph = read(dense(tmp_path / "a.nir"))
    assert [node.kind for node in graph.nodes] == ["Input", "Affine", "LIF", "Output"]
    assert (graph.input_shape, graph.output_shape, graph.last.kind) == ((2,), (2,), "LIF")
    assert graph.of("Affine").parameters["weight"].tolist() == AFFINE["weight"]
    assert graph.last.parameters["v_reset"].tolist() == [0.0, 0.0]


def test_own_graphs_are_read() -> None:
    kinds = {path.stem: read(path).last.kind for path in sorted(GRAPHS.glob("*.nir"))}
    assert kinds == {**dict.fromkeys(kinds, "LIF"), "cubalif": "CubaLIF", "readout": "LI"}


@pytest.mark.parametrize(
    ("nodes", "edges", "words"),
    [
        (
            {"neurons": {**LIF, "type": "LIFF"}},
            CHAIN,
            "a LIFF is not read (did you mean 'LIF'?); the kinds that are: Input,",
        ),
        (
            {"neurons": {"type": "Delay", "delay": [1.0]}},
            CHAIN,
            "node 'neurons': a Delay is not read;",
        ),
        ({"map": {**AFFINE, "weight": [[1.0, np.nan], [0.0, 1.0]]}}, CHAIN, "weight has a number that is not finite"),
        ({"neurons": {"type": "LI", "r": [1.0]}}, CHAIN, "no tau and no v_leak, which LI has"),
        ({"neurons": {**LIF, "tau": [0.01, 0.0]}}, CHAIN, "node 'neurons': tau should be above 0"),
        ({}, (*CHAIN, ("neurons", "map")), "is a cycle; the spikes of a LIF, IF or CubaLIF may come back to itself"),
        ({}, (*CHAIN, ("neurons", "nothing")), "the edge from 'neurons' to 'nothing' has an end without a node"),
        ({}, CHAIN[1:], "each node needs a source"),
        ({"input": {**ENDS["output"]}}, CHAIN, "expected one Input and one Output"),
    ],
)
def test_wrong_graph_is_one_clear_line(tmp_path: Path, nodes: Any, edges: Any, words: str) -> None:
    path = write(tmp_path / "a.nir", {**ENDS, "map": AFFINE, "neurons": LIF, **nodes}, edges)
    with pytest.raises(GraphError) as error:
        read(path)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_other_files_are_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "text.nir").write_text("no HDF5")
    np.save(tmp_path / "array.npy", np.zeros(3))
    for name in ("text.nir", "array.npy", "absent.nir", ""):
        with pytest.raises(GraphError, match=r"no NIR graph|no such file") as error:
            read(tmp_path / name)
        assert "\n" not in str(error.value)
