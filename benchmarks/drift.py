"""A simulation of how often `snnbench ab` is wrong, and of its power, on a machine that drifts.

    python -m benchmarks drift [TESTS]

Simulates A/B tests with at most 12 trials a side, by default of 15 works with 4 phases each (60 cells). Prints a line
for each kind of drift. Of TESTS (default 200) tests of the same code against itself it counts the tests that say
`slower` or `faster` of any cell, the cells called the same, and the trials. Of a work that takes 10 % longer it counts
the phases in which this is found. The words come from snnbench's own decision code.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.basecase import CASE
from benchmarks.outcome import show
from snnbench.analysis.abtest import decided, pair_by_pair
from snnbench.analysis.comparisons import Comparison, Side, judged
from snnbench.analysis.decision import Thresholds
from snnbench.analysis.looks import Look, looks
from snnbench.plan.cell import turns
from snnbench.plan.side import SIDES
from snnbench.worker.durations import summarise

PHASES, MOST = ("train", "forward", "backward", "inference"), 12


@dataclass(frozen=True, slots=True)
class World:
    """A simulated machine that drifts, and its `works` with four phases each.

    `spread` is the standard deviation of the logarithm of a process's time. `common` is the share of its variance that
    all phases of the process share. If works are `unlike`, their spreads are log-normal around `spread`.
    """

    about: str
    drift: str = ""
    works: int = 15
    spread: float = 0.03
    common: float = 0.5
    unlike: float = 0.0


WORLDS = (
    World("none"),
    World("a step to 2 times as long, once in the middle third", "step"),
    World("a ramp to 2 times as long", "ramp"),
    World("a clock with two rates, 1.4 times apart, that changes every 25 processes or so", "clock"),
    World("bursts of some 5 processes, 1.2 to 2 times as long, every 20 or so", "bursts"),
    World("none; 1 work, a spread of 10 %, nine tenths of it common to phases", works=1, spread=0.1, common=0.9),
    World("none; 3 works, spreads of 5 % times or by 2", works=3, spread=0.05, common=0.7, unlike=0.7),
    World("none; 15 works, spreads of 5 % times or by 2", spread=0.05, common=0.7, unlike=0.7),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one test: false words, share of changed cells found, share of cells called the same, trials."""

    false_words: int
    detected: float
    same: float
    trials: float


def slowdowns(kind: str, count: int, random: np.random.Generator) -> NDArray[np.float64]:
    """The slowdown factor of each of `count` processes, in run order."""
    factors = np.ones(count)
    if kind == "step":
        factors[int(count * random.uniform(1 / 3, 2 / 3)) :] = 2.0
    elif kind == "ramp":
        factors = np.linspace(1.0, 2.0, count)
    elif kind == "clock":
        begin, slow = 0, False
        while begin < count:
            length = 1 + int(random.exponential(25))
            factors[begin : begin + length] = 1.4 if slow else 1.0
            begin, slow = begin + length, not slow
    elif kind == "bursts":
        begin = int(random.exponential(20))
        while begin < count:
            length = 1 + int(random.exponential(5))
            factors[begin : begin + length] = random.uniform(1.2, 2.0)
            begin += length + int(random.exponential(20))
    return factors


def times(world: World, random: np.random.Generator, factor: float) -> NDArray[np.float64]:
    """Times by [side, work, phase, trial]; the first work takes `factor` as long on the new side."""
    machine = slowdowns(world.drift, MOST * world.works * 2, random)
    spreads = world.spread * np.exp(random.normal(0, world.unlike, world.works))
    seed = random.integers(1 << 32)
    measured = np.empty((2, world.works, len(PHASES), MOST))
    index = 0
    for trial in range(MOST):
        for work in random.permutation(world.works):
            for name in turns(SIDES, f"{seed} {work}", trial):
                side = SIDES.index(name)
                common = random.normal(0, spreads[work] * world.common**0.5)
                own = random.normal(0, spreads[work] * (1 - world.common) ** 0.5, len(PHASES))
                change = factor if side and not work else 1.0
                measured[side, work, :, trial] = 1e6 * machine[index] * change * np.exp(common + own)
                index += 1
    return measured


def test(world: World, random: np.random.Generator, factor: float = 1.0) -> Outcome:
    """One simulated A/B test."""
    measured = times(world, random, factor)
    thresholds, case = Thresholds(), CASE.with_(seed=0)

    def at(look: Look) -> list[Comparison]:
        cells = []
        for work in range(world.works):
            for number, phase in enumerate(PHASES):
                trials = measured[:, work, number, : look.trials].tolist()
                base, new = (Side(summarise(each), []) for each in trials)
                cells.append(Comparison(case, str(work), phase, "time", base, new))
        return judged(cells, replace(thresholds, alpha=look.alpha), differ=pair_by_pair)

    return outcome(decided(at, looks(MOST, thresholds.alpha)), factor)


def outcome(cells: Sequence[Comparison], factor: float) -> Outcome:
    """The outcome that a test's words give."""
    changed = [cell for cell in cells if factor != 1 and cell.contender == "0"]
    others = [cell for cell in cells if cell not in changed]
    trials: dict[str, int] = {}
    for cell in cells:
        count = cell.new.summary.count if cell.new else 0
        trials[cell.contender] = max(count if cell.word != "inconclusive" else MOST, trials.get(cell.contender, 0))
    return Outcome(
        false_words=sum(cell.word in ("slower", "faster") for cell in others),
        detected=float(np.mean([cell.word == "slower" for cell in changed])) if changed else 0.0,
        same=float(np.mean([cell.word == "same" for cell in others])) if others else 0.0,
        trials=float(np.mean(list(trials.values()))),
    )


def main() -> int:
    """Simulate every world."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", nargs="?", type=int, default=200, metavar="TESTS")
    count, rows = parser.parse_args().tests, []
    for number, world in enumerate(WORLDS):
        same = [test(world, np.random.default_rng([number, 0, run])) for run in range(count)]
        changed = [test(world, np.random.default_rng([number, 1, run]), 1.1) for run in range(count)]
        wrong, alike, trials = (
            np.mean(values)
            for values in zip(*((one.false_words > 0, one.same, one.trials) for one in same), strict=True)
        )
        power = np.mean([outcome.detected for outcome in changed])
        rows.append((world.about, f"{wrong:.1%}", f"{alike:.0%}", f"{trials:.1f}", f"{power:.0%}"))
    columns = ("drift", "tests of the same that report any change", "called the same", "trials", "10 % found")
    show(f"{count} simulated A/B tests for each drift", columns, rows)
    return 0
