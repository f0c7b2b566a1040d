"""A simulation of how often `snnbench run --until certain` names a wrong leader, and of the trials that it takes.

    python -m benchmarks race 1000

The first table has races of made-up contenders, whose times are multiples of the fastest one's. A trial varies by the
spread of its contender and, but on a quiet machine, is sometimes far too slow. On a machine that drifts, its speed also
jumps by 1.8 and wanders. The second table has races whose trials are drawn from the recordings under results/, round
by round, with the mean of all rounds as the truth. The third table has the spread of such ratios of trials.

A race is *wrong* if the fastest contender is not among the leaders that it names, and *certain* if it ends before
everyone has all trials.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.outcome import show
from snnbench.analysis import race
from snnbench.analysis.difference import moderate
from snnbench.analysis.results import headline
from snnbench.recording import reading
from snnbench.worker.durations import median_ns

Floats = NDArray[np.float64]
RESULTS = Path(__file__).parent.parent / "results"
MOST = race.LOOKS[-1]
FIELDS = {
    "8 equal ones": (1.0,) * 8,
    "6 within 2 %": (1, 1.02, 1.02, 1.02, 1.02, 1.02, 9, 9),
    "two within 2 %": (1, 1.02, 5, 9),
    "steps of 3 %": (1, 1.03, 1.06, 1.1, 1.5, 3, 8, 10),
    "next 10 % behind": (1, 1.1, 1.5, 2, 3, 3, 8, 10),
    "next 20 % behind": (1, 1.2, 2, 4),
    "next 40 % behind": (1, 1.4, 1.5, 2, 3, 5, 8, 10),
}
MACHINES = ("quiet", "noisy", "drifting")
QUIET, NOISY = 0.02, 0.06
"""Spreads between trials. A noisy contender's own differs from NOISY as chi-square with 3 degrees of freedom does."""
BURSTS, BURST = 0.03, (0.2, 1.2)
"""The share of trials that take longer, and by how much, as logarithms."""
JUMPS, JUMP, WANDER = 0.02, float(np.log(1.8)), 0.01
"""How often the machine's speed jumps between two trials, by how much, and how far it wanders."""


def world(factors: Sequence[float], machine: str, random: np.random.Generator) -> Floats:
    """The logarithms of the times [trial, contender]. The contenders of a trial run in a random order."""
    count = len(factors)
    spreads = np.full(count, QUIET) if machine == "quiet" else NOISY * np.sqrt(3 / random.chisquare(3, count))
    times = np.log(factors) + random.normal(0, spreads, (MOST, count))
    if machine != "quiet":
        times += (random.random(times.shape) < BURSTS) * random.uniform(*BURST, times.shape)
    if machine == "drifting":
        jumped = np.cumsum(random.random(MOST * count) < JUMPS) % 2 * JUMP
        speed = (jumped + np.cumsum(random.normal(0, WANDER, MOST * count))).reshape(MOST, count)
        times += np.stack([row[random.permutation(count)] for row in speed])
    return times


def run(times: Floats) -> tuple[race.Standing, int]:
    """The end of a race through these logarithms of times [trial, contender], and its trials."""
    names = [str(number) for number in range(times.shape[1])]
    counts = dict.fromkeys(names, 1)
    while True:
        present = race.standing({name: np.exp(times[: counts[name], int(name)]).tolist() for name in names})
        assert present is not None
        further = [look for look in race.LOOKS if look > present.trials]
        if present.is_certain or not further:
            return present, sum(counts.values())
        counts |= dict.fromkeys(present.running, further[0])


def row(draw: Callable[[int], Floats], best: set[int], count: int) -> tuple[str, ...]:
    """The shares of wrong, certain and level ends of so many races, and their trials beside those of a fixed design."""
    ends = [run(draw(number)) for number in range(count)]
    wrong = np.mean([not best & {int(name) for name in end.running} for end, _ in ends])
    single = np.mean([end.is_certain and not end.level for end, _ in ends])
    level = np.mean([end.is_certain and bool(end.level) for end, _ in ends])
    trials = [spent for _, spent in ends]
    fixed = MOST * draw(0).shape[1]
    return f"{wrong:.1%}", f"{single:.0%}", f"{level:.0%}", f"{np.median(trials):.0f} of {fixed}"


def recorded() -> Iterator[tuple[str, list[Floats]]]:
    """The logarithms of times [trial, contender] of each case of the recordings with several trials."""
    for folder in sorted(path for path in RESULTS.iterdir() if (path / reading.RECORDS).is_file()):
        records = [one for one in reading.read(folder).records if one.outcome.is_same_work and one.phases]
        phases = headline(records)
        cases: dict[object, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
        for one in records:
            if phases and phases[0] in one.phases:
                cases[one.case][one.label][one.trial] = float(np.log(median_ns(one.phases[phases[0]])))
        tables = []
        for contenders in cases.values():
            whole = sorted(set.intersection(*(set(trials) for trials in contenders.values())))
            if len(whole) > 1 and len(contenders) > 1:
                tables.append(np.array([[trials[n] for trials in contenders.values()] for n in whole]))
        if tables:
            yield folder.name, tables


def main() -> int:
    """Simulate all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("races", nargs="?", type=int, default=100, metavar="RACES")
    count: int = parser.parse_args().races
    columns = ("wrong", "one leader", "level leaders", "trials, of a fixed design")
    rows = []
    for name, factors in FIELDS.items():
        best = {number for number, factor in enumerate(factors) if factor == min(factors)}
        for number, machine in enumerate(MACHINES):

            def draw(seed: int, factors: Sequence[float] = factors, kind: int = number) -> Floats:
                return world(factors, MACHINES[kind], np.random.default_rng([len(factors), kind, seed]))

            rows.append((f"{name}, {machine}", *row(draw, best, count)))
    show(f"{count} races of made-up contenders for each line", ("contenders, machine", *columns), rows)

    every, rows = list(recorded()), []
    for name, tables in every:
        shares = []
        for table in tables:
            best = {int(table.mean(0).argmin())}

            def drawn(seed: int, table: Floats = table) -> Floats:
                return table[np.random.default_rng([7, seed]).integers(0, len(table), MOST)]

            shares.append(
                [not best & set(map(int, run(drawn(seed))[0].running)) for seed in range(max(1, count // 10))]
            )
        rows.append((name, f"{len(tables)}", f"{np.mean([np.mean(share) for share in shares]):.1%}"))
    show(f"{max(1, count // 10)} races for each case of a recording", ("recording", "cases", "wrong"), rows)

    ratios = [
        table[:, a] - table[:, b]
        for _, each in every
        for table in each
        for a, b in combinations(range(table.shape[1]), 2)
    ]
    variances, degrees = np.array([one.var(ddof=1) for one in ratios]), np.array([len(one) - 1.0 for one in ratios])
    known = variances > 0
    _, prior_degrees, _ = moderate(variances[known], degrees[known])
    apart = np.array([abs(one[n] - np.median(np.delete(one, n))) for one in ratios for n in range(len(one))])
    beyond = [
        (f"beyond {factor:g}", f"{np.mean(apart > np.log(factor)):.3%}") for factor in (1.5, 2.0, 2.5, race.FACTOR)
    ]
    spread = [("spread", f"{np.sqrt(np.median(variances)):.3g}"), ("degrees of freedom", f"{prior_degrees:.3g}")]
    show(f"{len(apart)} ratios of one trial to the median of the others", ("", "value"), [*spread, *beyond])
    return 0
