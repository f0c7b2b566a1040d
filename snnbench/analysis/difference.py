"""Differences between two sets of trials, as a ratio with an interval and a p-value.

All arithmetic is on logarithms of one value a trial, so that a ratio is a difference and its inverse is as far away:

    t = (mean new - mean base) / sqrt(s_base^2 / n_base + s_new^2 / n_new)      Welch 1947

with Welch's and Satterthwaite's degrees of freedom. A few trials estimate their own variance badly, which costs most of
the power once many cells are tested together. But all cells were measured by one protocol on one machine. So each
variance s^2, with d = n - 1 degrees of freedom, is moderated by all variances of the command:

    (d0 * s0^2 + d * s^2) / (d0 + d)      with d0 + d degrees of freedom      Smyth 2004, section 4

where s0^2 and d0 are fitted to those variances (section 6.2). If the variances are alike, d0 is large. If they are not,
d0 nears 0, and t nears Welch's. Unlike there, a moderated variance is never smaller than the measured one, so that a
noisy cell gains nothing from quiet ones.
"""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Trials = Sequence[float]

EQUAL_WITHIN = 1e-12
"""Logarithms this close differ by rounding only: no clock shows the difference."""
FEWEST_PAIRS = 4
"""Fewest pairs for a test: fewer do not show their own spread."""
PRIOR_SHARE = 0.5
"""Share of a family's prior degrees of freedom that counts: they were fitted to few variances."""
FAMILY = 8
"""Fewest variances that are moderated together."""
TRIMMED_SHARE = 0.2
"""The share of pairs trimmed at either end: the usual one (Wilcox 2012, section 4.3)."""
MAX_REACH = 1e9
"""Furthest end of an interval, as a multiple of its middle: a wider one says no more."""


@dataclass(frozen=True, slots=True)
class Difference:
    """New over base: `ratio` of the medians of trials, and the interval of the ratio from Welch's standard error.

    `p` is from Welch's two-sided test; None if no test was made. `certain`: neither side varies, so that the ratio is
    exact. If a test is impossible, there is no interval and `lacking` says why: a side has one trial and no spread, or
    a value of 0 leaves no ratio.
    """

    ratio: float | None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    certain: bool = False
    lacking: str = ""


def differences(
    pairs: Sequence[tuple[Trials, Trials]], confidence: float, counted: Sequence[bool] = ()
) -> list[Difference]:
    """The difference of each pair (trials of base, trials of new), with variances moderated over all pairs.

    `counted`, one per pair: whether the values are counts that the same program repeats. Then one trial is enough.
    """
    samples = [trials for pair in pairs for trials in pair]
    return between(samples, [(2 * number, 2 * number + 1) for number in range(len(pairs))], confidence, counted)


def between(
    samples: Sequence[Trials], pairs: Sequence[tuple[int, int]], confidence: float, counted: Sequence[bool] = ()
) -> list[Difference]:
    """The difference of each pair (base, new), two positions in `samples`.

    The variance of a sample counts once, even if the sample is in several pairs. `counted` as in `differences`.
    """
    counts = counted or [False] * len(pairs)
    result = [_untested(samples[base], samples[new], alone) for (base, new), alone in zip(pairs, counts, strict=True)]
    tested = [number for number, difference in enumerate(result) if difference is None]
    if tested:
        some = [pairs[number] for number in tested]
        for number, difference in zip(tested, _tested(samples, some, confidence), strict=True):
            result[number] = difference
    return [difference for difference in result if difference is not None]


def paired(
    pairs: Sequence[tuple[Trials, Trials]],
    confidence: float,
    families: Sequence[Hashable],
    counted: Sequence[bool] = (),
) -> list[Difference]:
    """The difference of each pair (trials of base, trials of new); trials with the same number ran side by side.

    `ratio` is the median over trials. The test is of the logarithms of new over base, trial by trial:

        t = trimmed mean / sqrt(S / (h (h - 1)))      Yuen 1974, here for one sample

    where a fifth of the trials is trimmed at either end, h remain, and S is the winsorised sum of squares (a trimmed
    value counts as the nearest that remained). So a trial with a burst on one side weighs no more than the others. The
    variances S / (h - 1) of a family are moderated together as in this module's docstring, with PRIOR_SHARE of the
    prior degrees of freedom. A family must come from different processes. In a family of fewer than FAMILY, each
    variance stands alone. `counted` as in `differences`. Fewer than FEWEST_PAIRS trials are not tested.
    """
    counts = counted or [False] * len(pairs)
    result = [_untested(base, new, alone) for (base, new), alone in zip(pairs, counts, strict=True)]
    members: dict[Hashable, list[int]] = defaultdict(list)
    for number, (difference, (base, _)) in enumerate(zip(result, pairs, strict=True)):
        if difference is None and len(base) < FEWEST_PAIRS:
            ratio = median(new / old for old, new in zip(*pairs[number], strict=True))
            result[number] = Difference(ratio, lacking=f"{len(base)} pairs, where a word takes {FEWEST_PAIRS}")
        elif difference is None:
            members[families[number]].append(number)
    alone = [[number] for numbers in members.values() if len(numbers) < FAMILY for number in numbers]
    for numbers in [*alone, *(numbers for numbers in members.values() if len(numbers) >= FAMILY)]:
        tested = _tested_pairs([pairs[number] for number in numbers], confidence)
        for number, difference in zip(numbers, tested, strict=True):
            result[number] = difference
    return [difference for difference in result if difference is not None]


def _tested_pairs(pairs: Sequence[tuple[Trials, Trials]], confidence: float) -> list[Difference]:
    from scipy.special import stdtr, stdtrit

    logs = [np.sort(np.log(new) - np.log(base)) for base, new in pairs]
    cut = [int(TRIMMED_SHARE * len(each)) for each in logs]
    inner = [each[g : len(each) - g] for g, each in zip(cut, logs, strict=True)]
    numbers = np.array([len(each) for each in inner], dtype=np.float64)
    clipped = [np.clip(each, kept[0], kept[-1]) for each, kept in zip(logs, inner, strict=True)]
    squares = np.array([_variance(each) * (len(each) - 1) for each in clipped])
    variances, prior_degrees, most_degrees = moderate(squares / (numbers - 1), numbers - 1)
    freedom = np.minimum(numbers - 1 + PRIOR_SHARE * prior_degrees, most_degrees)
    means, errors = np.array([each.mean() for each in inner]), np.sqrt(variances / numbers)
    known = errors > 0  # else all pairs differ alike, by accident or by construction, and p is 1
    p = np.where(known, 2 * stdtr(freedom, -np.abs(means) / np.where(known, errors, 1.0)), 1.0)
    reach = stdtrit(freedom, 0.5 + confidence / 2) * errors
    ratios = np.exp([median(each) for each in logs]).tolist()
    lows, highs = _limits(means, reach)
    return [Difference(*values) for values in zip(ratios, lows, highs, p.tolist(), strict=True)]


def adjusted(p: Sequence[float | None]) -> list[float | None]:
    """q: the least false discovery rate at which each p is a discovery, over all tests; None stays None.

    Benjamini & Hochberg 1995. SciPy has it too, in a module that takes 0.6 s to import.
    """
    tested = np.array([value for value in p if value is not None])
    order = np.argsort(tested)[::-1]
    shares = tested[order] * len(tested) / np.arange(len(tested), 0, -1)
    q = np.empty_like(tested)
    q[order] = np.minimum.accumulate(np.minimum(shares, 1.0))
    values = iter(q.tolist())
    return [None if value is None else next(values) for value in p]


def _untested(base: Trials, new: Trials, counted: bool) -> Difference | None:
    """The difference of a pair that needs no test or allows no test; None for a pair to be tested."""
    if min(*base, *new) <= 0:
        equal = {*base} == {*new} and len({*base}) == 1
        return Difference(1.0, 1.0, 1.0, certain=True) if equal else Difference(None, lacking="a value of 0")
    ratio = median(new) / median(base)
    single = [side for side, trials in (("base", base), ("new", new)) if len(trials) < 2]
    if len({*base}) == len({*new}) == 1 and (counted or not single):
        return Difference(ratio, ratio, ratio, certain=True)
    if single:
        return Difference(ratio, lacking=f"one trial in {' and '.join(single)}")
    return None


def _tested(samples: Sequence[Trials], pairs: Sequence[tuple[int, int]], confidence: float) -> list[Difference]:
    from scipy.special import stdtr, stdtrit

    used = {
        sample: position for position, sample in enumerate(dict.fromkeys(sample for pair in pairs for sample in pair))
    }
    logs = [np.log(samples[sample]) for sample in used]
    means, counts = np.array([each.mean() for each in logs]), np.array([len(each) for each in logs], dtype=np.float64)
    moderated, prior_degrees, most_degrees = moderate(np.array([_variance(each) for each in logs]), counts - 1)
    base, new = np.array([[used[sample] for sample in pair] for pair in pairs]).T
    parts = moderated / counts
    own_degrees = parts**2 / (counts - 1)
    squared = parts[base] + parts[new]
    # The prior degrees of freedom count once, not once a side.
    freedom = np.minimum(squared**2 / (own_degrees[base] + own_degrees[new]) + prior_degrees, most_degrees)
    distances, errors = means[new] - means[base], np.sqrt(squared)
    p = 2 * stdtr(freedom, -np.abs(distances) / errors)
    reach = stdtrit(freedom, 0.5 + confidence / 2) * errors
    medians = np.array([median(samples[sample]) for sample in used])
    ratios = (medians[new] / medians[base]).tolist()
    lows, highs = _limits(distances, reach)
    return [Difference(*numbers) for numbers in zip(ratios, lows, highs, p.tolist(), strict=True)]


def _limits(middles: Floats, reach: Floats) -> tuple[list[float], list[float]]:
    """Lower and upper ends of the intervals around these logarithms, as ratios."""
    reach = np.minimum(reach, np.log(MAX_REACH))
    return np.exp(middles - reach).tolist(), np.exp(middles + reach).tolist()


def _variance(logs: Floats) -> float:
    """The variance; 0 for equal values, where rounding would leave a tiny one that passes for the quietest of all."""
    return float(logs.var(ddof=1)) if np.ptp(logs) > EQUAL_WITHIN else 0.0


def moderate(variances: Floats, degrees: Floats) -> tuple[Floats, float, float]:
    """(moderated variances, never smaller than the measured ones; d0; total degrees of freedom).

    No test on these variances may have more than the total degrees of freedom. A variance of 0 does not enter the fit:
    it is equality by accident or by construction.
    """
    from scipy.special import digamma, polygamma

    known = variances > 0
    if not known.any():
        return variances, 0.0, float(degrees.sum())
    s2, d = variances[known], degrees[known]
    logs = np.log(s2) - digamma(d / 2) + np.log(d / 2)
    spread = logs.var(ddof=1) - polygamma(1, d / 2).mean() if len(logs) > 1 else 0.0
    pooled = float((s2 * d).sum() / d.sum())
    if spread <= 0:  # as alike as the sample variances of one population
        together, prior, prior_degrees = np.full_like(variances, pooled), pooled, np.inf
    else:
        half = _inverse_trigamma(spread)
        prior, prior_degrees = float(np.exp(logs.mean() + digamma(half) - np.log(half))), 2 * half
        together = (prior_degrees * prior + degrees * variances) / (prior_degrees + degrees)
    return np.maximum(variances, together), float(prior_degrees), float(d.sum())


def _inverse_trigamma(value: float) -> float:
    """x with trigamma(x) = value > 0, by Newton's method on 1 / trigamma, which is convex: Smyth 2004, appendix."""
    from scipy.special import polygamma

    x = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(polygamma(1, x))
        step = trigamma * (1 - trigamma / value) / float(polygamma(2, x))
        x += step
        if abs(step) < 1e-10 * x:
            break
    return float(x)


def intervals(samples: Sequence[Trials], confidence: float) -> list[tuple[float, float] | None]:
    """The interval of each geometric mean, with moderated variances; None for one trial, or a value of 0."""
    from scipy.special import stdtrit

    some = [number for number, trials in enumerate(samples) if len(trials) > 1 and min(trials) > 0]
    bounds: list[tuple[float, float] | None] = [None] * len(samples)
    if some:
        logs = [np.log(samples[number]) for number in some]
        counts = np.array([len(one) for one in logs])
        variances, prior_degrees, most_degrees = moderate(np.array([_variance(one) for one in logs]), counts - 1.0)
        freedom = np.minimum(counts - 1 + prior_degrees, most_degrees)
        means, reach = np.array([one.mean() for one in logs]), stdtrit(freedom, 0.5 + confidence / 2)
        lows, highs = _limits(means, reach * np.sqrt(variances / counts))
        for number, low, high in zip(some, lows, highs, strict=True):
            bounds[number] = (low, high)
    return bounds
