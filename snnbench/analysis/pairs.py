"""Pairs: every contender of a case against every other, by the same test as `compare`.

All tests of a command are one family: their variances are moderated together, and their p are adjusted together. So a
word against a baseline and a rank never contradict each other.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

from snnbench.analysis.comparisons import CONTENDED, Comparison, Side, judged
from snnbench.analysis.decision import Thresholds
from snnbench.analysis.results import Result
from snnbench.cases.case import Case

Field = tuple[Case, str, Mapping[str, Side]]
"""(case, phase, the times or energies of each contender)."""
Pairs = dict[tuple[str, str], Comparison]
"""(base, new), two contenders -> their comparison, new over base."""


def side_of(result: Result, phase: str, metric: str = "time", allowed: Collection[str] = ()) -> Side:
    """The numbers of a contender in a phase, marked as contended by its name unless that is `allowed`."""
    contended = result.contender if CONTENDED in result.flags and CONTENDED not in allowed else ""
    repetitions = result.repetitions.get(phase, []) if metric == "time" else []
    return Side(result.summaries[phase, metric], repetitions, contended=contended)


def pairs(fields: Sequence[Field], baseline: str, thresholds: Thresholds, metric: str = "time") -> list[Pairs]:
    """For each field, every pair once with its word. The baseline is the base of its pairs."""
    names, comparisons = [], []
    for case, phase, sides in fields:
        ordered = sorted(sides, key=lambda name: (name != baseline, sides[name].summary.median))
        names.append(list(combinations(ordered, 2)))
        comparisons += [Comparison(case, new, phase, metric, sides[base], sides[new]) for base, new in names[-1]]
    words = iter(judged(comparisons, thresholds))
    return [{pair: next(words) for pair in of_field} for of_field in names]


def slower(words: Pairs, name: str, other: str) -> bool:
    """Whether the test calls one contender slower than another."""
    if (other, name) in words:
        return words[other, name].word == "slower"
    return words[name, other].word == "faster"
