"""One contender of contenders.py, in its own environment: it checks its work once, then times passes for every line.

    python -P benchmarks/contender_process.py '{"path": ..., "variant": ..., "case": ...}'

Only snnbench and the contender's library are on its path.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from snnbench import workloads
from snnbench.adapter import loading, reading
from snnbench.adapter.refusal import Unsupported
from snnbench.backends import open_backend
from snnbench.proof.spotcheck import SpotCheck

Case = Any
"""A case of any workload."""
FLOOR = "floor"
TURN_NS = 20_000_000
"""How long untimed passes run, and then timed passes; at least one each. After a sleep CPUs and threads need some
milliseconds, and passes of a training follow each other."""


def main() -> int:
    """Build and check the network, then time training passes for every line of the input."""
    request = json.loads(sys.argv[1])
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries print

    def say(**answer: Any) -> None:
        channel.write(json.dumps(answer) + "\n")
        channel.flush()

    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: request["case"]["threads"]])
    work = workloads.decode(request["case"])
    try:
        if request["variant"] == FLOOR:
            run, wait, note = floor(work)
        else:
            run, wait, note = library(work, Path(request["path"]), request["variant"])
    except Exception as error:  # of a library: a stranger's code
        say(problem=f"{type(error).__name__}: {error}")
        return 1
    for _ in range(2):
        wait(run())
    say(note=note)
    for _ in sys.stdin:
        mean_ns(run, wait)
        say(ns=mean_ns(run, wait))
    return 0


def mean_ns(run: Callable[[], Any], wait: Callable[[Any], None]) -> float:
    """The mean time of passes that follow each other for a turn."""
    started, passes = time.perf_counter_ns(), 0
    while not passes or time.perf_counter_ns() - started < TURN_NS:
        wait(run())
        passes += 1
    return (time.perf_counter_ns() - started) / passes


def floor(work: Case) -> tuple[Any, Any, str]:
    """Bare products, or a copy of the bytes that the neuron must move: current, cotangent in, spikes, gradient out."""
    import torch

    from snnbench.backends.torch.floor_products import products

    rows = work.time_steps * work.batch
    if not workloads.of(work).products(work, "train"):
        source = torch.rand(2 * rows, work.neurons)
        target = torch.empty_like(source)
        return lambda: target.copy_(source), lambda _: None, ""
    inputs, cotangent = (torch.rand(rows, work.neurons) < work.input_rate).float(), torch.randn(rows, work.neurons)
    runs = products(inputs, cotangent, torch.randn(work.neurons, work.neurons))
    if not work.input_gradient:
        del runs["input_gradient"]
    return lambda: [run() for run in runs.values()], lambda _: None, ""


def library(work: Case, path: Path, variant: str) -> tuple[Any, Any, str]:
    """A training pass of a library's network, which the harness's own spot check has checked once.

    The note names a deviation. Raises ValueError for a wrong answer.
    """
    declared = reading.read(path).variants[variant]
    if refusal := declared.refusal(work):
        raise Unsupported(refusal)
    module, workload = loading.load(path), workloads.of(work)
    backend, problem = open_backend(declared.backend, work, module), workload.Problem(work)
    session = backend.session(workload.builder(module), declared, problem)
    spikes, gradients = session.train()
    session.synchronise((spikes, gradients))
    finding = SpotCheck(problem, 0).check(session.answer(spikes, gradients))
    if not finding.correct and not declared.deviation:
        raise ValueError(finding.message)
    return session.train, session.synchronise, " (deviates)" if declared.deviation else ""


if __name__ == "__main__":
    sys.exit(main())
