"""The exponent of a power law, fitted on logarithms: how a time grows with a size."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt
from statistics import fmean

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Exponent:
    """`time ~ size ** value`, with a 95 % interval; `last` is the exponent of the two largest sizes alone.

    The interval includes the deviation from a power law. A constant cost flattens small sizes, so that `last` predicts
    larger sizes better.
    """

    value: float
    low: float
    high: float
    last: float


def exponent(sizes: Sequence[float], times: Sequence[float]) -> Exponent:
    """The fit: least squares of log time on log size, with Student's t on n - 2 degrees of freedom for the interval.

    `sizes` [n] are distinct and ascending; `times` [n] are above 0, in any unit. Raises ValueError below three sizes.
    """
    if len(sizes) < 3 or len(sizes) != len(times):
        raise ValueError(f"a fit with an error wants three sizes and a time for each, not {len(sizes)}")
    from scipy.special import stdtrit  # a second faster to import than scipy.stats

    x, y = [log(size) for size in sizes], [log(time) for time in times]
    middle_x, middle_y = fmean(x), fmean(y)
    squares = sum((one - middle_x) ** 2 for one in x)
    slope = sum((one - middle_x) * (other - middle_y) for one, other in zip(x, y, strict=True)) / squares
    residuals = [other - middle_y - slope * (one - middle_x) for one, other in zip(x, y, strict=True)]
    freedom = len(x) - 2
    half = float(stdtrit(freedom, 0.5 + CONFIDENCE / 2)) * sqrt(sum(one**2 for one in residuals) / freedom / squares)
    return Exponent(slope, slope - half, slope + half, (y[-1] - y[-2]) / (x[-1] - x[-2]))
