"""Tests of the comparison: every interpretation is named as the cause, and no wrong output passes."""

from pathlib import Path

import numpy as np
import pytest

from snnbench.conformance.comparison import WrongShape, compare
from snnbench.conformance.graph import Array, read
from snnbench.conformance.interpretation import DOCUMENTED, Interpretation, interpretations
from snnbench.conformance.network import Network
from tests.nir_graphs import AFFINE, CHAIN, ENDS, GRAPHS, LIF, dense, inputs, write

DT = 1e-3


def network_of(path: Path) -> Network:
    graph = read(path)
    return Network(graph, inputs(graph, 60), DT)


def output(network: Network, interpretation: Interpretation = DOCUMENTED) -> Array:
    return np.array([answer.output for answer in network.answer(interpretation)])


@pytest.mark.parametrize("name", ["lif", "lif-leak", "readout", "cubalif", "convolution", "recurrent"])
def test_documented_output_is_right(name: str) -> None:
    network = network_of(GRAPHS / f"{name}.nir")
    comparison = compare(network, output(network))
    assert (comparison.differing, comparison.first, comparison.cause) == (0, None, "")
    assert comparison.rate == comparison.expected_rate


@pytest.mark.parametrize(
    ("name", "differences"),
    [
        ("lif", (("step", "fixed"),)),
        ("lif", (("reset", "subtract"), ("latency", "late"))),
        ("lif-resistance", (("gain", "no-resistance"),)),
        ("lif-leak", (("leak", "ignored"),)),
        ("lif-leak", (("reset", "zero"), ("start", "leak"))),
        ("readout", (("readout", "absent"),)),
        ("recurrent", (("back", "ignored"),)),
        ("cubalif", (("gain", "unscaled-synapse"),)),
        ("cubalif", (("decay", "exponential"),)),
        ("convolution", (("reset", "none"),)),
    ],
)
def test_cause_is_the_reading_of_the_output(name: str, differences: tuple[tuple[str, str], ...]) -> None:
    network, interpretation = network_of(GRAPHS / f"{name}.nir"), Interpretation(differences)
    comparison = compare(network, output(network, interpretation))
    assert (comparison.differences, comparison.cause) == (differences, str(interpretation))
    assert comparison.differing and comparison.first


def test_one_flipped_spike_is_found_and_not_explained() -> None:
    network = network_of(GRAPHS / "lif.nir")
    got = output(network)
    got[41, 2, 5] = 1 - got[41, 2, 5]
    comparison = compare(network, got)
    assert (comparison.differing, comparison.first, comparison.cause) == (1, (41, 2, 5), "")
    assert (comparison.got, comparison.expected) == (got[41, 2, 5], 1 - got[41, 2, 5])
    document = comparison.as_dict()
    assert (document["first"], document["compared"], document["differences"]) == ([41, 2, 5], got.size, [])


def test_silent_output_has_no_cause() -> None:
    network = network_of(GRAPHS / "lif.nir")
    comparison = compare(network, np.zeros_like(output(network)))
    assert comparison.differing and not comparison.cause and comparison.most_spikes == 0


def test_swapped_axes_and_infinities_are_refused() -> None:
    network = network_of(GRAPHS / "lif.nir")
    got = output(network)
    with pytest.raises(WrongShape, match=r"shape \[4, 60, 16\], expected \[60, 4, 16\]"):
        compare(network, got.swapaxes(0, 1))
    with pytest.raises(WrongShape, match="not finite"):
        compare(network, np.full_like(got, np.inf))


def test_readings_start_with_the_simplest_one() -> None:
    counts = [len(interpretation.differences) for interpretation in interpretations(read(GRAPHS / "lif.nir"), DT)]
    assert counts == sorted(counts) and counts[0] == 1
    singles = {
        interpretation.differences[0]
        for interpretation in interpretations(read(GRAPHS / "lif.nir"), 1e-4)
        if len(interpretation.differences) == 1
    }
    assert not singles & {("step", "fixed"), ("leak", "ignored"), ("gain", "no-resistance"), ("order", "before")}


def test_neurons_behind_neurons_get_their_spikes(tmp_path: Path) -> None:
    nodes = {**ENDS, "map": {**LIF, "v_threshold": [0.1, 0.1]}, "neurons": {**LIF, "v_threshold": [0.1, 0.1]}}
    network = network_of(write(tmp_path / "a.nir", nodes, CHAIN))
    comparison = compare(network, output(network))
    assert comparison.expected_rate and not comparison.differing


def test_first_wrong_position_counts_over_the_neurons_axes(tmp_path: Path) -> None:
    network = network_of(GRAPHS / "convolution.nir")
    got = output(network)
    got[3, 1, 2, 0, 5] = 1 - got[3, 1, 2, 0, 5]
    assert compare(network, got).first == (3, 1, 2 * 64 + 5)
    assert compare(network_of(dense(tmp_path / "a.nir")), output(network_of(dense(tmp_path / "a.nir")))).differing == 0


@pytest.mark.parametrize(("amplitude", "word"), [(0.0, "silent"), (1e6, "busy")])
def test_graph_that_proves_nothing_is_named_with_what_to_change(amplitude: float, word: str) -> None:
    assert not network_of(GRAPHS / "lif.nir").hindrance
    graph = read(GRAPHS / "lif.nir")
    reason = Network(graph, np.full((60, 4, *graph.input_shape), amplitude), DT).hindrance
    assert word in reason and "--amplitude" in reason


def test_threshold_fires_above_its_threshold_without_a_state(tmp_path: Path) -> None:
    nodes = {**ENDS, "map": AFFINE, "neurons": {"type": "Threshold", "threshold": [2.0, 0.5]}}
    network = Network(read(write(tmp_path / "a.nir", nodes)), np.array([[[1.0, 0.0]], [[0.0, 1.0]]]), DT)
    assert output(network).tolist() == [[[0.0, 1.0]], [[1.0, 0.0]]]  # of the currents 1.25 and 3, 2.25 and 0.5


@pytest.mark.parametrize("rate", [0, 1])
def test_silent_or_saturated_output_tells_no_reading_from_another(rate: int) -> None:
    network = network_of(GRAPHS / "lif.nir")
    assert compare(network, np.full_like(output(network), rate)).cause == ""
