"""A turn of a contender on the CPU, which shares a process with others."""

import time
from collections.abc import Callable
from typing import Any

from snnbench.worker.unfinished_work import settle

TURN_S = 0.02
"""Passes follow each other for about so long in a turn; the fastest caches are warm, as in training."""


def warm(run: Callable[[], Any]) -> None:
    """Let threads of the turn before settle, then run passes for a turn, at least one.

    Threads of a product wait for more work in a loop, and would take CPUs from the next contender's own threads. CPUs
    that have slept need some milliseconds.
    """
    settle()
    ends = time.perf_counter() + TURN_S
    run()
    while time.perf_counter() < ends:
        run()
