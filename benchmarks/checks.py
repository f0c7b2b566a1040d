"""The cost of proof: seconds of all the checks of one timing worker, at B = 16, T = 500.

    python -m benchmarks checks            N = 512, 2048, 4096, 8192, 16384
    python -m benchmarks checks 512 2048

`spot` is the spot checks of four phases, two of spikes alone and two of spikes and gradients, including the drawing of
inputs, cotangents and weights. `fresh` is the added cost of six fresh passes of every phase: content in
another order or drawn anew, and the comparison of their answers. The passes that give the answers are not timed: `pass`
is a training pass of the yardstick. Every size runs in its own process.

With --on-card only the host's part is timed: another process computes and holds the answers, as a card would, and
nobody scans them. `draw` is that of the weight and of four contents, and `check` compares the answers to them in the
phase train. The peak on the host includes the pages of answers that the checks read.

With --recorded the scan of a card and the reference in NumPy judge an answer to each case on a CPU of the recordings in
results/ that a scan knows, both of all neurons and samples.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.outcome import show
from snnbench import workloads

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
    parser.add_argument("--on-card", action="store_true", help="checks as on a card, and the time left to the host")
    parser.add_argument("--recorded", action="store_true", help="both references on the cases of results/")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        size, steps, threads = options.sizes[0], options.steps, options.threads
        print(" ".join((measure_on_card if options.on_card else measure)(size, steps, threads)))
        return 0
    if options.recorded:
        compare_references()
        return 0
    rows = []
    threads = {name: str(options.threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    for size in options.sizes:
        command = [sys.executable, "-m", "benchmarks", "checks", str(size), "--here", f"--steps={options.steps}"]
        command += [f"--threads={options.threads}", *(["--on-card"] if options.on_card else [])]
        done = subprocess.run(
            command, env=os.environ | threads, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        rows.append([f"{size:,}", *done.stdout.split()])
    if options.on_card:
        columns = ["N", "draw s", "check s", "pass s", "peak GiB"]
    else:
        columns = ["N", "spot s", "CPU s", "fresh s", "pass s", "peak GiB"]
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

    def answer_to(number: int) -> Answer:
        """The yardstick's answer to content drawn anew."""
        entering = torch.from_numpy(problem.input(number)).requires_grad_()
        spikes = linear_lif(entering, *tensors[1:], beta=case.beta, threshold=case.threshold)
        by = torch.autograd.grad(spikes, [entering, *tensors[1:]], torch.from_numpy(problem.cotangent(number)))
        return Answer(spikes.detach().numpy(), [by[1].numpy()], [by[2].numpy()], by[0].numpy())

    del given, cotangent

    started, cpu = time.perf_counter(), time.process_time()
    problem = Problem(case)
    answers = (Answer(whole.spikes), Answer(whole.spikes), whole, whole)
    for number, check in enumerate(checks_of(problem, len(answers))):
        problem.input(0)
        problem.cotangent(0)
        finding = check.check(answers[number])
        assert finding.correct, finding.message
    spot_s, cpu_s = time.perf_counter() - started, time.process_time() - cpu
    fresh_s = fresh(problem, check, answers, answer_to)
    peak_gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return [*(f"{value:.2f}" for value in (spot_s, cpu_s, fresh_s, pass_s)), f"{peak_gib:.1f}"]


def measure_on_card(neurons: int, steps: int, threads: int) -> list[str]:
    """The numbers of a row with --on-card."""
    import numpy as np
    import torch

    from benchmarks.basecase import CASE
    from snnbench.backends.torch.arrays import Arrays
    from snnbench.cases.answer import Answer, Held
    from snnbench.cases.rule import rule_of
    from snnbench.proof.fresh import DRAWN, Contents
    from snnbench.proof.scan import Scan, Scanner
    from snnbench.proof.spotcheck import SpotCheck
    from snnbench.workloads.linear_lif import Problem

    class OnCard(Scanner):
        """A scan that costs the host nothing, and finds no fault."""

        most_neurons = neurons

        def scan(self, inputs: Any, cotangent: Any, answer: Answer, neurons: Any) -> Scan:
            return Scan(neurons, np.zeros((case.batch, len(neurons)), bool), 0, 0.1 * inputs.size, {})

    torch.set_num_threads(threads)
    case = replace(CASE, neurons=neurons, time_steps=steps, threads=threads)
    problem, arrays = Problem(case), Arrays(torch.device("cpu"))
    contents = Contents(problem, seed=1, first=1 << 16)
    draw_s = check_s = 0.0

    with TemporaryDirectory() as folder:
        for number in [0, *(content.number for content in contents.next(DRAWN))]:
            with get_context("spawn").Pool(1) as others:
                pass_s = others.apply(write_answer, (case, number, Path(folder)))
            started = time.perf_counter()
            problem.draw([number])
            draw_s += time.perf_counter() - started
            spikes, *by = (torch.from_numpy(np.load(Path(folder) / f"{each}.npy", mmap_mode="r+")) for each in range(4))
            answer = Answer(spikes, [by[1]], [by[2]], by[0]).each(lambda tensor: Held(tensor, arrays))
            started = time.perf_counter()
            scanner = OnCard(arrays, case, rule_of(case), problem.layers()[0])
            finding = SpotCheck(problem, number, scanner=scanner).check(answer)
            check_s += time.perf_counter() - started
            assert finding.correct, finding.message
            if number:
                problem.forget(number)
    peak_gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return [*(f"{each:.2f}" for each in (draw_s, check_s, pass_s)), f"{peak_gib:.1f}"]


def write_answer(case: Any, number: int, folder: Path) -> float:
    """Save spikes and gradients of a training pass of the yardstick as 0.npy to 3.npy. Returns the seconds it took."""
    import numpy as np
    import torch

    from snnbench.kernels import linear_lif
    from snnbench.workloads.linear_lif import Problem

    torch.set_num_threads(case.threads)
    problem = Problem(case)
    problem.draw([number])
    tensors = [torch.from_numpy(array).requires_grad_() for array in (problem.input(number), *problem.layers()[0])]
    started = time.perf_counter()
    spikes = linear_lif(*tensors, beta=case.beta, threshold=case.threshold)
    gradients = torch.autograd.grad(spikes, tensors, torch.from_numpy(problem.cotangent(number)))
    pass_s = time.perf_counter() - started
    for place, tensor in enumerate((spikes.detach(), *gradients)):
        np.save(folder / f"{place}.npy", tensor.numpy())
    return pass_s


def compare_references() -> None:
    """Judge an answer to each recorded case by both references, and show by how much their gradient errors differ."""
    import torch

    from snnbench.adapter.discovery import discover
    from snnbench.adapter.loading import load
    from snnbench.backends import open_backend
    from snnbench.backends.torch.arrays import Arrays
    from snnbench.cases.answer import Held
    from snnbench.cases.rule import rule_of
    from snnbench.proof import scan
    from snnbench.proof.spotcheck import SpotCheck

    adapters = discover()
    rows = []
    for case in recorded_cases():
        adapter, name = adapters["fused"], "torch"
        if case.surrogate == "fast_sigmoid":
            adapter, name = adapters["torch-loop"], "unbind"
        workload = workloads.of(case)
        problem, arrays = workload.Problem(case), Arrays(torch.device("cpu"))
        build = workload.builder(load(adapter.path))
        session = open_backend("torch", case).session(build, adapter.variants[name], problem)
        session.load(0, 0)
        answer = session.answer(*session.train())
        held = answer.each(lambda array, arrays=arrays: Held(torch.from_numpy(array), arrays))  # type: ignore[misc]
        scanner = scan.Scanner(arrays, case, rule_of(case), next(iter(problem.layers()), None))
        scanner.most_neurons = case.neurons
        scanned = SpotCheck(problem, 0, scanner=scanner).check(held)
        whole = SpotCheck(problem, 0, budget_ns=10**15).check(answer)
        assert whole.samples == scanned.samples == case.batch, "both compare everything"
        off = [abs(scanned.gradient_errors[name] / error - 1) for name, error in whole.gradient_errors.items() if error]
        verdicts = ["right" if each.correct else "wrong" for each in (whole, scanned)]
        sizes = [f"{each:,}" for each in (case.neurons, case.batch, case.time_steps)]
        errors = f"{max(whole.gradient_errors.values()):.1e}", f"{max(off, default=0):.0e}"
        spikes = [f"{each.differing:,}" for each in (whole, scanned)]
        rows.append([f"{case.workload}, {case.profile}, {case.surrogate}", *sizes, *verdicts, *spikes, *errors])
        print(*rows[-1], flush=True)
    columns = ["case", "N", "B", "T", "NumPy", "scan", "spikes off", "by scan", "largest error", "errors differ by"]
    note = "the reference in NumPy also tries the other side of a jump of the surrogate where rounding decides"
    show("Both references on the recorded cases of one layer on a CPU", columns, rows, [note])


def recorded_cases() -> list[Any]:
    """The cases of results/ on a CPU that a scan knows, each work once."""
    from snnbench.cases.rule import rule_of
    from snnbench.proof import scan
    from snnbench.recording.reading import read

    found: dict[Any, Any] = {}
    for folder in sorted(ROOT.glob("results/*/")):
        for record in read(folder).records:
            case = record.case
            if case.device != "cpu" or case.workload not in ("linear_lif", "lif"):
                continue
            if scan.knows(case, rule_of(case)):
                found.setdefault(case.with_(threads=2).key, case.with_(threads=2))
    return sorted(found.values(), key=lambda case: case.updates)


def checks_of(problem: Any, phases: int) -> Iterator[Any]:
    """The spot check of each phase."""
    from snnbench.proof.spotcheck import SpotCheck

    check = SpotCheck(problem, 0, budget_ns=CHECK_NS, seed=0)
    yield check
    for phase in range(1, phases):
        if not check.everything:
            check = SpotCheck(problem, 0, budget_ns=CHECK_NS, seed=phase)
        yield check


def fresh(problem: Any, check: Any, answers: Sequence[Any], answer_to: Callable[[int], Any]) -> float:
    """Seconds of comparing answers to new content: known ones in another order, and `answer_to` content drawn anew."""
    from snnbench.proof.fresh import DRAWN, ORDERED, Contents
    from snnbench.proof.phase_proof import PhaseProof
    from snnbench.proof.spotcheck import SpotCheck

    spent_s, contents = 0.0, Contents(problem, seed=1, first=1 << 16)
    session: Any = None
    for first in answers:
        proof = PhaseProof(session, session, check, session, contents, on_cpu=False)
        proof.judge(first)
        for drawn in [0] * ORDERED + [1] * DRAWN:
            started = time.perf_counter()
            (content,) = contents.next(drawn)
            problem.input(content.number)
            problem.cotangent(content.number)
            spent_s += time.perf_counter() - started
            answer = answer_to(content.number) if drawn else first
            answer = answer if first.weights else type(answer)(answer.spikes)
            started = time.perf_counter()
            if drawn:
                finding = SpotCheck(problem, content.number, seed=0).check(answer)
                assert finding.correct, finding.message
            else:
                proof.judge(answer)
            spent_s += time.perf_counter() - started
        assert proof.fresh.correct, proof.fresh.message
    return spent_s


if __name__ == "__main__":
    main()
