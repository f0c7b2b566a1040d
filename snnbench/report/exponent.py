"""How a time grows with a size: the exponent of a power law, fitted on logarithms."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Exponent:
    """`time ~ size ** value`, with a 95 % interval; `last` is that of the two largest sizes alone.

    The interval holds how far the times are from a power law: a cost that does not grow flattens small sizes, so that
    `last` says more of sizes beyond.
    """

    value: float
    low: float
    high: float
    last: float


def exponent(sizes: Sequence[float], times: Sequence[float]) -> Exponent:
    """Least squares of log time on log size, with Student's t on n - 2 degrees of freedom for the slope's error.

    `sizes` [n] differ and rise, `times` [n] are above 0 in any unit. Raises ValueError below three sizes.
    """
    if len(sizes) < 3 or len(sizes) != len(times):
        raise ValueError(f"a fit with an error wants three sizes and a time for each, not {len(sizes)}")
    from scipy import stats

    x, y = [log(size) for size in sizes], [log(time) for time in times]
    fit = stats.linregress(x, y)
    half = float(stats.t.ppf(0.5 + CONFIDENCE / 2, len(x) - 2) * fit.stderr)
    slope = float(fit.slope)
    return Exponent(slope, slope - half, slope + half, (y[-1] - y[-2]) / (x[-1] - x[-2]))
