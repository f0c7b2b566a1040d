"""The outcome of a cell, from how its worker ended."""

import signal
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from snnbench.recording import schema
from snnbench.run.process import Ending
from snnbench.workloads.outcome import FAILURES, SKIPS, VERDICTS


def outcome_of(ending: Ending, timeout_s: float) -> dict[str, Any]:
    """The outcome in the reply; without a valid reply, a failure."""
    if ending.timed_out:
        return failed("timeout", f"no reply within {timeout_s:g} s; killed")
    if ending.oom_killed:
        return failed("oom-host", "killed by the kernel, which was out of memory")
    if ending.reply is not None and (wrong := schema.complaint("reply", asdict(ending.reply))):
        return failed("lost", f"malformed reply: {wrong}")
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


def _known(outcome: Any) -> bool:
    """Whether the outcome is valid: an adapter shares the worker's process and can spoil the reply."""
    match outcome:
        case {"status": "measured", "verdict": str(verdict)}:
            return verdict in VERDICTS and verdict != "incorrect"
        case {"status": "skipped", "kind": str(kind), "reason": str()}:
            return kind in SKIPS
        case {"status": "failed", "kind": str(kind), "reason": str()}:
            return kind in FAILURES
    return False


def _signal(number: int) -> str:
    """The name of a signal, or its number: most real-time signals have no name."""
    with suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"


def _last(ending: Ending) -> str:
    lines = [line for line in ending.log.splitlines() if line.strip()]
    return f": {lines[-1].strip()[:200]}" if lines else ""
