"""A comparison of our kernels with the hardware, in one process: neuron against a copy, layer against bare products.

    python -m benchmarks kernels layer                                  # CPU: N = 512, 2048
    python -m benchmarks kernels neuron --neurons 512 2048
    python -m benchmarks kernels neuron --device cuda --batch 1 --neurons 1000000 --steps 1 2 4 8 16 64 256 1024
    python -m benchmarks kernels layer --device cuda --neurons 512 4096 16384

Run it with a Python that has torch; SpikingJelly and JAX take part if they are installed. It times a training pass:
forward, and backward for a dense random cotangent, to the gradients of weight and bias (layer) or input (neuron). First
every contender's spikes and gradients are compared with the plain loop in float64, on some columns of the case. A wrong
contender is named and not timed. A contender with `operator` in its name runs the same kernel through the dispatch of
the operator; others of ours run as a function of autograd. With `pipeline` the products are calls of torch.mm and not
part of the C code. One with `pieces` runs the sequence in pieces of time, and carries the potential.

The floor of `layer` is its two bare matrix products by the faster of torch's libraries. The floor of `neuron` is a
copy of the bytes that it must move at the least (current, cotangent in; spikes, gradient out; kept potentials not
counted). In every repetition, in a new random order, all contenders and the floor run untimed, on a CPU for 20 ms, and
then once more, timed. Disturbances by the rest of the machine so meet all alike. Trust the ratios (medians of ratios
within a repetition) more than the milliseconds. `GB/s` is the same least bytes in the median time. `peak` is the peak
device memory above that before the pass.
"""

import argparse
import random
import time
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from statistics import median, quantiles
from typing import Any

import numpy as np
import torch

from benchmarks.kernel_contenders import (
    NEURON,
    PIECES,
    Pass,
    Work,
    compiled_steps,
    currents,
    floor,
    in_pieces,
    ours,
    spikingjelly,
    through_operator,
    through_pipeline,
    with_jax,
    with_torch,
)
from benchmarks.outcome import show as show_table
from benchmarks.turn import warm
from snnbench.kernels import KEEPS, KERNELS, Unavailable, Unsupported, lif_ref, require, reuse_memory

CHECKED = 48
"""Number of neurons to check: half from the start, half from the end."""
SLOWEST_S = 20.0
"""If a contender's pass takes longer than this, it is not repeated: it is named, with its one time."""


@dataclass(slots=True)
class Contender:
    """An implementation of the work, and its nanoseconds in each repetition."""

    name: str
    run: Pass
    durations_ns: list[int] = field(default_factory=list)
    first_ns: int = 0
    peak_bytes: int | None = None
    problem: str = ""


def main() -> int:
    """Measure every size in turn."""
    reuse_memory()
    options = arguments()
    wrong = 0
    for steps in options.steps:
        for neurons in options.neurons:
            work = make(options, steps, neurons)
            running = contenders(work, options)
            measure(work, running, options)
            show(work, running, options, f"T={steps}, B={options.batch}, N={neurons}")
            wrong += len([one for one in running if one.problem.startswith("incorrect")])
    return 1 if wrong else 0


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("layer", "neuron"))
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--neurons", type=int, nargs="+", default=[512, 2048])
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, nargs="+", default=[500])
    parser.add_argument("--repetitions", type=several, default=11)
    parser.add_argument("--seconds", type=float, default=60.0, help="for each size, after which repetitions end early")
    parser.add_argument("--precision", choices=("ieee", "tf32"), default="ieee", help="of products, on CUDA")
    parser.add_argument("--only", nargs="+", help="names of contenders")
    options = parser.parse_args()
    torch.backends.cuda.matmul.fp32_precision = options.precision
    return options


def several(text: str) -> int:
    """A number of repetitions that has quartiles."""
    if (number := int(text)) < 2:
        raise argparse.ArgumentTypeError(f"{number}: expected 2 or more")
    return number


def make(options: argparse.Namespace, steps: int, neurons: int) -> Work:
    """The harness's kind of problem: 10 % of the inputs spike, about 14 % of the neurons."""
    torch.manual_seed(1)
    shape = (steps, options.batch, neurons)
    cotangent = torch.randn(shape, device=options.device)
    if options.what == "neuron":
        return Work(torch.randn(shape, device=options.device).mul_(0.6).requires_grad_(), cotangent, None, None)
    inputs = (torch.rand(shape, device=options.device) < 0.1).float()
    weight = torch.randn(neurons, neurons, device=options.device) * (0.9 / (0.1 * neurons) ** 0.5)
    bias = 0.05 * torch.randn(neurons, device=options.device)
    return Work(inputs, cotangent, weight.requires_grad_(), bias.requires_grad_())


def contenders(work: Work, options: argparse.Namespace) -> list[Contender]:
    """Our kernels in all their variants, then the others."""
    running = [Contender("floor", floor(work))]
    for kernel in KERNELS:
        with suppress(Unavailable, Unsupported):
            require(kernel, work.inputs.device, work.inputs.dtype)
            for keep in ("auto", *KEEPS):
                running.append(Contender(f"{kernel}/{keep}", with_torch(work, ours(work, kernel, keep))))
            passes = with_torch(work, ours(work, kernel, "auto"))
            running.append(Contender(f"{kernel}/auto, operator", through_operator(passes)))
            if kernel == "cpu" and work.weight is not None:
                running.append(Contender("cpu/auto, pipeline", through_pipeline(passes)))
            if work.inputs.shape[0] >= PIECES:
                passes = with_torch(work, in_pieces(work, kernel))
                running.append(Contender(f"{kernel}/auto, {PIECES} pieces", passes))
    running.append(Contender("plain loop", with_torch(work, lambda x: lif_ref.lif(currents(work, x), NEURON)[0])))
    running.append(Contender("torch.compile, step", with_torch(work, compiled_steps(work))))
    if find_spec("spikingjelly"):
        running.append(Contender("SpikingJelly", with_torch(work, spikingjelly(work))))
    if find_spec("jax"):
        running.append(Contender("jax.lax.scan", with_jax(work)))
    return [one for one in running if not options.only or one.name == "floor" or one.name in options.only]


def measure(work: Work, running: list[Contender], options: argparse.Namespace) -> None:
    """Check all contenders, then let them take turns."""
    cuda = work.inputs.device.type == "cuda"

    def timed(contender: Contender) -> Any:
        if cuda:
            torch.cuda.synchronize()
        started = time.perf_counter_ns()
        outputs = contender.run()
        if cuda:
            torch.cuda.synchronize()
        contender.durations_ns.append(time.perf_counter_ns() - started)
        return outputs

    for contender in running:
        try:
            if cuda:
                torch.cuda.reset_peak_memory_stats()
                before = torch.cuda.memory_allocated()
            outputs = timed(contender)
            if cuda and contender.name != "jax.lax.scan":
                contender.peak_bytes = torch.cuda.max_memory_allocated() - before
            contender.first_ns = contender.durations_ns[0]
            contender.problem = "" if contender.name == "floor" else complaint(work, contender, outputs)
            del outputs
        except Exception as error:  # from a library's code; the others go on
            contender.problem = f"failed: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    turns = [contender for contender in running if not contender.problem]
    for contender in turns:
        timed(contender)  # warm
        if contender.durations_ns[-1] > SLOWEST_S * 1e9:
            contender.problem = "too slow to repeat"
        else:
            contender.durations_ns.clear()
    turns = [contender for contender in turns if not contender.problem]
    ends = time.monotonic() + options.seconds
    for number in range(options.repetitions):
        if number >= 3 and time.monotonic() > ends:
            break
        random.Random(number).shuffle(turns)
        for contender in turns:
            if cuda:
                contender.run()  # as in training: the same pass before leaves its memory and caches
            else:
                warm(contender.run)
            timed(contender)


def complaint(work: Work, contender: Contender, outputs: Any) -> str:
    """The error in an answer, on the first and last columns, against float64."""
    spikes, gradients = outputs
    neurons = work.inputs.shape[2]
    few = sorted({*range(min(neurons, CHECKED // 2)), *range(max(0, neurons - CHECKED // 2), neurons)})
    got, *measured = [picked(value, few) for value in (spikes, *gradients)]
    leaves = [picked(value, few).requires_grad_() for value in work.wanted]
    cotangent = picked(work.cotangent, few)
    current = leaves[0] if work.weight is None else work.inputs.cpu().double() @ leaves[0].t() + leaves[1]
    expected, _ = lif_ref.lif(current, NEURON)
    differing = int((got != expected).sum())
    if differing > 1e-6 * expected.numel() + 1:
        return f"incorrect: {differing} of {expected.numel()} spikes differ"
    tolerance = 5e-3 if contender.name.endswith("bfloat16") else 5e-6 if not differing else 5e-2
    for mine, other in zip(measured, torch.autograd.grad(expected, leaves, cotangent), strict=True):
        error = float((mine - other).norm() / other.norm())
        if not error <= tolerance:
            return f"incorrect: a gradient is off by {error:.1e}"
    return ""


def picked(value: Any, few: list[int]) -> torch.Tensor:
    """Some neurons of a torch or JAX array, in float64 on the CPU: from the last of three axes, else the first."""
    if isinstance(value, torch.Tensor):
        part = value[:, :, few] if value.ndim == 3 else value[few]
        return part.detach().cpu().double()
    whole = np.array(value)  # JAX takes no list as an index
    return torch.from_numpy(whole[..., few] if whole.ndim == 3 else whole[few]).double()


def show(work: Work, running: list[Contender], options: argparse.Namespace, title: str) -> None:
    """A table, the fastest first."""
    base, rows = running[0].durations_ns, []
    for contender in sorted(running, key=lambda one: median(one.durations_ns) if one.durations_ns else 0):
        if contender.problem:
            continue
        ms = [ns / 1e6 for ns in contender.durations_ns]
        low, _, high = quantiles(ms, n=4, method="inclusive")
        ratio = median(mine / floor for mine, floor in zip(contender.durations_ns, base, strict=True))
        speed = f"{work.least_bytes / median(contender.durations_ns):.1f}" if options.what == "neuron" else "-"
        peak = "-" if contender.peak_bytes is None else f"{contender.peak_bytes / 2**20:.0f}"
        numbers = (f"{median(ms):.3f}", f"{low:.3f}-{high:.3f}", f"{ratio:.3f}", speed, peak)
        rows.append((contender.name, *numbers, f"{contender.first_ns / 1e6:.0f}"))
    columns = ("contender", "ms", "quartiles", "ratio to the floor", "GB/s", "peak MiB", "first call ms")
    device = f"{device_name(options.device)}, torch {torch.__version__}, {torch.get_num_threads()} threads"
    notes = [f"{contender.name}: {contender.problem}" for contender in running if contender.problem]
    heading = f"{options.what}: {title}, float32 ({options.precision}), {len(base)} repetitions"
    show_table(heading, columns, rows, [device, *notes])


def device_name(device: str) -> str:
    """The device's name for the first line."""
    return str(torch.cuda.get_device_name(device)) if device.startswith("cuda") else "CPU"
