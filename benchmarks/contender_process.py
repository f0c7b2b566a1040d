"""One contender of contenders.py, in its own environment: it checks its work once, then times a pass for every line.

    python -P benchmarks/contender_process.py '{"path": ..., "variant": ..., "case": ..., "alone": ...}'

Only snnbench and the contender's library are on its path.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from snnbench.adapter import loading, reading
from snnbench.adapter.refusal import Unsupported
from snnbench.workloads import linear_lif
from snnbench.workloads.linear_lif import Case

FLOOR = "floor"
SCALE = 0.6
"""Standard deviation of the currents with --alone: about 14 % of neuron-steps fire."""
DIFFERENT = 1e-6
GRADIENT = 5e-6


def main() -> int:
    """Build and check the network, then do one timed training pass for every line of the input."""
    request = json.loads(sys.argv[1])
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries print

    def say(**answer: Any) -> None:
        channel.write(json.dumps(answer) + "\n")
        channel.flush()

    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: request["case"]["threads"]])
    work = Case(**request["case"])
    try:
        if request["variant"] == FLOOR:
            run, wait, note = floor(work, request["alone"])
        else:
            run, wait, note = library(work, request)
    except Exception as error:  # of a library: a stranger's code
        say(problem=f"{type(error).__name__}: {error}")
        return 1
    for _ in range(2):
        wait(run())
    say(note=note)
    for _ in sys.stdin:
        wait(run())  # as in training: the same pass before leaves its memory and caches
        started = time.perf_counter_ns()
        wait(run())
        say(ns=time.perf_counter_ns() - started)
    return 0


def floor(work: Case, alone: bool) -> tuple[Any, Any, str]:
    """Bare products, or a copy of the bytes that the neuron must move: current, cotangent in, spikes, gradient out."""
    import torch

    rows = work.time_steps * work.batch
    if alone:
        source = torch.rand(2 * rows, work.neurons)
        target = torch.empty_like(source)
        return lambda: target.copy_(source), lambda _: None, ""
    inputs, cotangent = (torch.rand(rows, work.neurons) < work.input_rate).float(), torch.randn(rows, work.neurons)
    weight, gradient = torch.randn(2, work.neurons, work.neurons).unbind(0)
    current, entering = torch.empty_like(cotangent), torch.empty_like(cotangent)

    def products() -> None:
        torch.mm(inputs, weight.t(), out=current)
        torch.mm(cotangent.t(), inputs, out=gradient)
        if work.input_gradient:
            torch.mm(cotangent, weight, out=entering)

    return products, lambda _: None, ""


def library(work: Case, request: dict[str, Any]) -> tuple[Any, Any, str]:
    """A training pass of a library's network, checked once."""
    from snnbench.backends import open_backend
    from snnbench.backends.layout import Layout
    from snnbench.workloads.linear_lif import Problem

    path, variant = Path(request["path"]), request["variant"]
    declared = reading.read(path).variants[variant]
    if refusal := declared.refusal(work):
        raise Unsupported(refusal)
    module = loading.load(path)
    backend = open_backend(declared.backend, work, module)
    if request["alone"]:
        return neuron(work, module, variant, Layout(declared.order, declared.latency))
    session = backend.session(linear_lif.builder(module), declared, Problem(work))
    note = check(session, declared.deviation, work)
    return session.train, session.synchronise, note


def check(session: Any, deviation: str | None, work: Case) -> str:
    """Run the harness's own spot check. Returns the deviation as a note."""
    from snnbench.proof.spotcheck import SpotCheck
    from snnbench.workloads.linear_lif import Problem

    spikes, gradients = session.train()
    session.synchronise((spikes, gradients))
    finding = SpotCheck(Problem(work), 0).check(session.answer(spikes, gradients))
    if not finding.correct and not deviation:
        raise ValueError(finding.message)
    return " (deviates)" if deviation else ""


def neuron(work: Case, module: Any, variant: str, layout: Any) -> tuple[Any, Any, str]:
    """The neuron that a torch adapter builds, fed with currents."""
    import numpy as np
    import torch

    from snnbench.backends.torch import Weights
    from snnbench.cases import reference

    class Through(torch.nn.Module):
        """In place of a linear layer."""

        weight = bias = None

        def __init__(self, gain: float) -> None:
            super().__init__()
            self.gain, self.out_features = gain, work.neurons

        def forward(self, x: Any) -> Any:
            return x if self.gain == 1.0 else x * self.gain

    class Identity(Weights):
        """Weights that change nothing, for an adapter that asks for them."""

        has_run = False

        def linear(self, gain: float = 1.0) -> Any:
            Identity.has_run = True
            return Through(gain)

    generator = np.random.default_rng(1)
    shape = (work.time_steps, work.batch, work.neurons)
    current = (SCALE * generator.standard_normal(shape)).astype(np.float32)
    cotangent = generator.standard_normal(shape).astype(np.float32)
    given = torch.from_numpy(layout.input(current)).requires_grad_()
    incoming = torch.from_numpy(layout.cotangent(cotangent))
    network = module.build(work, [Identity(torch.eye(work.neurons), torch.zeros(work.neurons))], variant)

    def train() -> Any:
        if network.reset:
            network.reset()
        spikes = network.forward(given)
        return spikes.detach(), torch.autograd.grad(spikes, given, incoming)[0]

    spikes, gradient = train()
    few = np.arange(work.neurons)[:: max(1, work.neurons // 16)]
    got = layout.spikes(spikes.numpy())[:, :, few].astype(np.float64)
    trace = reference.forward(current[:, :, few].astype(np.float64), work, forced=got)
    differing = int(((trace.potential >= work.threshold) != got).sum())
    expected = reference.backward(cotangent[:, :, few].astype(np.float64), trace, work)
    error = np.linalg.norm(layout.input_gradient(gradient.numpy())[:, :, few] - expected) / np.linalg.norm(expected)
    deviates = "half" in variant
    if differing > DIFFERENT * got.size + 1 or not error <= (5e-3 if deviates else GRADIENT):
        raise ValueError(f"{differing} of {got.size} spikes differ, gradient off by {error:.1e}")
    notes = ["deviates"] * deviates + ["with a product"] * (not Identity.has_run)
    return train, lambda _: None, f" ({', '.join(notes)})" if notes else ""


if __name__ == "__main__":
    sys.exit(main())
