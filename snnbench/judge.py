"""From how a worker ended to what became of its cell."""

import signal
from collections.abc import Collection
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

from snnbench import schema
from snnbench.cell import Cell
from snnbench.contention import CONTENDED_CPUS, others_cpus
from snnbench.drift import DRIFTED, FACTOR
from snnbench.outcome import FAILURES, SKIPS, VERDICTS
from snnbench.process import Ending
from snnbench.wire import Reply

LEAST_GROWTH_BYTES = 256 << 10
"""A pass, from which on a record is flagged: an allocator that settles was seen to take up to 75 KiB."""
FLAGS: dict[str, str] = {
    "contended": f"others took more than {CONTENDED_CPUS:g} CPUs, on average, while a phase was timed",
    DRIFTED: f"the machine was over {FACTOR:g} times slower or faster beside it than it usually was in this run",
    "throttled": "a processor slowed down for heat or power meanwhile",
    "shared": "another process was on the same card before, meanwhile or after",
    "grows": "the memory in use grew with every pass",
    "threads": "the framework ran with another number of threads than asked",
    "graph-breaks": "a compiler left parts of the network to Python",
}
"""What a reader should know of a cell that was measured; nothing is dropped for it."""
SIZES = ("neurons", "batch", "time_steps", "layers")


def outcome(ending: Ending, timeout_s: float) -> dict[str, Any]:
    """The outcome in a reply, or the failure that the lack of one means."""
    if ending.timed_out:
        return failed("timeout", f"no reply within {timeout_s:g} s; killed")
    if ending.oom_killed:
        return failed("oom-host", "killed by the kernel, which was out of memory")
    if ending.reply is not None and (wrong := schema.complaint("reply", asdict(ending.reply))):
        return failed("lost", f"a reply that is none: {wrong}")
    if ending.reply is not None and _known(ending.reply.outcome):
        return ending.reply.outcome
    if ending.status < 0:
        return failed("crash", f"died of {_signal(-ending.status)}{_last(ending)}")
    if ending.status > 0:
        return failed("crash", f"exit status {ending.status}{_last(ending)}")
    return failed("lost", f"exit status 0 without a whole reply{_last(ending)}")


def failed(kind: str, reason: str) -> dict[str, Any]:
    """A failed outcome."""
    return {"status": "failed", "kind": kind, "reason": reason}


def skipped(kind: str, reason: str) -> dict[str, Any]:
    """A skipped outcome."""
    return {"status": "skipped", "kind": kind, "reason": reason}


OBSERVED = (DRIFTED, "throttled", "shared")
"""Flags that the harness sees from outside, and that of the whole recording; the others are in the reply."""


def flags(reply: Reply, threads: int, observed: Collection[str]) -> list[str]:
    """What a reader should know of the circumstances of a cell that asked for so many threads."""
    raised = {
        "contended": others_cpus(reply.phases) > CONTENDED_CPUS,
        **{flag: flag in observed for flag in OBSERVED},
        "grows": any(
            (reply.memory.get(place, {}).get("growth_bytes") or 0) >= LEAST_GROWTH_BYTES for place in ("host", "device")
        ),
        "threads": reply.settings.get("threads", threads) != threads,
        "graph-breaks": reply.settings.get("graph_breaks", 0) > 0,
    }
    return [flag for flag in FLAGS if raised[flag]]


class Inference:
    """What earlier cells say of later ones, so that the same answer is not looked for twice.

    A case that a library cannot express stays so in every trial. Where memory ran out, a case that is no smaller in
    any way, and otherwise the same, is recorded as inferred.
    """

    def __init__(self) -> None:
        self._skipped: dict[Cell, dict[str, Any]] = {}
        self._too_large: list[tuple[Cell, dict[str, Any]]] = []

    def learn(self, cell: Cell, outcome: dict[str, Any]) -> None:
        """Remember how a cell ended."""
        if outcome["status"] == "skipped":
            self._skipped[_work(cell)] = outcome
        elif outcome.get("kind") in ("oom-device", "oom-host"):
            self._too_large.append((cell, outcome))

    def predict(self, cell: Cell) -> dict[str, Any] | None:
        """The outcome of a cell that need not be run, or None."""
        if known := self._skipped.get(_work(cell)):
            return known
        for small, outcome in self._too_large:
            if (
                replace(small, case=cell.case, trial=cell.trial) == cell
                and small.case != cell.case
                and _no_smaller(cell, small)
            ):
                size = ", ".join(f"{name}={getattr(small.case, name)}" for name in SIZES)
                return failed(outcome["kind"], f"inferred: it already ran out at {size}") | {"inferred_from": size}
        return None


def _work(cell: Cell) -> Cell:
    """The same for all trials and measurements of a contender in a case, on one side."""
    return replace(cell, trial=0, measure="time")


def _no_smaller(cell: Cell, than: Cell) -> bool:
    sizes = {name: getattr(than.case, name) for name in SIZES}
    if cell.case.resized(**sizes) != than.case:
        return False
    return all(getattr(cell.case, name) >= size for name, size in sizes.items())


def _known(outcome: Any) -> bool:
    """Whether it is one of the outcomes there are: an adapter runs beside the reply and can spoil it."""
    match outcome:
        case {"status": "measured", "verdict": str(verdict)}:
            return verdict in VERDICTS and verdict != "incorrect"
        case {"status": "skipped", "kind": str(kind), "reason": str()}:
            return kind in SKIPS
        case {"status": "failed", "kind": str(kind), "reason": str()}:
            return kind in FAILURES
    return False


def _signal(number: int) -> str:
    """Its name; most real-time signals have none."""
    with suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"


def _last(ending: Ending) -> str:
    lines = [line for line in ending.log.splitlines() if line.strip()]
    return f": {lines[-1].strip()[:200]}" if lines else ""
