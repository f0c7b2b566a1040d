"""The cost of proof: seconds of all the checks of one timing worker, at B = 16, T = 500.

    python -m benchmarks checks            N = 512, 2048, 4096, 8192, 16384
    python -m benchmarks checks 512 2048

`spot` is the spot checks of four phases, two of spikes alone and two of spikes and gradients, including the drawing of
inputs, cotangents and weights. `fresh` is the added cost of five fresh passes of every phase: content in another order,
and the comparison of their answers. The passes that give the answers are not timed: `pass` is a training pass of the
yardstick. Every size runs in its own process.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.outcome import show

ROOT = Path(__file__).parent.parent
SIZES = (512, 2048, 4096, 8192, 16384)
CHECK_NS = 2_000_000_000
"""protocol.check_seconds of the configs that ship."""


def main() -> int:
    """Measure every size in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES, metavar="N")
    parser.add_argument("--steps", type=int, default=500, help="time steps (default: 500)")
    parser.add_argument("--threads", type=int, default=2, help="threads of NumPy and of the pass (default: 2)")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        print(" ".join(measure(options.sizes[0], options.steps, options.threads)))
        return 0
    rows = []
    threads = {name: str(options.threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    for size in options.sizes:
        command = [sys.executable, "-m", "benchmarks", "checks", str(size), "--here", f"--steps={options.steps}"]
        command.append(f"--threads={options.threads}")
        done = subprocess.run(
            command, env=os.environ | threads, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        rows.append([f"{size:,}", *done.stdout.split()])
    columns = ("N", "spot s", "CPU s", "fresh s", "pass s", "peak GiB")
    show(f"All checks of a timing process, B = 16, T = {options.steps}", columns, rows)
    return 0


def measure(neurons: int, steps: int, threads: int) -> list[str]:
    """The numbers of a row: seconds and GiB of the checks of one size, in this process."""
    import torch

    from benchmarks.basecase import CASE
    from snnbench.cases.answer import Answer
    from snnbench.kernels import linear_lif, reuse_memory
    from snnbench.workloads.linear_lif import Problem

    torch.set_num_threads(threads)
    reuse_memory()
    case = replace(CASE, neurons=neurons, time_steps=steps, threads=threads)
    given = Problem(case)
    tensors = [torch.from_numpy(array).requires_grad_() for array in (given.input(0), *given.layers()[0])]
    cotangent = torch.from_numpy(given.cotangent(0))
    started = time.perf_counter()
    spikes = linear_lif(*tensors, beta=case.beta, threshold=case.threshold)
    gradients = [gradient.numpy() for gradient in torch.autograd.grad(spikes, tensors, cotangent)]
    pass_s = time.perf_counter() - started
    whole = Answer(spikes.detach().numpy(), [gradients[1]], [gradients[2]], gradients[0])
    del given, tensors, cotangent

    started, cpu = time.perf_counter(), time.process_time()
    problem = Problem(case)
    answers = (Answer(whole.spikes), Answer(whole.spikes), whole, whole)
    for number, check in enumerate(checks_of(problem, len(answers))):
        problem.input(0)
        problem.cotangent(0)
        finding = check.check(answers[number])
        assert finding.correct, finding.message
    spot_s, cpu_s = time.perf_counter() - started, time.process_time() - cpu
    started = time.perf_counter()
    fresh(problem, check, answers)
    fresh_s = time.perf_counter() - started
    peak_gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return [*(f"{value:.2f}" for value in (spot_s, cpu_s, fresh_s, pass_s)), f"{peak_gib:.1f}"]


def checks_of(problem: Any, phases: int) -> Iterator[Any]:
    """The spot check of each phase."""
    from snnbench.proof.spotcheck import SpotCheck

    check = SpotCheck(problem, 0, budget_ns=CHECK_NS, seed=0)
    yield check
    for phase in range(1, phases):
        if not check.everything:
            check = SpotCheck(problem, 0, budget_ns=CHECK_NS, seed=phase)
        yield check


def fresh(problem: Any, check: Any, answers: Sequence[Any]) -> None:
    """Compare the answers to content in another order: the known answers, reordered in the same way."""
    from snnbench.proof.fresh import PASSES, Contents
    from snnbench.proof.phase_proof import PhaseProof

    class Replayed:
        """A session with prepared answers."""

        def load(self, which: int, cotangent: int) -> None:
            problem.input(which)
            problem.cotangent(cotangent)

    session: Any = Replayed()
    contents = Contents(problem, seed=1)
    for answer in answers:
        proof = PhaseProof(session, lambda outputs: outputs, check, lambda number: check, contents, on_cpu=False)
        proof.judge(answer)
        for _ in range(PASSES):
            proof.prepare(drawn=False)
            proof.load()
            order = proof.content.order if proof.content else None
            entering = None if answer.input is None else answer.input[:, order]
            proof.keep(type(answer)(answer.spikes[:, order], answer.weights, answer.biases, entering))
        assert proof.fresh.correct, proof.fresh.message


if __name__ == "__main__":
    main()
