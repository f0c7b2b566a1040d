"""Tests that a library on torch is held to its declared kernel and to its declared ways."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from snnbench.cases.outcome import Outcome
from snnbench.worker.messages import Measure, Reply
from tests.fakes import CASE, ask, document, quantities, reply_of, request
from tests.recordings import EXACT

TORCH = '''
"""A fake library on torch, which says that a fast kernel of its own runs, and does the loop in torch."""

import torch

from snnbench.backends.torch import Network

BACKEND = "torch"
PROVIDER = ({pattern!r},)


def fire(distance):
    ramp = distance / (1 + distance.abs()).detach() ** 2
    return (ramp - ramp.detach()) + (distance >= 0).to(distance.dtype)


def build(case, weights, variant):
    linears = [layer.linear() for layer in weights]

    def forward(x):
        for linear in linears:
            v, spikes = 0.0, []
            for current in linear(x).unbind(0):
                u = case.beta * v + current
                spikes.append(fire(u - case.threshold))
                v = u - case.threshold * spikes[-1]
            x = torch.stack(spikes)
        return x

    return Network(forward, linears, provider="fast_kernel, says the library")
'''


def replied(folder: Path, source: str, measure: Measure = "time", **changes: Any) -> Reply:
    return reply_of(ask(folder, source, request(measure, CASE.with_(**changes))))


@pytest.mark.parametrize("measure", ["time", "memory", "verify"])
def test_fallback_to_another_kernel_is_incorrect(tmp_path: Path, measure: Measure) -> None:
    reply = replied(tmp_path, TORCH.format(pattern="^fast_kernel"), measure)
    assert (reply.outcome.status, reply.outcome.kind) == ("failed", "incorrect")
    assert reply.outcome.reason.startswith(
        "no kernel like '^fast_kernel' ran in inference on fast_kernel, says the library; "
    )
    assert "aten::" in reply.outcome.reason
    assert quantities(document(reply)) == []


def test_observed_kernel_is_recorded(tmp_path: Path) -> None:
    reply = replied(tmp_path, TORCH.format(pattern="^aten::addmm$"), "verify")
    assert reply.outcome == EXACT
    assert reply.settings["ran"] == ["aten::addmm"]


def test_mixed_precision_is_for_formats_of_16_bits(tmp_path: Path) -> None:
    source = TORCH.format(pattern=".") + '\nWAYS = ("amp", "compile", "cuda-graph")\n'

    def of(variant: str, **changes: Any) -> Reply:
        verify_request = replace(request("verify", CASE.with_(time_steps=5, **changes)), variant=variant)
        return reply_of(ask(tmp_path, source, verify_request))

    refused = of("amp")
    assert refused.outcome.reason == "autocast is for dtype bfloat16 and float16 (asked for float32)"
    assert of("amp", dtype="bfloat16").outcome == Outcome(status="measured", verdict="equivalent")
    assert of("cuda-graph").outcome.reason == "runs on cuda only"


def test_compiler_that_compiles_nothing_is_incorrect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = TORCH.format(pattern=".") + '\nWAYS = ("compile",)\n'
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    time_request = replace(request("time", CASE.with_(time_steps=3)), variant="compile")
    reply = reply_of(ask(tmp_path, source, time_request))
    assert reply.outcome.kind == "incorrect" and "compiled nothing" in reply.outcome.reason
    assert quantities(document(reply)) == []
