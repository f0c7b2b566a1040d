"""Tests of sequences in chunks: honest loops are exact, lies at a border are found, and memory is that of a chunk."""

import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from snnbench.adapter.loading import load, own_rule
from snnbench.adapter.reading import read
from snnbench.adapter.refusal import Incorrect, Unsupported
from snnbench.backends import open_backend
from snnbench.backends.jax import Backend as JaxBackend
from snnbench.backends.torch import Backend
from snnbench.measures.memory.worker import measure as memory_of
from snnbench.proof.cause import GRADIENT_CARRIED, GRADIENT_CUT, STATE_KEPT, STATE_LOST
from snnbench.worker.measurement import Measurement
from snnbench.worker.messages import Measure, Reply
from snnbench.workloads import linear_lif
from snnbench.workloads.linear_lif import Case, Problem
from tests.fakes import CASE, CUT, profile, request
from tests.frameworks.workloads.test_network import ROOT, one_thread

__all__ = ["one_thread"]
SOURCES = {name: (ROOT / "adapters" / f"{name}.py").read_text(encoding="utf-8") for name in ("torch-loop", "jax-scan")}
CARRIED = CUT | {"carried_gradient": True}
GRADIENTS = {"carried": CARRIED, "cut": CUT}


def reply_to(folder: Path, source: str, case: Case, measure: Measure = "verify", variant: str = "") -> Reply:
    """The reply to a request to measure the adapter with this text, in this process."""
    path, reply = folder / "loop.py", Reply()
    path.write_text(source)
    module, adapter = load(path), read(path)
    variant = variant or adapter.default
    declared = adapter.variants[variant]
    backend = open_backend(declared.backend, case)
    asked_for = replace(request(measure, case), variant=variant)
    Measurement(asked_for, backend, linear_lif.builder(module), own_rule(module), declared).run(reply)
    return reply


@pytest.mark.parametrize("library", SOURCES)
@pytest.mark.parametrize("gradient", GRADIENTS)
@pytest.mark.parametrize("name", ["subtract", "zero-attached"])
def test_honest_loop_is_exact(tmp_path: Path, library: str, gradient: str, name: str) -> None:
    case = CASE.with_(**profile(name), **GRADIENTS[gradient], layers=2)
    outcome = reply_to(tmp_path, SOURCES[library], case).outcome
    assert outcome and outcome.verdict == "exact", outcome


@pytest.mark.parametrize("library", SOURCES)
def test_honest_loop_is_timed(tmp_path: Path, library: str) -> None:
    reply = reply_to(tmp_path, SOURCES[library], CASE.with_(**CUT, input_gradient=False), "time")
    assert reply.outcome and reply.outcome.verdict == "exact", reply.outcome
    assert all(reply.checks[f"fresh-{phase}"]["correct"] for phase in reply.phases) and len(reply.phases) == 4


@pytest.mark.parametrize("library", SOURCES)
@pytest.mark.parametrize("gradient", GRADIENTS)
@pytest.mark.parametrize("steps", [1, 8, 30])
def test_last_chunk_may_be_shorter(tmp_path: Path, library: str, gradient: str, steps: int) -> None:
    case = CASE.with_(**GRADIENTS[gradient] | {"chunk_steps": steps})
    outcome = reply_to(tmp_path, SOURCES[library], case).outcome
    assert outcome and outcome.verdict == "exact", outcome


@pytest.mark.parametrize("variant", ["compile", "amp"])
def test_ways_of_the_harness_run_chunks(tmp_path: Path, variant: str) -> None:
    case = CASE.with_(**CUT, dtype="bfloat16" if variant == "amp" else "float32")
    outcome = reply_to(tmp_path, SOURCES["torch-loop"], case, variant=variant).outcome
    assert outcome and outcome.verdict in ("exact", "equivalent"), outcome


def test_deep_stack_is_judged_layer_by_layer(tmp_path: Path) -> None:
    outcome = reply_to(tmp_path, SOURCES["torch-loop"], CASE.with_(**CUT, layers=3)).outcome
    assert outcome and outcome.verdict == "exact", outcome


def test_cuda_graph_is_unsupported() -> None:
    problem, variant = Problem(CASE.with_(**CUT)), read(ROOT / "adapters" / "torch-loop.py").variants["cuda-graph"]
    with pytest.raises(Unsupported, match="not captured in a CUDA graph"):
        Backend(problem.case).refuse(problem, variant)


OWN_STATE = ("return (torch.stack(spikes), v)", "layer.left = v\n            return (torch.stack(spikes), v)")
LIES: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "state lost": ("torch-loop", "cut", STATE_LOST, ("v = carried", "v = 0 * carried")),
    "state lost at full size": ("torch-loop", "cut", "differ", ("v = carried", "v = carried * (len(current) < 4)")),
    "state lost in a scan": (
        "jax-scan",
        "carried",
        STATE_LOST,
        ("threshold), state, current", "threshold), 0 * state, current"),
    ),
    "gradient cut": ("torch-loop", "carried", GRADIENT_CUT, ("v = carried", "v = carried.detach()")),
    "gradient cut at full size": (
        *("torch-loop", "carried", "gradient"),
        ("v = carried", "v = carried if len(current) < 4 else carried.detach()"),
    ),
    "gradient cut in a scan": (
        *("jax-scan", "carried", GRADIENT_CUT),
        ("threshold), state, current", "threshold), jax.lax.stop_gradient(state), current"),
    ),
    "gradient carried": ("torch-loop", "cut", GRADIENT_CARRIED, ("v = carried", "v = layer.left", *OWN_STATE)),
    "no reset before a pass": (
        *("torch-loop", "cut", STATE_KEPT),
        ("case.chunk_steps and carried is not None:", "case.chunk_steps:"),
        ("v = carried", "v = getattr(layer, 'left', v).detach() if carried is None else carried", *OWN_STATE),
    ),
}


@pytest.mark.parametrize("name", LIES)
def test_lie_at_the_border_of_a_chunk_is_found(tmp_path: Path, name: str) -> None:
    library, gradient, words, *changes = LIES[name]
    source = SOURCES[library]
    for change in changes:
        for old, new in zip(change[::2], change[1::2], strict=True):
            assert source.count(old) == 1, old
            source = source.replace(old, new)
    case = CASE.with_(**GRADIENTS[gradient])
    try:
        outcome: Any = reply_to(tmp_path, source, case).outcome
        assert outcome.kind == "incorrect"
        reason = outcome.reason
    except Incorrect as error:
        reason = str(error)
    assert words in reason


class Kept:
    """A tensor that a forward pass keeps for its backward pass."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor


def test_one_chunk_of_a_cut_sequence_is_kept_at_a_time() -> None:
    path, most = ROOT / "adapters" / "torch-loop.py", {}
    for gradient, changes in GRADIENTS.items():
        case = CASE.with_(**changes)
        session = Backend(case).session(linear_lif.builder(load(path)), read(path).variants["unbind"], Problem(case))
        kept, counts = weakref.WeakSet[Kept](), []

        def keep(tensor: torch.Tensor, kept: weakref.WeakSet[Kept] = kept, counts: list[int] = counts) -> Kept:
            kept.add(one := Kept(tensor))
            counts.append(len(kept))
            return one

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda one: one.tensor):
            session.train()
        most[gradient] = max(counts)
    assert most["cut"] <= most["carried"] / 4


def test_memory_of_a_compiled_pass_is_that_of_a_chunk() -> None:
    path, planned = ROOT / "adapters" / "jax-scan.py", {}
    for gradient, changes in GRADIENTS.items():
        case = CASE.with_(**changes | {"chunk_steps": 10}, time_steps=1000, input_gradient=False)
        session = JaxBackend(case).session(
            linear_lif.builder(load(path)), read(path).variants["default"], Problem(case)
        )
        session.compile("train")
        planned[gradient] = session.planned_bytes("train") - 4 * case.updates
    assert planned["cut"] < planned["carried"] / 4


def test_retained_memory_of_a_cut_sequence_is_not_measured() -> None:
    path = ROOT / "adapters" / "torch-loop.py"
    for gradient, changes in GRADIENTS.items():
        case = CASE.with_(**changes)
        backend = Backend(case)
        session = backend.session(linear_lif.builder(load(path)), read(path).variants["unbind"], Problem(case))
        memory, _, _ = memory_of(session, backend, "train")
        assert (memory["host"]["retained_bytes"] is None) is (gradient == "cut")
