"""What proof costs: seconds of all the checks of one timing worker, at B = 16, T = 500.

    python benchmarks/checks.py                       N = 512, 2048, 4096, 8192, 16384
    python benchmarks/checks.py 512 2048 --root OLD   the code of another checkout

A timing worker puts an input and a cotangent in place twice in each of four phases, and compares four answers with the
reference, two of spikes alone and two of spikes and gradients. That is timed, the drawing of all arrays included; the
pass that gives the answer is not. Every size runs in a process of its own. `pass` is a training pass of the yardstick.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
SIZES = (512, 2048, 4096, 8192, 16384)


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
    print("| N | checks s | CPU s | pass s | peak GiB |\n| ---: | ---: | ---: | ---: | ---: |", flush=True)
    threads = {name: str(options.threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    for size in options.sizes:
        command = [sys.executable, __file__, str(size), "--here", *(f"--steps={options.steps}",)]
        environment = os.environ | threads | {"PYTHONPATH": str(options.root), "PYTHONSAFEPATH": "1"}
        subprocess.run([*command, f"--threads={options.threads}"], env=environment, check=True)


def measure(neurons: int, steps: int, threads: int) -> None:
    """Time the checks of one size, in this process."""
    import torch

    from snnbench.case import Case
    from snnbench.inputs import Problem
    from snnbench.kernels import linear_lif
    from snnbench.spotcheck import SpotCheck
    from snnbench.verify import Answer

    torch.set_num_threads(threads)
    case = Case(
        neurons=neurons,
        batch=16,
        time_steps=steps,
        layers=1,
        device="cpu",
        dtype="float32",
        precision="ieee",
        threads=threads,
        beta=0.9,
        threshold=1.0,
        reset="subtract",
        detach_reset=False,
        surrogate="fast_sigmoid",
        slope=1.0,
        input_rate=0.1,
        input_gradient=True,
        seed=1,
    )
    given = Problem(case)
    tensors = [torch.from_numpy(array).requires_grad_() for array in (given.input(1), *given.layers()[0])]
    cotangent = torch.from_numpy(given.cotangent(1))
    started = time.perf_counter()
    spikes = linear_lif(*tensors, beta=case.beta, threshold=case.threshold)
    gradients = [gradient.numpy() for gradient in torch.autograd.grad(spikes, tensors, cotangent)]
    pass_s = time.perf_counter() - started
    whole = Answer(spikes.detach().numpy(), [gradients[1]], [gradients[2]], gradients[0])
    del given, tensors, cotangent

    started, cpu = time.perf_counter(), time.process_time()
    problem = Problem(case)
    check = SpotCheck(problem, 1)
    for answer in (Answer(whole.spikes), Answer(whole.spikes), whole, whole):
        for which in (0, 1):
            problem.input(which)
            problem.cotangent(which)
        finding = check.check(answer)
        assert finding.correct, finding.message
    wall_s, cpu_s = time.perf_counter() - started, time.process_time() - cpu
    peak_gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"| {neurons} | {wall_s:.2f} | {cpu_s:.2f} | {pass_s:.2f} | {peak_gib:.1f} |", flush=True)


if __name__ == "__main__":
    main()
