"""Slots: what only one cell may measure on at a time, whichever run of snnbench it belongs to.

There is one for the CPUs and one for every card, each a locked file in a folder that all users of a machine share. A
cell on the CPU has the machine for itself; cells on cards share its CPUs with each other only.
"""

import fcntl
import os
import select
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from snnbench.exits import UserError
from snnbench.run.process import Stopped

CPU, GATE = "cpu", "gate"
VARIABLE, FOLDER = "SNNBENCH_SLOTS", "/tmp/snnbench-slots"
"""Where the locked files are: not where TMPDIR says, which may be another folder for everybody."""
LOOK_EVERY_S = 0.25
"""How often somebody who waits looks again: too seldom to disturb whoever measures."""

Waiting = Callable[[str], None]
"""Is told, once, what is being waited for."""


class SlotError(UserError, OSError):
    """A slot cannot be locked; the message says what to do."""


@contextmanager
def held(card: str | None, waiting: Waiting, stop: int | None = None) -> Iterator[None]:
    """Hold the slot of a card, or that of the CPUs where there is none; waits until it is free.

    Whoever waits for the CPUs holds the gate, which all have to pass: so nobody who comes later is served before, and
    cells on cards, which share the CPUs, cannot keep a cell on the CPU out for ever. Raises SlotError, and
    process.Stopped once there is something to be read from the descriptor `stop`.
    """
    with ExitStack() as stack:
        with _locked(GATE, fcntl.LOCK_EX, waiting, stop):
            how = fcntl.LOCK_EX if card is None else fcntl.LOCK_SH
            stack.enter_context(_locked(CPU, how, waiting, stop))
        if card is not None:
            stack.enter_context(_locked(card, fcntl.LOCK_EX, waiting, stop))
        yield


@contextmanager
def _locked(name: str, how: int, waiting: Waiting, stop: int | None) -> Iterator[None]:
    descriptor = _opened(name)
    try:
        if not _taken(descriptor, how):
            holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
            what = {CPU: "the CPUs", GATE: "the CPUs"}.get(name, "the card")
            waiting(f"waiting for {what}, on which another run measures" + (f" (process {holder})" if holder else ""))
            while not _taken(descriptor, how):
                if select.select([] if stop is None else [stop], [], [], LOOK_EVERY_S)[0]:
                    raise Stopped
        alone = how == fcntl.LOCK_EX
        if alone:
            os.pwrite(descriptor, f"{os.getpid():<20}".encode(), 0)
        yield
        if alone:
            os.pwrite(descriptor, b" " * 20, 0)
    finally:
        os.close(descriptor)


def _opened(name: str) -> int:
    """The slot's file, made if it is not there; whoever made it, all may lock it."""
    folder = Path(os.environ.get(VARIABLE, FOLDER))
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with suppress(FileExistsError):
            folder.mkdir()
            folder.chmod(0o1777)  # as that of the folder it is in: everybody may take a slot
        for create in (0, os.O_CREAT | os.O_EXCL, 0):  # O_CREAT on another user's file is refused where it is there
            with suppress(FileNotFoundError, FileExistsError):
                descriptor = os.open(folder / name, flags | create, 0o666)
                if create:
                    os.fchmod(descriptor, 0o666)
                return descriptor
        raise FileNotFoundError(2, "No such file", str(folder / name))
    except OSError as error:
        advice = f"remove it, or let {VARIABLE} name a folder that all who measure here may write"
        raise SlotError(f"{folder / name}: cannot be locked ({error.strerror}); {advice}") from error


def _taken(descriptor: int, how: int) -> bool:
    """Whether the lock could be had at once."""
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
