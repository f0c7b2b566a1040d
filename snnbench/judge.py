"""From how a worker ended to what became of its cell."""

import signal
from typing import Any

from snnbench.cell import Cell
from snnbench.process import Ending

CONTENDED_CPUS = 0.1
"""CPUs that others took on average while a phase was timed, from which on a record is flagged."""
SIZES = ("neurons", "batch", "time_steps", "layers")


def outcome(ending: Ending, timeout_s: float) -> dict[str, Any]:
    """The outcome in a reply, or the failure that the lack of one means."""
    if ending.timed_out:
        return failed("timeout", f"no reply within {timeout_s:g} s; killed")
    if ending.oom_killed:
        return failed("oom-host", "killed by the kernel, which was out of memory")
    if ending.reply is not None:
        return ending.reply.outcome
    if ending.status < 0:
        return failed("crash", f"died of {signal.Signals(-ending.status).name}{_last(ending)}")
    if ending.status > 0:
        return failed("crash", f"exit status {ending.status}{_last(ending)}")
    return failed("lost", f"exit status 0 without a whole reply{_last(ending)}")


def failed(kind: str, reason: str) -> dict[str, Any]:
    """A failed outcome."""
    return {"status": "failed", "kind": kind, "reason": reason}


def skipped(kind: str, reason: str) -> dict[str, Any]:
    """A skipped outcome."""
    return {"status": "skipped", "kind": kind, "reason": reason}


def flags(phases: dict[str, Any]) -> list[str]:
    """What a reader should know of the circumstances; the samples are kept."""
    taken = [
        phase["contention"]["foreign_cpus"] + phase["contention"]["stolen_cpus"]
        for phase in phases.values()
        if "contention" in phase
    ]
    return ["contended"] if taken and max(taken) > CONTENDED_CPUS else []


class Inference:
    """What earlier cells say of later ones, so that the same answer is not looked for twice.

    A case that a library cannot express stays so in every trial. Where memory ran out, a case that is no smaller in
    any way, and otherwise the same, is recorded as inferred.
    """

    def __init__(self) -> None:
        self._skipped: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._too_large: list[tuple[Cell, dict[str, Any]]] = []

    def learn(self, cell: Cell, outcome: dict[str, Any]) -> None:
        """Remember how a cell ended."""
        if outcome["status"] == "skipped":
            self._skipped[cell.library, cell.variant, cell.case] = outcome
        elif outcome.get("kind") in ("oom-device", "oom-host") and "inferred_from" not in outcome:
            self._too_large.append((cell, outcome))

    def predict(self, cell: Cell) -> dict[str, Any] | None:
        """The outcome of a cell that need not be run, or None."""
        if known := self._skipped.get((cell.library, cell.variant, cell.case)):
            return known
        for small, outcome in self._too_large:
            same = (small.library, small.variant, small.measure) == (cell.library, cell.variant, cell.measure)
            if same and small.case != cell.case and _no_smaller(cell, small):
                size = ", ".join(f"{name}={getattr(small.case, name)}" for name in SIZES)
                return failed(outcome["kind"], f"inferred: it already ran out at {size}") | {"inferred_from": size}
        return None


def _no_smaller(cell: Cell, than: Cell) -> bool:
    sizes = {name: getattr(than.case, name) for name in SIZES}
    if cell.case.resized(**sizes) != than.case:
        return False
    return all(getattr(cell.case, name) >= size for name, size in sizes.items())


def _last(ending: Ending) -> str:
    lines = [line for line in ending.log.splitlines() if line.strip()]
    return f": {lines[-1].strip()[:200]}" if lines else ""
