"""Tests of answers that are compared where a device holds them: frameworks' own arrays, here on the CPU."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snnbench import workloads
from snnbench.adapter.loading import load, own_rule
from snnbench.adapter.reading import read
from snnbench.backends import jax as of_jax
from snnbench.backends import open_backend
from snnbench.backends import torch as of_torch
from snnbench.backends.jax.arrays import Arrays as JaxArrays
from snnbench.backends.torch.arrays import Arrays as TorchArrays
from snnbench.cases.answer import Held
from snnbench.cases.case import PROFILES
from snnbench.proof.spotcheck import SpotCheck
from snnbench.worker.measurement import Measurement
from snnbench.worker.messages import Reply
from snnbench.workloads import linear_lif
from tests.answers import answer_to
from tests.fakes import CASE, profile, request
from tests.held import held, scanning

ADAPTERS = Path(__file__).parent.parent.parent.parent / "adapters"
WIDE = CASE.with_(neurons=150)
SESSIONS: dict[str, Any] = {"torch-loop": of_torch.Session, "jax-scan": of_jax.Session}


def arrays_of(name: str) -> Any:
    import jax
    import torch

    return TorchArrays(torch.device("cpu")) if name == "torch" else JaxArrays(jax.devices("cpu")[0])


@pytest.mark.parametrize("framework", ["torch", "jax"])
@pytest.mark.parametrize("name", PROFILES)
def test_every_framework_scans_as_numpy_compares(framework: str, name: str) -> None:
    problem, arrays = linear_lif.Problem(WIDE.with_(**profile(name))), arrays_of(framework)
    answer = answer_to(problem, 0, 0, "float32").each(lambda each: each.astype(np.float32))
    finding = scanning(problem, arrays).check(held(answer, arrays))
    expected = SpotCheck(problem, 0, budget_ns=10**12).check(answer)
    assert finding.correct and expected.correct, finding.message
    assert finding.gradient_errors == pytest.approx(expected.gradient_errors, rel=1e-6)
    assert (finding.compared, finding.differing) == (expected.compared, expected.differing)


def measured(
    monkeypatch: pytest.MonkeyPatch,
    library: str = "torch-loop",
    variant: str = "unbind",
    wrong_row: int | None = None,
    free_bytes: int = 1 << 30,
) -> Reply:
    """The reply of a worker whose device holds the answers; the row of the weight that the library gets wrong."""
    session, path = SESSIONS[library], ADAPTERS / f"{library}.py"
    arrays: Any = TorchArrays if library == "torch-loop" else JaxArrays
    monkeypatch.setattr(arrays, "free_bytes", lambda self: free_bytes)
    monkeypatch.setattr(arrays, "begin", lambda self: None)
    monkeypatch.setattr(session, "arrays", lambda self: arrays(self.device))
    module, declared = load(path), read(path).variants[variant]
    build = workloads.of(WIDE).builder(module)

    def built(case: Any, weights: Any, built_as: str) -> Any:
        network = build(case, weights, built_as)
        if wrong_row is not None and case.neurons == WIDE.neurons:
            network.linears[0].weight.data[wrong_row] *= 1.01
        return network

    asked_for, reply = replace(request("time", WIDE, check_ns=1), variant=variant), Reply()
    backend = open_backend(declared.backend, WIDE)
    Measurement(asked_for, backend, built, own_rule(module), declared).run(reply)
    return reply


@pytest.mark.parametrize(("library", "variant"), [("torch-loop", "unbind"), ("jax-scan", "default")])
def test_all_neurons_and_samples_are_compared_on_the_device(
    monkeypatch: pytest.MonkeyPatch, library: str, variant: str
) -> None:
    reply = measured(monkeypatch, library, variant)
    assert reply.outcome and (reply.outcome.status, reply.outcome.verdict) == ("measured", "exact"), reply.outcome
    for phase in ("inference", "forward", "backward", "train"):
        check = reply.checks[f"spot-{phase}"]
        assert (check["neurons"], check["samples"], check["seed"]) == (WIDE.neurons, WIDE.batch, None)
        assert check["compared"] == WIDE.updates
        repetitions, rest = divmod(reply.checks[f"fresh-{phase}"]["compared"], WIDE.updates)
        assert repetitions >= 2 and rest == 0


@pytest.mark.parametrize("trial", range(3))
def test_library_that_is_wrong_in_one_row_is_found_in_every_trial(monkeypatch: pytest.MonkeyPatch, trial: int) -> None:
    reply = measured(monkeypatch, wrong_row=40 + trial)
    assert reply.outcome and (reply.outcome.status, reply.outcome.kind) == ("failed", "incorrect")


def test_device_without_room_holds_no_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of each answer is then compared on the host."""
    reply = measured(monkeypatch, free_bytes=1000)
    assert reply.outcome and reply.outcome.verdict == "exact"
    check = reply.checks["spot-train"]
    assert (check["neurons"], check["samples"]) == (32, 1) and check["seed"] is not None


def test_spikes_that_numpy_has_no_format_for_are_read() -> None:
    import torch

    held = Held(torch.ones((2, 3), dtype=torch.bfloat16), TorchArrays(torch.device("cpu")))
    assert held[0].tolist() == [1.0] * 3 and np.asarray(held).dtype == np.float32
