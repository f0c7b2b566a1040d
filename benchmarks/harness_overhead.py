"""Does the harness time what a person would time? Its train phase of torch-loop against a timing loop written by hand.

    python benchmarks/harness_overhead.py --python ENVIRONMENT/bin/python

Both run the same case on the same weights and inputs, each trial in a fresh process of the interpreter that --python
names (it needs torch and NumPy; the one that runs this needs snnbench). The two take turns, and change places from
trial to trial, so that whatever else the machine does meets both alike. A pair of trials in which other processes took
part of the machine is set aside, on both sides and whatever it says, and run again. The loop written by hand shares no
code with the harness: it imports torch and reads raw files.

Prints the ratio of the medians, harness to loop, of the trials' medians. Exit status 1 if it is off by more than 2 %,
2 if the machine was too busy to say.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

from snnbench import contention
from snnbench.case import Case
from snnbench.inputs import Problem
from snnbench.process import environment, run
from snnbench.wire import Request

ADAPTER = Path(__file__).parent.parent / "adapters" / "torch-loop.py"
LARGEST_DIFFERENCE = 0.02
DISTURBED_CPUS = 0.1
"""CPUs that others took on average during a trial, from which on it is set aside."""
FEWEST_TRIALS = 5
WARMUP_PASSES = 5
TIMEOUT_S = 300.0

BY_HAND = """
import json
import sys
import time

import torch

settings, folder = json.loads(sys.argv[1]), sys.argv[2]
torch.set_num_threads(settings["threads"])
steps, batch, neurons = settings["steps"], settings["batch"], settings["neurons"]
beta, threshold, slope = settings["beta"], settings["threshold"], settings["slope"]


def read(name, *shape):
    size = torch.Size(shape).numel()
    return torch.from_file(f"{folder}/{name}", size=size, dtype=torch.float32).clone().reshape(shape)


class Fire(torch.autograd.Function):
    @staticmethod
    def forward(ctx, u, slope):
        ctx.save_for_backward(u)
        ctx.slope = slope
        return (u >= 0).float()

    @staticmethod
    def backward(ctx, grad):
        (u,) = ctx.saved_tensors
        return grad / (1 + ctx.slope * u.abs()) ** 2, None


layer = torch.nn.Linear(neurons, neurons)
with torch.no_grad():
    layer.weight.copy_(read("weight", neurons, neurons))
    layer.bias.copy_(read("bias", neurons))
x = read("input", steps, batch, neurons).requires_grad_()
cotangent = read("cotangent", steps, batch, neurons)


def train():
    v = torch.zeros(batch, neurons)
    out = []
    for current in layer(x).unbind(0):
        u = beta * v + current
        s = Fire.apply(u - threshold, slope)
        v = u - threshold * s
        out.append(s)
    spikes = torch.stack(out)
    return spikes.detach(), torch.autograd.grad(spikes, [layer.weight, layer.bias, x], cotangent)


for _ in range(settings["warmup"]):
    result = train()
durations = []
for _ in range(settings["repetitions"]):
    start = time.perf_counter()
    result = train()
    durations.append(time.perf_counter() - start)
print(json.dumps({"durations": durations, "spikes": float(result[0].sum()), "threads": torch.get_num_threads()}))
"""


def main() -> int:
    """Take turns, compare, say so."""
    options = arguments()
    case = Case(
        neurons=options.neurons,
        batch=options.batch,
        time_steps=options.time_steps,
        layers=1,
        device="cpu",
        dtype="float32",
        precision="ieee",
        threads=options.threads,
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
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        write(Problem(case), home)
        sides: dict[str, Callable[[], float]] = {
            "harness": lambda: by_harness(options.python, case, options.repetitions, home),
            "by hand": lambda: by_hand(options.python, case, options.repetitions, home),
        }
        times = take_turns(sides, options.trials, options.most)
    return report(times)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="interpreter with torch and NumPy")
    parser.add_argument("--trials", type=int, default=10, help="undisturbed processes of each side")
    parser.add_argument("--most", type=int, default=40, help="processes of each side at most, those set aside included")
    parser.add_argument("--repetitions", type=int, default=30, help="timed passes in each process")
    parser.add_argument("--neurons", type=int, default=512)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--time-steps", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def write(problem: Problem, folder: Path) -> None:
    """The case's arrays as raw float32 files, for a reader that knows torch alone."""
    ((weight, bias),) = problem.layers()
    arrays = {"weight": weight, "bias": bias, "input": problem.input(0), "cotangent": problem.cotangent(0)}
    for name, array in arrays.items():
        array.tofile(folder / name)


def take_turns(sides: dict[str, Callable[[], float]], trials: int, most: int) -> dict[str, list[float]]:
    """Milliseconds of a pass, the median of every undisturbed trial, of each side; who goes first alternates."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(most):
        pair, taken = {}, {}
        for name in sorted(sides, reverse=bool(number % 2)):
            pair[name], taken[name] = observed(sides[name])
        keep = max(taken.values()) < DISTURBED_CPUS
        said = ", ".join(
            f"{name} {pair[name]:.3f} ms ({taken[name]:.2f} CPUs taken by others)" for name in sorted(pair)
        )
        print(f"{'kept' if keep else 'set aside'}: {said}", file=sys.stderr)
        if keep:
            for name, value in pair.items():
                times[name].append(value)
        if len(times[name]) == trials:
            break
    return times


def observed(trial: Callable[[], float]) -> tuple[float, float]:
    """What a trial says, and how many CPUs others took meanwhile: all that was busy, less this process's children."""
    before, own = contention.usage(), children_s()
    value = trial()
    after = contention.usage()
    others = contention.between(before, after)
    foreign_cpus = others["foreign_cpus"] - (children_s() - own) / (after.wall_s - before.wall_s)
    return value, max(0.0, foreign_cpus) + others["stolen_cpus"]


def children_s() -> float:
    """CPU seconds of the processes that this one has started and seen end."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def by_harness(python: Path, case: Case, repetitions: int, home: Path) -> float:
    """One trial of a worker."""
    request = Request(
        measure="time",
        case=case,
        variant="unbind",
        phases=("train",),
        warmup_passes=WARMUP_PASSES,
        repetitions=repetitions,
        max_phase_ns=round(TIMEOUT_S * 1e9),
    )
    ending = run(python, ADAPTER, request, environment(case.threads, home), TIMEOUT_S)
    if ending.reply is None or ending.reply.outcome["status"] != "measured":
        raise SystemExit(f"worker: {ending.reply.outcome if ending.reply else ending.log}")
    train = ending.reply.phases["train"]
    return float(median(train["repetitions_ns"]) / train["passes"] / 1e6)


def by_hand(python: Path, case: Case, repetitions: int, home: Path) -> float:
    """One trial of the loop written by hand."""
    settings = {
        "threads": case.threads,
        "steps": case.time_steps,
        "batch": case.batch,
        "neurons": case.neurons,
        "beta": case.beta,
        "threshold": case.threshold,
        "slope": case.slope,
        "warmup": WARMUP_PASSES,
        "repetitions": repetitions,
    }
    command = [str(python), "-c", BY_HAND, json.dumps(settings), str(home)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    if done.returncode:
        raise SystemExit(f"by hand: {done.stderr.strip()}")
    reply = json.loads(done.stdout)
    if reply["threads"] != case.threads or not 0.01 < reply["spikes"] / case.updates < 0.9:
        raise SystemExit(f"by hand: not the same work: {reply['threads']} threads, {reply['spikes']:g} spikes")
    return 1e3 * float(median(reply["durations"]))


def report(times: dict[str, list[float]]) -> int:
    """The ratio, and the exit status that it means."""
    trials = len(times["harness"])
    if trials < FEWEST_TRIALS:
        print(f"too busy a machine: {trials} undisturbed trials a side, {FEWEST_TRIALS} needed", file=sys.stderr)
        return 2
    for name, values in times.items():
        spread = f"{min(values):.3f} to {max(values):.3f}"
        print(f"{name}: median {median(values):.3f} ms, {spread} over {len(values)} trials")
    ratio = median(times["harness"]) / median(times["by hand"])
    agree = abs(ratio - 1) <= LARGEST_DIFFERENCE
    print(f"ratio {ratio:.4f} over {trials} trials a side: {'agree' if agree else 'differ'} within 2 %")
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
