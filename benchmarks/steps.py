"""A simulation of how often the history of a library shows a step where there is none, and how often it finds one.

    python -m benchmarks steps [SERIES]

Draws SERIES (default 4000) series of nightly times for each row, whose logarithms are independent from night to night.
Counts the series of equal work in which any step is seen, before its size is looked at, and of those with a lasting
change in the middle the series in which a step is found within two nights of it.
"""

import argparse

import numpy as np

from benchmarks.outcome import show
from snnbench.analysis.steps import places

SPREAD = 0.03
"""The standard deviation of the logarithm of a night's time, after the machine's movement is divided out."""
FACTOR = 1.12


def main() -> int:
    """A row for each number of nights and each kind of noise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("series", nargs="?", type=int, default=4000, metavar="SERIES")
    count, random, rows = parser.parse_args().series, np.random.default_rng(0), []
    for nights in (20, 60, 120, 250):
        for noise, degrees in (("normal", 1000.0), ("heavy tails: Student's t, 2 degrees", 2.0)):
            drawn = SPREAD * random.standard_t(degrees, (count, nights))
            changed = drawn + np.log(FACTOR) * (np.arange(nights) >= nights // 2)
            false = sum(bool(places(list(each))) for each in drawn)
            near = sum(any(abs(at - nights // 2) <= 2 for at in places(list(each))) for each in changed)
            rows.append((str(nights), noise, f"{false / count:.2%}", f"{near / count:.0%}"))
    columns = ("nights", "noise", "series with a false step", f"{FACTOR - 1:.0%} found within two nights")
    show(f"Steps in {count} series of each kind", columns, rows)
    return 0
