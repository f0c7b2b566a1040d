"""A check of the harness's times: its train phase of torch-loop against a timing loop written by hand.

    python -m benchmarks clock --python ENVIRONMENT/bin/python

A trial is two fresh processes of the interpreter that --python names (it needs torch and NumPy; the interpreter of this
script needs snnbench). One is a worker of the harness. The other is a loop that shares no code with it, imports only
torch and reads raw files. Both run the same case on the same weights and inputs. They take turns of half a second: a
signal stops one while the other runs. Disturbances by the rest of the machine so meet both alike. On a shared machine a
pass may take half as long again for half a minute; consecutive trials would compare those half minutes. A pass that a
turn's end interrupts is long on either side, and too rare to move a median.

Prints the ratio of the medians, harness to loop, of each trial. Exits with 1 if the median ratio is off by more than
2 %.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil

from benchmarks.basecase import CASE
from benchmarks.outcome import show
from snnbench.cases.case import Case
from snnbench.run.process import environment, run
from snnbench.worker.messages import Request
from snnbench.workloads.linear_lif import Problem

ADAPTER = Path(__file__).parent.parent / "adapters" / "torch-loop.py"
LARGEST_DIFFERENCE = 0.02
WARMUP_PASSES = 5
TURN_S = 0.5
TIMEOUT_S = 300.0

BY_HAND = """
import json
import sys
import time

import torch

settings, folder = json.loads(sys.argv[1]), sys.argv[2]
torch.set_num_threads(settings["threads"])
steps, batch, neurons = settings["time_steps"], settings["batch"], settings["neurons"]
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
print(json.dumps({"spikes": float(result[0].sum()), "threads": torch.get_num_threads()}), flush=True)
while True:
    start = time.perf_counter()
    result = train()
    end = time.perf_counter()
    print(json.dumps({"start": start, "end": end}), flush=True)
"""
"""Runs until it is killed. Its clock is the machine's monotonic clock, shared by all processes."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Milliseconds of a pass, timed by the harness and by hand, and the number of passes in each median."""

    harness_ms: float
    by_hand_ms: float
    passes: tuple[int, int]

    @property
    def ratio(self) -> float:
        """The ratio of harness to loop."""
        return self.harness_ms / self.by_hand_ms


def main() -> int:
    """Run the trials, compare, report."""
    options = arguments()
    case = CASE.with_(
        neurons=options.neurons, batch=options.batch, time_steps=options.time_steps, threads=options.threads
    )
    trials = []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        write(Problem(case), home)
        for number in range(options.trials):
            trials.append(result := trial(options.python, case, options.repetitions, home))
            print(f"trial {number + 1}: ratio {result.ratio:.4f}", file=sys.stderr, flush=True)
    return report(trials, options)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="interpreter with torch and NumPy")
    parser.add_argument("--trials", type=int, default=5, help="pairs of processes")
    parser.add_argument("--repetitions", type=int, default=300, help="passes that the harness times in each")
    parser.add_argument("--neurons", type=int, default=512)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--time-steps", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def write(problem: Problem, folder: Path) -> None:
    """Write the case's arrays as raw float32 files, for a reader with only torch."""
    ((weight, bias),) = problem.layers()
    arrays = {"weight": weight, "bias": bias, "input": problem.input(0), "cotangent": problem.cotangent(0)}
    for name, array in arrays.items():
        array.tofile(folder / name)


def trial(python: Path, case: Case, repetitions: int, home: Path) -> Trial:
    """A worker and a loop, taking turns until the worker has ended."""
    settings = {"warmup": WARMUP_PASSES} | {name: getattr(case, name) for name in case.names()}
    command = [str(python), "-c", BY_HAND, json.dumps(settings), str(home)]
    with tempfile.TemporaryFile() as output, ThreadPoolExecutor(1) as pool:
        loop = subprocess.Popen(command, stdout=output)
        try:
            harness = pool.submit(by_harness, python, case, repetitions, home)
            take_turns(loop, harness.done, lambda: wait([harness], TURN_S))
            ended_s = time.perf_counter()
            durations_ms = harness.result()
            if loop.poll() is not None:
                raise SystemExit(f"by hand: ended with status {loop.returncode}")
        finally:
            loop.kill()
            loop.wait()
        output.seek(0)
        lines = output.read().decode().splitlines(keepends=True)
    work, *passes = [json.loads(line) for line in lines if line.endswith("\n")]
    if work["threads"] != case.threads or not 0.01 < work["spikes"] / case.updates < 0.9:
        raise SystemExit(f"by hand: not the same work: {work}")
    began_s = ended_s - sum(durations_ms) / 1e3  # approximate: the worker's work after timing is short
    by_hand_ms = [1e3 * (one["end"] - one["start"]) for one in passes if one["start"] > began_s]
    return Trial(median(durations_ms), median(by_hand_ms), (len(durations_ms), len(by_hand_ms)))


def take_turns(loop: "subprocess.Popen[bytes]", done: Callable[[], bool], pause: Callable[[], object]) -> None:
    """Run the loop and this process's other children in turns, until `done`."""
    mine = True
    while not done():
        for child in psutil.Process().children():
            with suppress(psutil.NoSuchProcess):
                if (child.pid == loop.pid) == mine:
                    child.resume()
                else:
                    child.suspend()
        pause()
        mine = not mine


def by_harness(python: Path, case: Case, repetitions: int, home: Path) -> list[float]:
    """Milliseconds of a pass in each repetition of a worker."""
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
    if not (ending.reply and ending.reply.outcome and ending.reply.outcome.measured):
        raise SystemExit(f"worker: {ending.reply.outcome if ending.reply else ending.log}")
    train = ending.reply.phases["train"]
    return [duration_ns / train["passes"] / 1e6 for duration_ns in train["repetitions_ns"]]


def report(trials: list[Trial], options: argparse.Namespace) -> int:
    """Show every trial and the median ratio. Returns the exit status."""
    ratio = median(trial.ratio for trial in trials)
    agree = abs(ratio - 1) <= LARGEST_DIFFERENCE
    rows = [
        (
            str(number),
            f"{trial.harness_ms:.3f}",
            f"{trial.by_hand_ms:.3f}",
            f"{trial.ratio:.4f}",
            *map(str, trial.passes),
        )
        for number, trial in enumerate(trials, start=1)
    ]
    columns = ("trial", "harness ms", "by hand ms", "ratio", "passes of the harness", "passes by hand")
    title = f"A training pass of torch-loop, N={options.neurons}, B={options.batch}, T={options.time_steps}"
    show(title, columns, rows, [f"median ratio {ratio:.4f}: {'agree' if agree else 'differ'} within 2 %"])
    return 0 if agree else 1
