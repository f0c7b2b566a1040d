"""A simulation of false steps and of found steps in the history of a library.

    python -m benchmarks steps [SERIES]

Draws SERIES (default 4000) series of nightly times for each row. Counts the series of equal work in which any step is
seen before its size is looked at, and those with a step beyond the least effect. Of series with a lasting change in the
middle it counts those in which a step is found within two nights of it.
"""

import argparse

import numpy as np
from numpy.typing import NDArray

from benchmarks.outcome import show
from snnbench.analysis.decision import Thresholds
from snnbench.analysis.steps import places

SPREAD = 0.03
"""The standard deviation of the logarithm of a night's time, after the machine's movement is divided out."""
FACTOR = 1.12
NOISES = {
    "independent, normal": (1000.0, 0.0),
    "independent, Student's t, 2 degrees": (2.0, 0.0),
    "normal, a night keeps 0.3 of the one before": (1000.0, 0.3),
    "normal, a night keeps 0.5 of the one before": (1000.0, 0.5),
}
"""The degrees of freedom of a night's noise, and the share that it keeps of the night before."""


def drawn(random: np.random.Generator, count: int, nights: int, noise: tuple[float, float]) -> NDArray[np.float64]:
    """Logarithms of times [count, nights] of equal work."""
    degrees, kept = noise
    fresh = SPREAD * random.standard_t(degrees, (count, nights))
    series = fresh.copy()
    for night in range(1, nights):
        series[:, night] = kept * series[:, night - 1] + (1 - kept**2) ** 0.5 * fresh[:, night]
    return series


def largest(series: NDArray[np.float64], at: list[int]) -> float:
    """The largest ratio of the medians of neighbouring stretches."""
    medians = [float(np.median(stretch)) for stretch in np.split(series, at)]
    return float(np.exp(np.abs(np.diff(medians)).max(initial=0.0)))


def main() -> int:
    """A row for each number of nights and each kind of noise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("series", nargs="?", type=int, default=4000, metavar="SERIES")
    count, random, rows = parser.parse_args().series, np.random.default_rng(0), []
    floor = 1 + Thresholds().time_floor
    for nights in (20, 60, 250):
        for name, noise in NOISES.items():
            equal = drawn(random, count, nights, noise)
            changed = equal + np.log(FACTOR) * (np.arange(nights) >= nights // 2)
            false_steps = [places(list(series)) for series in equal]
            seen = sum(map(bool, false_steps))
            large = sum(largest(series, at) > floor for series, at in zip(equal, false_steps, strict=True))
            near = sum(any(abs(at - nights // 2) <= 2 for at in places(list(series))) for series in changed)
            shares = (f"{seen / count:.2%}", f"{large / count:.2%}", f"{near / count:.0%}")
            rows.append((str(nights), name, *shares))
    columns = ("nights", "noise", "a false step", f"one above {floor - 1:.0%}", f"{FACTOR - 1:.0%} found")
    show(f"Steps in {count} series of each kind", columns, rows)
    return 0
