"""The cost of proof: seconds of all the checks of one timing worker, at B = 16, T = 500.

    python benchmarks/checks.py                       N = 512, 2048, 4096, 8192, 16384
    python benchmarks/checks.py 512 2048 --root OLD   the spot checks of another checkout

`spot` is the spot checks of four phases, two of spikes alone and two of spikes and gradients, including the drawing of
inputs, cotangents and weights. `fresh` is the added cost of five fresh passes of every phase: content in another order,
and the comparison of their answers. The passes that give the answers are not timed: `pass` is a training pass of the
yardstick. Every size runs in its own process.
"""

import argparse
import importlib.util
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SIZES = (512, 2048, 4096, 8192, 16384)
CHECK_NS = 2_000_000_000
"""protocol.check_seconds of the configs that ship."""


def main() -> None:
    """Print a line for each size."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES, metavar="N")
    parser.add_argument("--root", type=Path, default=ROOT, help="time the checks of this checkout (default: here)")
    parser.add_argument("--steps", type=int, default=500, help="time steps (default: 500)")
    parser.add_argument("--threads", type=int, default=2, help="threads of NumPy and of the pass (default: 2)")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        measure(options.sizes[0], options.steps, options.threads)
        return
    print("| N | spot s | CPU s | fresh s | pass s | peak GiB |\n" + "| ---: " * 6 + "|", flush=True)
    threads = {name: str(options.threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    for size in options.sizes:
        command = [sys.executable, __file__, str(size), "--here", *(f"--steps={options.steps}",)]
        path = os.pathsep.join((str(options.root), str(Path(__file__).parent)))
        environment = os.environ | threads | {"PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
        subprocess.run([*command, f"--threads={options.threads}"], env=environment, check=True)


def measure(neurons: int, steps: int, threads: int) -> None:
    """Time the checks of one size, in this process."""
    import torch
    from basecase import CASE

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
        for which in (0, 1) if older() else (0,):  # a worker of an older checkout runs every phase on both
            problem.input(which)
            problem.cotangent(which)
        finding = check.check(answers[number])
        assert finding.correct, finding.message
    spot_s, cpu_s = time.perf_counter() - started, time.process_time() - cpu
    started = time.perf_counter()
    fresh(problem, check, answers)
    fresh_s = time.perf_counter() - started
    peak_gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    numbers = " | ".join(f"{value:.2f}" for value in (spot_s, cpu_s, fresh_s, pass_s))
    print(f"| {neurons} | {numbers} | {peak_gib:.1f} |", flush=True)


def older() -> bool:
    """Whether the checkout is older than fresh passes."""
    return importlib.util.find_spec("snnbench.proof.fresh") is None


def checks_of(problem: Any, phases: int) -> Iterator[Any]:
    """The spot check of each phase. An older checkout has one check for all phases."""
    from snnbench.proof.spotcheck import SpotCheck

    if older():
        check = SpotCheck(problem, 0)
        yield from [check] * phases
        return
    for phase in range(phases):
        if not phase or not check.everything:
            check = SpotCheck(problem, 0, budget_ns=CHECK_NS, seed=phase)
        yield check


def fresh(problem: Any, check: Any, answers: Sequence[Any]) -> None:
    """Compare the answers to content in another order: the known answers, reordered in the same way."""
    if older():
        return
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
