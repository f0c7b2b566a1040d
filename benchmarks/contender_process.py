"""One contender of contenders.py, in its own environment: it checks its work on each case, and times passes.

    python -P benchmarks/contender_process.py '{"path": ..., "variant": ..., "threads": ...}'

A line of its input with a case prepares this case; an empty line asks for a turn of passes. Only snnbench and the
contender's library are on its path.
"""

import gc
import json
import os
import sys
import time
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
COMPILER = "torch._dynamo"
"""torch's compiler knows the shapes of earlier cases and makes code for any of them. So a case after the first needs a
new process, and this one ends."""


def main() -> int:
    """Build and check the network of each case, and time training passes for every empty line of the input."""
    request = json.loads(sys.argv[1])
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries print

    def say(**answer: Any) -> None:
        channel.write(json.dumps(answer) + "\n")
        channel.flush()

    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: request["threads"]])
    run = wait = None
    for line in sys.stdin:
        if not line.strip():
            mean_ns(run, wait)
            say(ns=mean_ns(run, wait))
            continue
        if COMPILER in sys.modules:
            return 0
        run = wait = None
        gc.collect()  # before the next network takes memory
        try:
            run, wait, note = prepared(workloads.decode(json.loads(line)), Path(request["path"]), request["variant"])
            for _ in range(2):
                wait(run())
            say(note=note)
        except Exception as error:  # of a library: a stranger's code
            run = wait = None  # it may hold arrays
            say(problem=f"{type(error).__name__}: {error}")
    return 0


def prepared(work: Case, path: Path, variant: str) -> tuple[Any, Any, str]:
    """A pass of the contender or of the floor, the function that waits for its result, and a note."""
    return floor(work) if variant == FLOOR else library(work, path, variant)


def mean_ns(run: Any, wait: Any) -> float:
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
    backend, problem = open_backend(declared.backend, work), workload.Problem(work)
    session = backend.session(workload.builder(module), declared, problem)
    spikes, gradients = session.train()
    session.synchronise((spikes, gradients))
    finding = SpotCheck(problem, 0).check(session.answer(spikes, gradients))
    if not finding.correct and not declared.deviation:
        raise ValueError(finding.message)
    return session.train, session.synchronise, " (deviates)" if declared.deviation else ""


if __name__ == "__main__":
    sys.exit(main())
