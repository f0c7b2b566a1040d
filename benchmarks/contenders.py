"""A comparison of every library with our yardstick: one process each, in its own environment, taking turns.

    python -m benchmarks contenders                        # the layer, N = 512 and 2048, profiles subtract and zero
    python -m benchmarks contenders --alone --neurons 512  # the workload lif: the neuron without the linear layer
    python -m benchmarks contenders --busy 0 1             # alone, and while another process keeps a core busy

Each process builds the network of a case through the library's adapter, has its answer checked against float64, and
then waits. In each round, in a new random order, every process does training passes for 20 ms, at least one, and then
times passes for as long, while the others wait at a pipe. After two rounds a contender leaves the case if it took more
than twice the yardstick's time in both. One process is the floor. It does only the case's matrix products, by the
faster of torch's libraries: two products, or three with the gradient of the input. With --alone it copies the bytes
that the neuron's training must move. Disturbances by the rest of the machine so meet all processes alike. A ratio is
the median over rounds of the ratios within a round. Exits with 1 if an exact contender that is not ours is faster than
the yardstick.
"""

import argparse
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from itertools import product
from statistics import median, quantiles

from benchmarks.basecase import CASE
from benchmarks.contender_parent import Process, Turn, every_process
from benchmarks.contender_process import FLOOR
from benchmarks.outcome import show as show_table
from snnbench.cases.case import PROFILES, Case
from snnbench.workloads import lif

BASE = "fused/cpu"
LONG = ["!*/compile", "!*/amp", "!*/defaults"]
"""Contenders left out by default: a compiler takes half an hour to unroll 500 steps, and the others do other work."""


FEWEST_ROUNDS, SLOW = 2, 2.0
"""After so many rounds, a contender that took so many times the yardstick's time in each has no more turns."""
AT_ONCE = 4
"""Processes that prepare a case side by side: a check of N = 2048 and T = 500 takes a gigabyte."""


@dataclass(frozen=True, slots=True)
class Compared:
    """All contenders of a case after their turns, and why others were refused."""

    work: Case
    turns: list[Turn]
    refused: list[str]
    busy: int = 0
    """Processes beside it that keep a core busy each."""

    def named(self, name: str) -> Turn:
        """The contender of this name."""
        return next(turn for turn in self.turns if turn.name == name)

    def ratio(self, turn: Turn, base: str) -> float:
        """The median over rounds of the ratio within a round."""
        return float(median(self.ratios(turn, base)))

    def ratios(self, turn: Turn, base: str) -> list[float]:
        """The ratios within each round that both took part in."""
        return [mine / other for mine, other in zip(turn.durations_ns, self.named(base).durations_ns, strict=False)]

    @property
    def processes(self) -> list[Process]:
        """The processes that take part."""
        return [turn.process for turn in self.turns]

    @property
    def racing(self) -> list[Turn]:
        """The turns of the next round: a contender that was always slow has left."""
        if len(self.turns[0].durations_ns) < FEWEST_ROUNDS:
            return self.turns
        return [turn for turn in self.turns if turn.name == FLOOR or min(self.ratios(turn, BASE)) <= SLOW]

    @property
    def fastest_other(self) -> Turn | None:
        """The fastest exact contender that is not ours."""
        ours = (FLOOR, BASE.split("/")[0])
        others = [turn for turn in self.turns if not turn.name.startswith(ours) and "deviates" not in turn.note]
        return min(others, key=lambda turn: self.ratio(turn, BASE), default=None)


def main() -> int:
    """Every size and profile in turn."""
    options = arguments()
    sizes = product(options.profiles, options.neurons, options.time_steps)
    processes = every_process(BASE, options.libraries, options.threads)
    try:
        compared = [each for size in sizes for each in compare(case(options, *size), processes, options)]
    finally:
        for process in processes:
            process.end()
    if options.brief:
        for busy in options.busy:
            show_brief([each for each in compared if each.busy == busy], options, busy)
    return 1 if any(each.fastest_other and each.ratio(each.fastest_other, BASE) < 1 for each in compared) else 0


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--neurons", type=int, nargs="+", default=[512, 2048])
    parser.add_argument("--profiles", nargs="+", default=["subtract", "zero"], choices=tuple(PROFILES))
    parser.add_argument("--libraries", nargs="+", default=["*", *LONG], help="patterns: norse, norse/box, !*/compile")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--time-steps", type=int, nargs="+", default=[500])
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=several, default=9)
    parser.add_argument("--input-gradient", action="store_true", help="ask for the input's gradient too")
    parser.add_argument("--alone", action="store_true", help="the neuron without the linear layer")
    parser.add_argument(
        "--busy", type=cores, nargs="+", default=[0], metavar="N", help="processes that keep N cores busy"
    )
    parser.add_argument("--brief", action="store_true", help="a single table, with a row for each case")
    return parser.parse_args()


def several(text: str) -> int:
    """A number of repetitions that has quartiles."""
    if (number := int(text)) < 2:
        raise argparse.ArgumentTypeError(f"{number}: expected 2 or more")
    return number


def cores(text: str) -> int:
    """A number of cores."""
    if (number := int(text)) < 0:
        raise argparse.ArgumentTypeError(f"{number}: expected 0 or more")
    return number


def case(options: argparse.Namespace, profile: str, neurons: int, time_steps: int) -> Case:
    """The work."""
    reset, detach_reset = PROFILES[profile]
    layer = CASE.with_(
        neurons=neurons,
        batch=options.batch,
        time_steps=time_steps,
        threads=options.threads,
        reset=reset,
        detach_reset=detach_reset,
        input_gradient=options.input_gradient,
    )
    if not options.alone:
        return layer
    return lif.Case(**{field.name: getattr(layer, field.name) for field in fields(lif.Case)})


def compare(work: Case, processes: list[Process], options: argparse.Namespace) -> list[Compared]:
    """Prepare all, and take turns beside each number of busy processes; print tables, unless one shows all cases."""
    prepared = prepare(work, processes)
    if missing := {FLOOR, BASE} - {turn.name for turn in prepared.turns}:
        raise SystemExit(f"no ratio without {' and '.join(sorted(missing))}: {'; '.join(prepared.refused)}")
    every: list[Compared] = []
    for busy in options.busy:
        every.append(
            compared := replace(prepared, turns=[Turn(turn.process, turn.note) for turn in prepared.turns], busy=busy)
        )
        take_turns(compared, options.rounds)
        prepared.turns[:] = [turn for turn in prepared.turns if turn.process in compared.processes]
        if options.brief:
            print(f"  {', '.join(brief(compared))}", file=sys.stderr, flush=True)  # an interruption loses no row
        else:
            show(compared, options)
    return every


def take_turns(compared: Compared, rounds: int) -> None:
    """Let all contenders pass in turns. One that fails leaves."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(compared.busy)]
    try:
        for number in range(rounds):
            racing = compared.racing
            for turn in random.Random(number).sample(racing, len(racing)):
                answer = turn.process.ask()
                if "ns" in answer:
                    turn.durations_ns.append(answer["ns"])
                elif turn.name in (FLOOR, BASE):
                    raise SystemExit(f"{turn.name}: {answer['problem']}")
                else:  # the system may be out of memory
                    compared.turns.remove(turn)
                    compared.refused.append(f"{turn.name}: {answer['problem']}")
    finally:
        for each in busy:
            each.kill()
            each.wait()


def prepare(work: Case, processes: list[Process]) -> Compared:
    """Every contender that does this work correctly, the yardstick before the others, ready for its turns."""
    print(f"{work.profile}, N={work.neurons}, T={work.time_steps}", file=sys.stderr)
    turns, refused = [], []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for process, answer in zip(processes, pool.map(lambda each: each.prepare(work), processes), strict=True):
            if problem := answer.get("problem"):
                refused.append(f"{process.name}: {problem}")
            else:
                turns.append(Turn(process, answer["note"]))
            print(f"  {process.name}: {problem or 'ready'}", file=sys.stderr)
    return Compared(work, turns, refused)


def show(compared: Compared, options: argparse.Namespace) -> None:
    """A table, the fastest first."""
    rows = []
    for turn in sorted(compared.turns, key=lambda turn: median(turn.durations_ns)):
        ms = [ns / 1e6 for ns in turn.durations_ns]
        low, _, high = quantiles(ms, n=4, method="inclusive")
        ratios = (f"{compared.ratio(turn, BASE):.2f}", f"{compared.ratio(turn, FLOOR):.3f}")
        rows.append((f"{turn.name}{turn.note}", f"{median(ms):.2f}", f"{low:.2f}-{high:.2f}", *ratios))
    work = compared.work
    columns = ("contender", "ms", "quartiles", f"ratio to {BASE}", "ratio to the floor")
    title = f"{work.profile}: N={work.neurons}, T={work.time_steps}"
    show_table(f"{described(options, compared.busy)}, {title}", columns, rows, compared.refused)


def show_brief(every: list[Compared], options: argparse.Namespace, busy: int) -> None:
    """A table with a row for each case; beside busy processes without the floor, whose threads wait for each other.

    The last table has the notes.
    """
    columns = ["case", f"{BASE} ms", "x floor", "fastest other", f"its ratio to {BASE}"]
    rows = [brief(compared) for compared in every]
    if busy:
        for each in (columns, *rows):
            del each[2]
    notes = sorted({line for each in every for line in each.refused}) if busy == options.busy[-1] else []
    show_table(described(options, busy), columns, rows, notes)


def brief(compared: Compared) -> list[str]:
    """The row of a case."""
    work, ours, other = compared.work, compared.named(BASE), compared.fastest_other
    times = f"{median(ours.durations_ns) / 1e6:.2f}", f"{compared.ratio(ours, FLOOR):.2f}"
    fastest = (other.name, f"{compared.ratio(other, BASE):.2f}") if other else ("-", "-")
    return [f"{work.profile}, N={work.neurons}, T={work.time_steps}", *times, *fastest]


def described(options: argparse.Namespace, busy: int) -> str:
    """The work and the machine's load."""
    work = f"{'neuron alone' if options.alone else 'layer'}, B={options.batch}, {options.threads} threads"
    beside = f", beside {busy} busy process{'es' * (busy > 1)}" * bool(busy)
    return f"{work}{beside}, {options.rounds} rounds"
