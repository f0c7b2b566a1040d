"""A comparison of every library with our yardstick: one process each, in its own environment, taking turns.

    python benchmarks/contenders.py                        # the layer, N = 512 and 2048, profiles subtract and zero
    python benchmarks/contenders.py --alone --neurons 512  # the neuron without the linear layer, PyTorch only

Each process builds its network through the library's adapter, has its answer checked against float64, and then waits.
In each round, in a new random order, every process does two training passes and times the second, while the others wait
at a pipe. One process is the floor. It does only the case's matrix products into existing arrays: two, or three with
the gradient of the input. With --alone it copies the bytes that the neuron's training must move. Disturbances by the
rest of the machine so meet all processes alike. A ratio is the median over rounds of the ratios within a round. Exits
with 1 if an exact contender that is not ours is faster than the yardstick.

With --alone an adapter's linear layer passes its input through, times the gain that the adapter asks for. An adapter
that insists on its own product gets the identity matrix. That is more work, and the table names it.

This file is long: it starts the worker processes of all contenders by itself, beside the harness.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from snnbench.adapter import contender, loading, reading
from snnbench.adapter.refusal import Unsupported
from snnbench.files import home
from snnbench.workloads.case import PROFILES, Case

BASE = "fused/cpu"
FLOOR = "floor"
SCALE = 0.6
"""Standard deviation of the currents with --alone: about 14 % of neuron-steps fire."""
LONG = ["!*/compile", "!*/amp", "!*/defaults"]
"""Contenders left out by default: a compiler takes half an hour to unroll 500 steps, and the others do other work."""
DIFFERENT = 1e-6
GRADIENT = 5e-6


@dataclass(slots=True)
class Turn:
    """A contender's process, and the nanoseconds of its pass in each round."""

    name: str
    process: "subprocess.Popen[str]"
    durations_ns: list[int] = field(default_factory=list)
    note: str = ""

    def answer(self) -> Any:
        """The next line of its output, or the reason for its end."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"problem": f"ended with status {self.process.wait()}"}

    def ask(self) -> Any:
        """Make it do one pass."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.answer()


def main() -> int:
    """Every size and profile in turn; or, in a contender's environment, the contender itself."""
    options = arguments()
    if options.serve:
        return serve(json.loads(options.serve))
    slower = False
    for neurons in options.neurons:
        for profile in options.profiles:
            slower = compare(case(options, neurons, profile), options) or slower
    return 1 if slower else 0


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--neurons", type=int, nargs="+", default=[512, 2048])
    parser.add_argument("--profiles", nargs="+", default=["subtract", "zero"], choices=tuple(PROFILES))
    parser.add_argument("--libraries", nargs="+", default=["*", *LONG], help="patterns: norse, norse/box, !*/compile")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--time-steps", type=int, default=500)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=several, default=9)
    parser.add_argument("--input-gradient", action="store_true", help="ask for the input's gradient too")
    parser.add_argument("--alone", action="store_true", help="the neuron without the linear layer")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    return parser.parse_args()


def several(text: str) -> int:
    """A number of repetitions that has quartiles."""
    if (number := int(text)) < 2:
        raise argparse.ArgumentTypeError(f"{number}: expected 2 or more")
    return number


def case(options: argparse.Namespace, neurons: int, profile: str) -> Case:
    """The work."""
    from basecase import CASE  # not at the top: a contender's process has only snnbench on its path

    reset, detach_reset = PROFILES[profile]
    return CASE.with_(
        neurons=neurons,
        batch=options.batch,
        time_steps=options.time_steps,
        threads=options.threads,
        reset=reset,
        detach_reset=detach_reset,
        input_gradient=options.input_gradient or options.alone,
    )


def compare(work: Case, options: argparse.Namespace) -> bool:
    """Start all, take turns, print the table. Returns whether an exact contender beat the yardstick."""
    turns, refused = start(work, options)
    if missing := {FLOOR, BASE} - {turn.name for turn in turns}:
        raise SystemExit(f"no ratio without {' and '.join(sorted(missing))}: {'; '.join(refused)}")
    try:
        for number in range(options.rounds):
            random.Random(number).shuffle(turns)
            for turn in turns:
                answer = turn.ask()
                if "ns" not in answer:
                    raise SystemExit(f"{turn.name}: {answer['problem']}")
                turn.durations_ns.append(answer["ns"])
    finally:
        for turn in turns:
            turn.process.kill()
            turn.process.wait()
    return show(work, turns, refused, options)


def start(work: Case, options: argparse.Namespace) -> tuple[list[Turn], list[str]]:
    """A process for every contender that does this work correctly, started one after the other."""
    from snnbench.adapter.discovery import discover
    from snnbench.environments import store
    from snnbench.run import process

    known = discover()
    wanted, wrong = contender.find_all([full(pattern) for pattern in options.libraries], known)
    if wrong:
        raise SystemExit(str(wrong[0]))
    pairs = dict.fromkeys([contender.find(BASE, known)[0], *wanted])
    turns, refused = [], []
    for library, variant in [("", FLOOR), *pairs]:
        adapter = known[library or BASE.split("/")[0]]
        if (
            options.alone
            and library
            and (adapter.variants[variant].backend != "torch" or adapter.variants[variant].way)
        ):
            continue
        if library and "cpu" not in adapter.variants[variant].devices:
            continue
        planned = store.plan(adapter, variant if library else adapter.default, cuda=False)
        python = store.sync(planned, lambda line: None).python
        name = contender.label(library, variant) if library else FLOOR
        request = {"path": str(adapter.path), "variant": variant, "case": asdict(work), "alone": options.alone}
        env = process.environment(work.threads, home())
        command = [str(python), "-P", __file__, "--serve", json.dumps(request)]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        turn = Turn(name, subprocess.Popen(command, env=env, text=True, **pipes))
        ready = turn.answer()
        if problem := ready.get("problem"):
            turn.process.wait()
            refused.append(f"{name}: {problem}")
        else:
            turn.note = ready["note"]
            turns.append(turn)
        print(f"  {name}: {problem or 'ready'}", file=sys.stderr)
    return turns, refused


def full(pattern: str) -> str:
    """A pattern of all variants if only a library is named."""
    return pattern if "/" in pattern else f"{pattern}/*"


def show(work: Case, turns: list[Turn], refused: list[str], options: argparse.Namespace) -> bool:
    """A Markdown table, the fastest first."""
    by_name = {turn.name: turn.durations_ns for turn in turns}

    def ratio(turn: Turn, base: str) -> float:
        return median(mine / other for mine, other in zip(turn.durations_ns, by_name[base], strict=True))

    what = f"{'neuron alone' if options.alone else 'layer'}, {work.profile}"
    print(f"### {what}: N={work.neurons}, B={work.batch}, T={work.time_steps}, {work.threads} threads\n")
    print(f"| contender | ms | quartiles | ratio to {BASE} | ratio to the floor |\n| --- | ---: | ---: | ---: | ---: |")
    for turn in sorted(turns, key=lambda turn: median(turn.durations_ns)):
        ms = [ns / 1e6 for ns in turn.durations_ns]
        low, _, high = quantiles(ms, n=4, method="inclusive")
        numbers = f"{median(ms):.2f} | {low:.2f}-{high:.2f} | {ratio(turn, BASE):.2f} | {ratio(turn, FLOOR):.3f}"
        print(f"| {turn.name}{turn.note} | {numbers} |")
    print(f"\n{options.rounds} rounds.")
    print("".join(f"- {line}\n" for line in refused), flush=True)
    ours = (FLOOR, BASE.split("/")[0])
    others = [turn for turn in turns if not turn.name.startswith(ours) and "deviates" not in turn.note]
    return any(ratio(turn, BASE) < 1 for turn in others)


def serve(request: dict[str, Any]) -> int:
    """Serve as a contender: build, check, then do one timed training pass for every input line."""
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
    from snnbench.workloads.problem import Problem

    path, variant = Path(request["path"]), request["variant"]
    declared = reading.read(path).variants[variant]
    if refusal := declared.refusal(work):
        raise Unsupported(refusal)
    module = loading.load(path)
    backend = open_backend(declared.backend, work, module)
    if request["alone"]:
        return neuron(work, module, variant, Layout(declared.order, declared.latency))
    session = backend.session(loading.builder(module), declared, Problem(work))
    note = check(session, declared.deviation, work)
    return session.train, session.synchronise, note


def check(session: Any, deviation: str | None, work: Case) -> str:
    """Run the harness's own spot check. Returns the deviation as a note."""
    from snnbench.proof.spotcheck import SpotCheck
    from snnbench.workloads.problem import Problem

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
    from snnbench.workloads import reference

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
