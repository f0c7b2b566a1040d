"""A race: trials of the contenders of a case until the leader is certain. Looks at times after some of the trials.

Trials with the same number ran one after the other, so a drift of the machine moves them alike. So a contender is
compared with the leader by the logarithms of the ratios of trials with the same number, k of them after k trials:

    mean +- t S / sqrt(k)      S^2 = (d1 s1^2 + sum of squares) / (d1 + k - 1), t with d1 + k - 1 degrees of freedom

s1^2 is the variance of all contenders of the look, beside DEGREES of earlier recordings with the spread SPREAD. Each
look has a share of ALPHA, divided by the number of the other contenders, so that the fastest contender is seldom called
slower than another. One trial shows no spread, so it decides only beyond FACTOR. `python -m benchmarks race`
computes these numbers from the recordings under results/, and simulates how often a race is wrong.
"""

import random
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from statistics import fmean

from snnbench.adapter.contender import Work, label
from snnbench.analysis.results import PHASES
from snnbench.cases.case import Case
from snnbench.plan.cell import Cell
from snnbench.plan.config import Protocol
from snnbench.recording.record import Record, repeated
from snnbench.worker.durations import median_ns
from snnbench.worker.messages import Measure

Times = Mapping[str, Sequence[float]]
"""Contender -> nanoseconds of a pass, trial by trial."""

ALPHA = 0.1
"""How often all looks of a race may be wrong, if times had no bursts; with bursts it is simulated, and less."""
LOOKS = (1, 2, 4, 8, 12)
"""The numbers of trials after which a race looks."""
FACTOR = 3.0
"""After one trial a contender is surely slower if it takes so many times as long as the leader. Of the ratios of one
trial under results/, 1 in 5,000 is so far from the median of the other trials."""
LEVEL = 1.05
"""Contenders within this factor of each other are level: the difference does not matter."""
SPREAD, DEGREES = 0.1, 2.2
"""The spread of ratios in the recordings under results/, and its weight in degrees of freedom."""
COMMON_DEGREES = 4.0
"""d1: the weight of the common variance beside a contender's own."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A race after so many `trials` of its leader.

    `slower` maps contenders that are surely slower than a leader to the factor that is certain; they need no more
    trials. Those in `level` are surely within LEVEL of the leader. Of those in `unknown` neither is certain.
    """

    leader: str
    trials: int
    slower: dict[str, float]
    level: tuple[str, ...]
    unknown: tuple[str, ...]

    @property
    def is_certain(self) -> bool:
        """Whether more trials would change nothing."""
        return not self.unknown

    @property
    def running(self) -> tuple[str, ...]:
        """The contenders that are not surely slower, the leader first."""
        return (self.leader, *self.level, *self.unknown)


def standing(times: Times) -> Standing | None:
    """The standing after the last look that the trials allow; None without a time.

    A look needs its trials of every contender that is not slower, so a round that was cut short makes nobody certain.
    """
    running = [name for name, trials in times.items() if trials]
    slower: dict[str, float] = {}
    present = None
    for count in LOOKS:
        if not running or any(len(times[name]) < count for name in running):
            break
        logs = {name: [log(ns) for ns in times[name][:count]] for name in running}
        leader = min(logs, key=lambda name: fmean(logs[name]))
        ratios = {
            name: [one - other for one, other in zip(trials, logs[leader], strict=True)]
            for name, trials in logs.items()
            if name != leader
        }
        bounds = dict(zip(ratios, bounds_of(list(ratios.values()), len(times)), strict=True))
        slower |= {name: exp(low) for name, (low, _) in bounds.items() if low > 0}
        running = [name for name in logs if name not in slower]
        level = tuple(name for name in bounds if name in running and max(map(abs, bounds[name])) < log(LEVEL))
        unknown = tuple(name for name in bounds if name in running and name not in level)
        present = Standing(leader, count, dict(slower), level, unknown)
        if present.is_certain:
            break
    return present


def bounds_of(ratios: Sequence[Sequence[float]], contenders: int) -> list[tuple[float, float]]:
    """(lowest, highest) of each mean logarithm of ratios to the leader, at a look of a race of so many contenders.

    All have the same number of trials.
    """
    from scipy.special import stdtrit

    if not ratios:
        return []
    count, middles = len(ratios[0]), [fmean(each) for each in ratios]
    if count == 1:
        return [(middle - log(FACTOR), middle + log(FACTOR)) for middle in middles]
    squares = [sum((one - middle) ** 2 for one in each) for each, middle in zip(ratios, middles, strict=True)]
    common = (DEGREES * SPREAD**2 + sum(squares)) / (DEGREES + len(ratios) * (count - 1))
    degrees = COMMON_DEGREES + count - 1
    quantile = float(stdtrit(degrees, 1 - ALPHA / (len(LOOKS) - 1) / max(1, contenders - 1)))
    reaches = [quantile * sqrt((COMMON_DEGREES * common + own) / degrees / count) for own in squares]
    return [(middle - reach, middle + reach) for middle, reach in zip(middles, reaches, strict=True)]


def headline(protocol: Protocol) -> str:
    """The phase of a race: the most interesting one of the protocol."""
    return next(phase for phase in PHASES if phase in protocol.phases)


def standings(records: Iterable[Record], phase: str) -> dict[Case, Standing]:
    """The standing of each case, by the contenders whose trials all did its work: the exact ones, if there are any."""
    records = [one for one in records if one.measure == "time" and not repeated(one.outcome)]
    excluded = {(one.case, one.label) for one in records if not one.outcome.is_same_work}
    with_exact = {one.case for one in records if one.outcome.verdict == "exact"}
    times: dict[Case, dict[str, list[float]]] = {}
    for one in sorted(records, key=lambda one: one.trial):
        is_best = one.outcome.verdict == "exact" or one.case not in with_exact
        if is_best and phase in one.phases and (one.case, one.label) not in excluded:
            times.setdefault(one.case, {}).setdefault(one.label, []).append(median_ns(one.phases[phase]))
    each = {case: standing(of_case) for case, of_case in times.items()}
    return {case: present for case, present in each.items() if present}


def due(works: Sequence[Work], records: Collection[Record], protocol: Protocol) -> list[Cell]:
    """The cells that a race needs next; none if it is over.

    First a trial of every contender, each case's first one before any case's second one, because a config names the
    fastest first. Then the trials up to the next look of those that may lead, in a random order within a trial. When
    all races are over, one more trial of those has all phases, and their memory is measured.
    """
    there = {name(one) for one in records if not repeated(one.outcome)}
    phase = headline(protocol)

    def missing(cells: Iterable[Cell]) -> list[Cell]:
        return [cell for cell in cells if name(cell) not in there]

    if first := missing(_cell(work, 0, phases=(phase,)) for work in _in_turns(works)):
        return first
    rounds: list[Cell] = []
    last: list[Cell] = []
    by_case = standings(records, phase)
    for case, race in by_case.items():
        runners = [work for work in works if work.case == case and label(work.library, work.variant) in race.running]
        looks = [count for count in LOOKS if race.trials < count <= protocol.trials]
        if looks and not race.is_certain:
            rounds += [_cell(work, n, phases=(phase,)) for n in range(race.trials, looks[0]) for work in runners]
        else:
            last += [_cell(work, race.trials) for work in runners if protocol.phases != (phase,)]
            last += [_cell(work, n, "memory") for n in range(protocol.memory_trials) for work in runners]
    random.Random(f"{protocol.seed} {len(there)}").shuffle(rounds)
    return missing(sorted(rounds, key=lambda cell: cell.trial)) or missing(last)


def _cell(work: Work, trial: int, measure: Measure = "time", phases: tuple[str, ...] = ()) -> Cell:
    return Cell(work.case, work.library, work.variant, trial, measure, phases=phases)


def name(one: Cell | Record) -> tuple[Case, str, str, str, int]:
    """What tells a cell of a race from the others."""
    return one.case, one.library, one.variant, one.measure, one.trial


def _in_turns(works: Sequence[Work]) -> list[Work]:
    """The works: the first of each case, then the second of each, and so on."""
    places: dict[Case, int] = defaultdict(int)
    place_of = {}
    for work in works:
        place_of[work] = places[work.case]
        places[work.case] += 1
    return sorted(works, key=place_of.__getitem__)
