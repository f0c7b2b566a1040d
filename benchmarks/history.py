"""A count of the false changes that `snnbench compare` reports between recordings of the same unchanged work.

    python -m benchmarks history RECORDING RECORDING...

Compares every recording with every later one, once as a user does and once with `--allow drift,contended`. Prints a row
for each pair: hours between, how the machine moved, and how many cells are called slower or faster. Each such word is
false.
"""

import argparse
from datetime import datetime
from itertools import combinations
from pathlib import Path

from benchmarks.outcome import show
from snnbench.analysis.compare import DRIFT, Comparisons, compare
from snnbench.analysis.comparisons import CONTENDED
from snnbench.analysis.decision import Thresholds
from snnbench.recording import reading


def main() -> int:
    """A row for each pair."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", nargs="+", type=Path, metavar="RECORDING")
    recordings = sorted(map(reading.read, parser.parse_args().recordings), key=started)
    rows = []
    for base, new in combinations(recordings, 2):
        allowed = compare(base, new, Thresholds(), allowed=[CONTENDED, DRIFT])
        judged = compare(base, new, Thresholds())
        moved = judged.movement
        assert moved is not None
        ratios = [moved.probes.get("interpreter"), moved.probes.get("product"), moved.control]
        shown = ("-" if ratio is None else f"{ratio:.2f}" for ratio in ratios)
        hours = (started(new) - started(base)).total_seconds() / 3600
        counts = (len(judged.each), changes(allowed), changes(judged))
        rows.append([f"{base.name}, {new.name}", f"{hours:.1f}", *shown, *map(str, counts)])
    moved_by = ("Python loops", "products", "control")
    columns = ("base, new", "hours apart", *moved_by, "cells", "changed, all allowed", "changed")
    show("Changes between recordings of the same work, all of them false", columns, rows)
    return 0


def started(recording: reading.Recording) -> datetime:
    """The start time of a recording's first cell."""
    return min(datetime.fromisoformat(one.started) for one in recording.records)


def changes(comparison: Comparisons) -> int:
    """The number of cells called slower or faster."""
    return comparison.counts["slower"] + comparison.counts["faster"]
