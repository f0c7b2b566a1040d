"""Slots: what only one cell may measure on at a time, whichever run of snnbench it belongs to.

There is one for the CPUs and one for every card, each a locked file in the folder for temporary files, which all users
of a machine share. A cell on the CPU has the machine for itself; cells on cards share its CPUs with each other only.
"""

import fcntl
import os
import select
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from snnbench.process import Stopped

CPU = "cpu"
FOLDER = "snnbench-slots"
LOOK_EVERY_S = 0.25
"""How often somebody who waits looks again: too seldom to disturb whoever measures."""

Waiting = Callable[[str], None]
"""Is told, once, what is being waited for."""


@contextmanager
def held(card: str | None, waiting: Waiting, stop: int | None = None) -> Iterator[None]:
    """Hold the slot of a card, or that of the CPUs where there is none; waits until it is free.

    Raises process.Stopped once there is something to be read from the descriptor `stop`.
    """
    with ExitStack() as stack:
        stack.enter_context(_locked(CPU, card is not None, waiting, stop))
        if card is not None:
            stack.enter_context(_locked(card, False, waiting, stop))
        yield


@contextmanager
def _locked(name: str, shared: bool, waiting: Waiting, stop: int | None) -> Iterator[None]:
    folder = Path(tempfile.gettempdir()) / FOLDER
    with suppress(FileExistsError):
        folder.mkdir()
        folder.chmod(0o1777)  # as that of the folder it is in: everybody may take a slot
    descriptor = os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        with suppress(PermissionError):
            os.fchmod(descriptor, 0o666)
        how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        if not _taken(descriptor, how):
            holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
            waiting(f"waiting for the {'CPUs' if name == CPU else 'card'}, on which process {holder or '?'} measures")
            while not _taken(descriptor, how):
                if select.select([] if stop is None else [stop], [], [], LOOK_EVERY_S)[0]:
                    raise Stopped
        if not shared:
            os.pwrite(descriptor, f"{os.getpid():<20}".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _taken(descriptor: int, how: int) -> bool:
    """Whether the lock could be had at once."""
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
