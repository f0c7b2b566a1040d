"""How often Python collects garbage in a worker: rarely while it prepares, and as usual while it measures.

A framework is some half million objects. By default Python looks through all of them again and again while it imports
them.
"""

import gc

USUAL = gc.get_threshold()
RARE = (20_000, 50, 100)
"""Thresholds of the three generations. Cycles still become free, for a large network may leave some in each pass."""


def collect_rarely() -> None:
    """Collect rarely from now on."""
    gc.set_threshold(*RARE)


def collect_as_usual() -> None:
    """Collect once, and from now on as in any process of Python."""
    gc.collect()
    gc.set_threshold(*USUAL)
