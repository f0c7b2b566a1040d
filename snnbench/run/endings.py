"""From how a worker ended to what became of its cell."""

import signal
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from snnbench.recording import schema
from snnbench.run.process import Ending
from snnbench.workloads.outcome import FAILURES, SKIPS, VERDICTS


def outcome_of(ending: Ending, timeout_s: float) -> dict[str, Any]:
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
