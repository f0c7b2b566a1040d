"""Tests of cases of NIR graphs: what proves nothing is found before a library runs, and a deep graph has an exam."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snnbench.cases.operations import Neurons
from snnbench.plan import graph_files
from snnbench.proof import provable
from snnbench.workloads import graph_exam, nir
from tests.nir_cases import NIR
from tests.nir_graphs import AFFINE, CHAIN, ENDS, LIF, dense, write

EVEN = {"type": "LIF", "tau": [0.01] * 2, "r": [1.0] * 2, "v_leak": [0.0] * 2, "v_threshold": [0.2] * 2}
QUIET = {"type": "Linear", "weight": [[2.0, 2.0], [-0.1, -0.1]]}
OWN = {"type": "Linear", "weight": [[0.0, 0.0], [0.0, 1e4]]}
"""Weights by which the gradient of a silent neuron grows at each step."""
OWN_WAY = (*CHAIN, ("neurons", "own"), ("own", "neurons"))
ZERO = {"type": "Affine", "weight": np.zeros((2, 2)), "bias": [1.0, 1.0]}
TWICE = (("input", "first"), ("first", "map"), ("map", "neurons"), ("neurons", "output"))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNNBENCH_HOME", str(tmp_path / "home"))


def case_of(path: Path, **changes: Any) -> nir.Case:
    return NIR.with_(graph=graph_files.text(str(path)), time_steps=100, **changes)


@pytest.mark.parametrize(
    ("nodes", "edges", "changes", "words"),
    [
        ({"map": QUIET}, CHAIN, {"amplitude": 0.1}, "the neurons neurons are too silent to prove anything: 0 spikes"),
        ({"neurons": {**EVEN, "v_leak": [99.0] * 2}}, CHAIN, {}, "too busy to prove anything: 1 spikes per step, "),
        ({"map": QUIET, "own": OWN}, OWN_WAY, {}, "its gradient reaches numbers that float32 does not hold"),
        ({"first": EVEN, "map": ZERO}, TWICE, {}, "no gradient arrives at the neurons first"),
    ],
)
def test_graph_that_proves_nothing_is_found_before_a_library_runs(
    tmp_path: Path, nodes: Any, edges: Any, changes: Any, words: str
) -> None:
    path = write(tmp_path / "a.nir", {**ENDS, "map": AFFINE, "neurons": EVEN, **nodes}, edges)
    assert words in provable.hindrance(case_of(path, **changes))


def test_graph_that_proves_something_has_no_hindrance(tmp_path: Path) -> None:
    assert not provable.hindrance(case_of(dense(tmp_path / "a.nir")))


def test_every_site_of_a_deep_graph_fires_in_its_exam(tmp_path: Path) -> None:
    names = [name for number in range(20) for name in (f"map{number}", f"lif{number}")]
    nodes = {name: AFFINE if name.startswith("map") else LIF for name in names}
    edges = list(zip(["input", *names], [*names, "output"], strict=True))
    (exam,) = nir.exams(case_of(write(tmp_path / "deep.nir", {**ENDS, **nodes}, edges)))
    sites = [each for each in exam.operations() if isinstance(each, Neurons)]
    assert len(sites) == 20 and exam.parameters().keys() >= {"map19"} and graph_exam.FEWEST > 0


def test_time_step_above_a_time_constant_is_refused(tmp_path: Path) -> None:
    case = case_of(dense(tmp_path / "a.nir"), dt=0.003)
    assert case.lacks == "dt 0.003 s should be below 0.002 s, the shortest time constant of a"
    assert case.with_(dtype="bfloat16").lacks == "NIR graphs run in float32 and float64"
