"""The outcome and the record of a cell, from how its worker ended."""

import errno
import os
import re
import signal
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from snnbench.cases.outcome import Outcome, failed
from snnbench.environments.interpreters import Interpreter
from snnbench.files import home
from snnbench.machine.gpus import Card
from snnbench.plan.cell import Cell
from snnbench.recording import schema
from snnbench.recording.flags import raised
from snnbench.recording.record import Record
from snnbench.run.process import Ending
from snnbench.run.setup import RunContext
from snnbench.worker.messages import Reply

STATES = (errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EAGAIN)
"""Errors that the state of the machine makes: too many open files or processes, no space left, nothing writable."""
NUMBERED = rf"\[Errno ({'|'.join(map(str, STATES))})\]"
BROKEN = re.compile("|".join([*map(re.escape, map(os.strerror, STATES)), NUMBERED, "can't start new thread"]))


def outcome_of(ending: Ending, timeout_s: float) -> Outcome:
    """The outcome in the reply; without a valid reply, a failure. The machine's state accuses nobody."""
    outcome = _outcome(ending, timeout_s)
    return blameless(outcome, ending.log) if outcome.kind in ("crash", "import", "lost") else outcome


def blameless(outcome: Outcome, log: str = "") -> Outcome:
    """The outcome of a cell; if the state of the machine broke it, one that the same command runs again.

    Its reason says so, or an error in the chain of exceptions that its worker printed.
    """
    errors = [line for line in log.splitlines() if re.match(r"\w*Error: ", line)]
    if any(map(BROKEN.search, [str(outcome.reason), *errors])):
        return failed("cancelled", f"the state of the machine broke it: {outcome.reason}")
    return outcome


def _outcome(ending: Ending, timeout_s: float) -> Outcome:
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


def record_of(
    cell: Cell,
    key: str,
    run: RunContext,
    end: Outcome | Ending,
    observed: Collection[str] = (),
    card: Card | None = None,
) -> Record:
    """The record of a cell with this outcome, or with the outcome of its worker."""
    setup = run.setups[cell.side]
    adapter, interpreter = setup.adapters[cell.library], setup.interpreter(cell.contender, cell.case)
    if isinstance(end, Ending):
        ending = end = replace(end, log=_shareable(end.log, adapter.path))
        outcome = outcome_of(end, run.protocol.timeout_seconds)
    else:
        ending, outcome = None, end
    reply = (ending.reply if ending and outcome.kind != "lost" else None) or Reply()
    held = reply if outcome.measured else Reply()
    reply.settings |= {"card": card.name} if card and ending else {}
    flags = raised(held.phases, held.memory, reply.settings, cell.case.threads, observed)
    reply.settings |= {"variables": dict(setup.variables)} if setup.variables else {}
    return Record(
        cell=key,
        library=cell.library,
        variant=cell.variant,
        trial=cell.trial,
        measure=cell.measure,
        side=cell.side,
        case=cell.case,
        outcome=outcome,
        # The environment's own word comes first: a library could tell its worker another version.
        version=_version(interpreter, adapter.variants[cell.variant].pins.distribution)
        or reply.settings.get("version"),
        adapter=adapter.digest,
        environment=interpreter.key,
        checks=reply.checks,
        settings=reply.settings,
        phases=held.phases,
        memory=held.memory,
        peaks=held.peaks,
        probes=held.probes,
        flags=flags if outcome.measured else [],
        started=(datetime.now(UTC) - timedelta(seconds=ending.wall_s if ending else 0)).isoformat(timespec="seconds"),
        wall_s=round(ending.wall_s, 3) if ending and outcome.measured else None,
        log=ending.log if ending and outcome.status == "failed" else "",
    )


def _shareable(log: str, adapter: Path) -> str:
    """A log without the names of this user's folders: others read recordings."""
    names = {str(adapter.parent): "adapters", str(home()): "~/.cache/snnbench", os.path.expanduser("~"): "~"}
    for folder in sorted(names, key=len, reverse=True):  # one may hold another
        log = log.replace(f"{folder}/", f"{names[folder]}/")
    return log


def _version(interpreter: Interpreter, distribution: str) -> str | None:
    names = {name.lower().replace("_", "-"): version for name, version in interpreter.versions.items()}
    return names.get(distribution.lower().replace("_", "-"))


def _signal(number: int) -> str:
    """The name of a signal, or its number: most real-time signals have no name."""
    with suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"


def _last(ending: Ending) -> str:
    lines = [line for line in ending.log.splitlines() if line.strip()]
    return f": {lines[-1].strip()[:200]}" if lines else ""
