"""The outcome of a cell, from how its worker ended."""

import signal
from contextlib import suppress

from snnbench.cases.outcome import Outcome, failed
from snnbench.recording import schema
from snnbench.run.process import Ending


def outcome_of(ending: Ending, timeout_s: float) -> Outcome:
    """The outcome in the reply; without a valid reply, a failure."""
    if ending.timed_out:
        return failed("timeout", f"no reply within {timeout_s:g} s; killed")
    if ending.oom_killed:
        return failed("oom-host", "killed by the kernel, which was out of memory")
    if ending.reply is not None and (wrong := schema.complaint("reply", ending.reply.as_dict())):
        return failed("lost", f"malformed reply: {wrong}")
    if ending.reply is not None and ending.reply.outcome:
        return ending.reply.outcome
    if ending.status < 0:
        return failed("crash", f"died of {_signal(-ending.status)}{_last(ending)}")
    if ending.status > 0:
        return failed("crash", f"exit status {ending.status}{_last(ending)}")
    return failed("lost", f"exit status 0 without a whole reply{_last(ending)}")


def _signal(number: int) -> str:
    """The name of a signal, or its number: most real-time signals have no name."""
    with suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"


def _last(ending: Ending) -> str:
    lines = [line for line in ending.log.splitlines() if line.strip()]
    return f": {lines[-1].strip()[:200]}" if lines else ""
