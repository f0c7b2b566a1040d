"""A simulation of how often `snnbench compare` and `snnbench rank` are wrong, and of what they find.

    python -m benchmarks errors [TESTS]

Prints three tables, each of TESTS (default 200) simulations a line and kind. The words come from snnbench's own
decision code. Of comparisons and rankings of the same work the tables count those that tell any two apart, and of a
cell or contender that takes 10 % longer how often this is found. The third table is about the bootstrap's interval.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from benchmarks.basecase import CASE
from benchmarks.outcome import show
from snnbench.analysis.bootstrap import bootstrap
from snnbench.analysis.comparisons import Comparison, Side, judged
from snnbench.analysis.decision import Thresholds
from snnbench.analysis.pairs import pairs, slower
from snnbench.worker.durations import summarise

Floats = NDArray[np.float64]
CHANGE = 1.1
"""The changed cell or contender takes so many times as long."""
NOISY = 0.2
"""The spread of a noisy cell."""
CONTENDERS, CASES = 8, 4
"""Of a ranking."""
REPETITIONS = 15


@dataclass(frozen=True, slots=True)
class World:
    """A simulated machine. `spread` is the standard deviation of the logarithm of a trial's time.

    If cells are `unlike`, their spreads are log-normal around `spread`. So many cells are `noisy`. If tails are
    `heavy`, logarithms follow Student's t with 3 degrees of freedom. A share `bursts` of the trials is slower by ten
    spreads.
    """

    about: str
    cells: int = 60
    trials: int = 5
    spread: float = 0.02
    unlike: float = 0.0
    noisy: int = 0
    heavy: bool = False
    bursts: float = 0.0

    def spreads(self, count: int, random: np.random.Generator) -> Floats:
        """The spread of each of `count` cells or contenders; the noisy ones come last."""
        spreads: Floats = self.spread * np.exp(random.normal(0, self.unlike, count))
        spreads[count - self.noisy :] = NOISY
        return spreads

    def times(self, spreads: Floats, random: np.random.Generator) -> Floats:
        """Times [cell, trial] around 1 ms, in nanoseconds."""
        shape = len(spreads), self.trials
        draws = random.standard_t(3, shape) / 3**0.5 if self.heavy else random.standard_normal(shape)
        slowed = np.log(1 + 10 * self.spread) * (random.random(shape) < self.bursts)
        times: Floats = 1e6 * np.exp(spreads[:, None] * draws + slowed)
        return times


EACH, UNLIKE = "2 % in every cell", "1.2 to 3.3 % (log-normal, one standard deviation)"
HEAVY, BURSTS = "2 %, heavy tails (Student's t with 3 degrees)", "2 %, one trial in 20 slower by ten times that"
COMPARED = (
    World(EACH),
    World(UNLIKE, unlike=0.5),
    World("1 %, but 20 % in 3 cells", spread=0.01, noisy=3),
    World(HEAVY, heavy=True),
    World(BURSTS, bursts=0.05),
    World(EACH, trials=4),
    World(EACH, trials=3),
    World(EACH, trials=2),
    World(UNLIKE, trials=2, unlike=0.5),
    World("2 %", cells=1),
    World(EACH, cells=1000),
)
RANKED = (
    World("2 %"),
    World(UNLIKE, unlike=0.5),
    World(HEAVY, heavy=True),
    World(BURSTS, bursts=0.05),
    World("2 %", trials=3),
    World("2 %", trials=2),
    World(UNLIKE, trials=2, unlike=0.5),
)
WITHIN = (0.005, 0.02, 0.08)
"""Spreads of the repetitions of a process, beside a spread of 2 % between processes."""


def side(times: Floats) -> Side:
    """The trials of a contender."""
    return Side(summarise(times.tolist()), [])


def compare(world: World, random: np.random.Generator, factor: float = 1.0) -> tuple[bool, float]:
    """One comparison: whether it reports any change, and whether it calls the first cell slower."""
    spreads = world.spreads(world.cells, random)
    base, new = world.times(spreads, random), world.times(spreads, random)
    new[0] *= factor
    sides = zip(map(side, base), map(side, new), strict=True)
    cells = [Comparison(CASE, str(number), "train", "time", *both) for number, both in enumerate(sides)]
    words = [cell.word for cell in judged(cells, Thresholds())]
    return bool({"slower", "faster"} & {*words}), float(words[0] == "slower")


def rank(world: World, random: np.random.Generator, factor: float = 1.0) -> tuple[bool, float]:
    """One ranking: whether it tells any two contenders apart, and in which share of its pairs the first is slower.

    The first contender takes `factor` times as long in the first case.
    """
    names = [str(number) for number in range(CONTENDERS)]
    fields = []
    for number in range(CASES):
        times = world.times(world.spreads(CONTENDERS, random), random)
        times[0] *= 1.0 if number else factor
        fields.append((CASE.with_(seed=number), "train", dict(zip(names, map(side, times), strict=True))))
    words = pairs(fields, names[0], Thresholds())
    apart = any(slower(each, *both) or slower(each, *both[::-1]) for each in words for both in combinations(names, 2))
    return apart, float(np.mean([slower(words[0], names[0], other) for other in names[1:]]))


def errors(kind: int, worlds: Sequence[World], count: int) -> list[tuple[World, str, str]]:
    """Each world with the share of tests of the same that report a change, and the share of changes found."""
    test = (compare, rank)[kind]
    rows = []
    for number, world in enumerate(worlds):
        same = [test(world, np.random.default_rng([kind, number, 0, run]))[0] for run in range(count)]
        changed = [test(world, np.random.default_rng([kind, number, 1, run]), CHANGE)[1] for run in range(count)]
        rows.append((world, f"{np.mean(same):.1%}", f"{np.mean(changed):.0%}"))
    return rows


def coverage(trials: int, within: float, count: int) -> float:
    """The share of bootstrap intervals that contain the true median."""
    random = np.random.default_rng([3, trials])
    processes = random.normal(0, 0.02, (count, trials, 1))
    times = np.exp(processes + random.normal(0, within, (count, trials, REPETITIONS)))
    intervals = bootstrap(times.tolist(), seed=0)
    return float(np.mean([interval.low <= 1 <= interval.high for interval in intervals]))


def main() -> int:
    """Simulate all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", nargs="?", type=int, default=200, metavar="TESTS")
    count: int = parser.parse_args().tests
    compared = [
        (each.about, f"{each.cells}", f"{each.trials}", *shares) for each, *shares in errors(0, COMPARED, count)
    ]
    columns: tuple[str, ...] = ("spread between trials", "cells", "trials a side", "same work called changed")
    show(f"{count} simulated comparisons for each line and column", (*columns, "10 % found"), compared)
    ranked = [(one.about, f"{one.trials}", *shares) for one, *shares in errors(1, RANKED, count)]
    columns = ("spread between trials", "trials", "same work told apart", "pairs of 10 % found")
    show(f"{count} simulated rankings for each line and column", columns, ranked)
    columns = ("trials", *(f"repetitions within {within:.1%}" for within in WITHIN))
    shares = [(f"{trials}", *(f"{coverage(trials, within, count):.0%}" for within in WITHIN)) for trials in (2, 3, 5)]
    show(f"Share of {count} bootstrap intervals of 95 % that contain the true median", columns, shares)
    return 0
