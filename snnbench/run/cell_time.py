"""The time of a cell, from the time of a pass: the worker's own timing runs on a clock that only passes move."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from snnbench.proof import fresh
from snnbench.worker import memory, timing
from snnbench.worker.durations import median_ns
from snnbench.worker.timing import Budget, Phase, Renewal

MOST_SIMULATED = 100
"""Passes of a simulated repetition. Shorter passes fill the same time, so they are simulated as fewer and longer."""
UNBOUNDED_NS = 10**18


def phase_ns(pass_ns: float, budget: Budget, forward_ns: float | None = None) -> tuple[int, int]:
    """The time of a phase with its first call, and the passes of a repetition.

    `forward_ns` is the time of the forward pass that a backward pass needs before it, outside the clock.
    """
    now = 0
    if forward_ns is None:
        pass_ns = max(pass_ns, budget.min_repetition_ns / MOST_SIMULATED)
    each, before = max(1, round(pass_ns)), round(forward_ns or 0)

    def advance(by: int) -> None:
        nonlocal now
        now += by

    phase = Phase(
        run=lambda _: advance(each),
        wait=lambda _: None,
        compilations=lambda: 0,
        mark=lambda: None,
        elapsed_ns=lambda start, end: 0,
        prepare=None if forward_ns is None else lambda: advance(before),
    )
    renewal = Renewal(
        lambda drawn: None, lambda: None, lambda: None, lambda: None, lambda outputs: None, lambda: None
    )
    measured, _ = timing.measure(phase, replace(budget, busy_ns=0), renewal, lambda: now)
    if measured.passes > 1:
        for _ in range(fresh.ORDERED):
            timing.run_ordered(phase, measured, renewal, lambda: now)
    for _ in range(fresh.DRAWN - len(measured.drawn_ns)):
        timing.run_drawn(phase, measured, renewal, fresh.series_of(pass_ns, measured.passes), lambda: now)
    return now + budget.busy_ns, measured.passes


def recorded_budget(recorded: Mapping[str, Any]) -> Budget:
    """The budget that gives a phase the passes and repetitions that a record has."""
    each = max(1, round(median_ns(recorded)))
    repetition_ns = recorded["passes"] * each if recorded["passes"] > 1 else 1
    busy_ns = recorded.get("busy_passes", 0) * each
    return Budget(len(recorded["warmup_ns"]), len(recorded["repetitions_ns"]), repetition_ns, UNBOUNDED_NS, busy_ns)


def memory_ns(pass_ns: float) -> float:
    """The time of the passes of a memory cell: the measured pass, a forward pass, and those that show growth."""
    _, fewest, *_, most = memory.GROWTH_PASSES
    return (2 + min(most, max(fewest, memory.GROWTH_NS / pass_ns))) * pass_ns
