"""Movement: how much slower or faster the machine itself was in one of two recordings.

Two witnesses measure it. Probes are fixed work that each timing process does beside its own. Controls are contenders
with the same adapter file and the same packages in both recordings. If witnesses moved, the machine moved them. It may
have moved a contender by any amount between theirs, or somewhat beyond.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from statistics import fmean, median, stdev

from snnbench.cases.case import Case
from snnbench.measures.probes.levels import INTERPRETER, WORDS, levels
from snnbench.recording.reading import Recording
from snnbench.recording.record import Record

FEWEST_CONTROLS = 4
"""Fewest controls for a prediction interval."""

STILL_WITHIN = 0.01
"""A witness that moved by less counts as equally fast."""

Timed = tuple[Case, str, str]
"""(case, contender, phase)."""


@dataclass(frozen=True, slots=True)
class Explained:
    """The ratios that the movement of the machine explains: from `low` to `high`, most likely `middle`.

    `control` is the ratio of the baseline if it is a control, else the geometric mean of the controls. It is None if
    there are no controls.
    """

    low: float
    high: float
    middle: float
    control: float | None


@dataclass(frozen=True, slots=True)
class Movement:
    """How the machine moved from base to new: ratios of time by probe, and of the control over all cases.

    `explained` is by case of base, contender and phase; a time without probes and controls is not in it.
    """

    probes: Mapping[str, float]
    control: float | None
    explained: Mapping[Timed, Explained]

    def sentence(self) -> str:
        """How much the machine moved, in one line."""
        ratios = {WORDS[name]: ratio for name, ratio in self.probes.items()}
        ratios |= {"contenders that have not changed": self.control} if self.control else {}
        if not ratios:
            return "nothing tells whether the machine moved"
        groups: dict[str, dict[str, float]] = defaultdict(dict)
        for name, ratio in ratios.items():
            far = max(ratio, 1 / ratio)
            groups["still" if far <= 1 + STILL_WITHIN else "slower" if ratio > 1 else "faster"][name] = far
        parts = [_listed(word, groups[word]) for word in ("slower", "faster") if groups[word]]
        parts += [f"as fast for {', '.join(groups['still'])}"] if groups["still"] else []
        return f"in NEW the machine was {'; '.join(parts)}"


def _listed(word: str, times: Mapping[str, float]) -> str:
    (name, most), *others = sorted(times.items(), key=lambda item: -item[1])
    return ", ".join([f"{most:.2f} times {word} for {name}", *(f"{far:.2f} for {other}" for other, far in others)])


@dataclass(frozen=True, slots=True)
class Witnesses:
    """Ratios of the probes of each contender in a case, and the logarithms of ratios of the controls of a phase."""

    probes: Mapping[tuple[Case, str], Mapping[str, float]]
    controls: Mapping[tuple[Case, str], Mapping[str, float]]

    def beside(self, timed: Timed) -> tuple[list[float], dict[str, float]]:
        """The witnesses of one time, as logarithms: its probes, and the controls beside it."""
        case, name, phase = timed
        probes = [log(ratio) for ratio in self.probes.get((case, name), {}).values()]
        controls = self.controls.get((case, phase), {})
        return probes, {control: value for control, value in controls.items() if control != name}


def witnesses(base: Recording, new: Recording, cases: Mapping[Case, Case], ratios: Mapping[Timed, float]) -> Witnesses:
    """What tells of the machine between two recordings with these ratios of times; `cases` maps those of `base`."""
    olds, news = _timed(base.records), _timed(new.records)
    pairs = {
        (case, name): (olds[case, name], news[cases[case], name])
        for case, name in olds
        if case in cases and (cases[case], name) in news
    }
    unchanged = {pair for pair, (old, other) in pairs.items() if _packages(old, base) == _packages(other, new)}
    same = {pair for pair in unchanged if _adapters(pairs[pair][0]) == _adapters(pairs[pair][1])}
    moved = {pair: _moved(*pairs[pair], pair in unchanged) for pair in pairs}
    controls: dict[tuple[Case, str], dict[str, float]] = defaultdict(dict)
    for (case, name, phase), ratio in ratios.items():
        if (case, name) in same:
            controls[case, phase][name] = log(ratio)
    return Witnesses(moved, controls)


def movement(
    base: Recording, new: Recording, cases: Mapping[Case, Case], ratios: Mapping[Timed, float], alpha: float
) -> Movement:
    """How the machine moved between two recordings, and how much of these ratios of times that explains.

    `cases` maps cases of `base` to those of `new`. If nothing changed, at most a share `alpha` of comparisons should
    hold a ratio outside its explained range.
    """
    seen = witnesses(base, new, cases, ratios)
    baseline = new.baseline
    level = alpha / max(1, len(ratios))
    explained = {}
    for case, name, phase in ratios:
        probes, others = seen.beside((case, name, phase))
        if others or probes:
            explained[case, name, phase] = explain(probes, others, baseline, level)
    each_moved = seen.probes.values()
    kinds = {kind for each in each_moved for kind in each}
    probes_of = {kind: median([each[kind] for each in each_moved if kind in each]) for kind in WORDS if kind in kinds}
    means = [each.control for each in explained.values() if each.control]
    return Movement(probes_of, median(means) if means else None, explained)


def explain(probes: Sequence[float], controls: Mapping[str, float], baseline: str, level: float) -> Explained:
    """The range that one time may have moved by, from the logarithms of its probes and controls.

    The range covers a ratio of 1 and all witnesses, widened at either end by half of their range: work unlike the
    witnesses moves unlike them. With FEWEST_CONTROLS or more it also covers Student's prediction interval of another
    control.
    """
    known = [*probes, *controls.values()]
    spread = (max(known) - min(known)) / 2
    low, high = min(0.0, *known) - spread, max(0.0, *known) + spread
    values = list(controls.values())
    if len(values) >= FEWEST_CONTROLS:
        reach = _quantile(level, len(values) - 1) * stdev(values) * sqrt(1 + 1 / len(values))
        low, high = min(low, fmean(values) - reach), max(high, fmean(values) + reach)
    control = controls.get(baseline, fmean(values)) if values else None
    middle = median(values or probes)
    return Explained(exp(low), exp(high), exp(middle), None if control is None else exp(control))


def _quantile(level: float, freedom: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 1 - level / 2))


def _timed(records: Iterable[Record]) -> dict[tuple[Case, str], list[Record]]:
    """The records of measured times, by case and contender."""
    grouped: dict[tuple[Case, str], list[Record]] = defaultdict(list)
    for record in records:
        if record.phases:
            grouped[record.case, record.label].append(record)
    return grouped


def _moved(old: Sequence[Record], new: Sequence[Record], same_packages: bool) -> dict[str, float]:
    """New over base of each probe that is the same work: if packages changed, a framework's calls are other work."""
    python = {one.settings.get("python") for one in (*old, *new)}
    before, after = ([levels(one.probes) for one in side] for side in (old, new))
    kinds = [kind for kind in WORDS if all(kind in each for each in (*before, *after))]
    comparable = [kind for kind in kinds if same_packages or (kind == INTERPRETER and len(python) == 1)]
    return {
        kind: exp(median(each[kind] for each in after) - median(each[kind] for each in before)) for kind in comparable
    }


def _packages(records: Sequence[Record], recording: Recording) -> set[tuple[tuple[str, str], ...]]:
    """The versions that these records ran with; if they are not recorded, the environment's key."""
    return {
        tuple(sorted(recording.environments.get(one.environment, {one.environment: str(one.version)}).items()))
        for one in records
    }


def _adapters(records: Sequence[Record]) -> set[str]:
    return {one.adapter for one in records}
