"""Slots: locks that let one cell at a time measure on the CPUs or on a card, across all runs of snnbench.

There is a slot for the CPUs and one for every card, each a locked file in a folder that all users of a machine share. A
cell on the CPU has the machine for itself; cells on cards share its CPUs with each other only.
"""

import os
import re
import select
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from snnbench.exits import UserError
from snnbench.files import lock
from snnbench.recording.reading import RECORDS
from snnbench.run.estimate import format_duration
from snnbench.run.process import Stopped
from snnbench.run.status import part

CPU, GATE = "cpu", "gate"
VARIABLE, FOLDER = "SNNBENCH_SLOTS", "/tmp/snnbench-slots"
"""The variable that names the folder of the locked files, and its default: TMPDIR may differ between users."""
LOOK_EVERY_S = 0.25
"""Seconds between attempts of a waiting process: too seldom to disturb a measurement."""

SAY_EVERY_S = 300.0
"""Seconds between lines on a long wait."""

Waiting = Callable[[str], None]
"""Called with a line that names the awaited slot and its holder, and again after each SAY_EVERY_S."""


class SlotError(UserError, OSError):
    """A slot cannot be locked; the message says what to do."""


@contextmanager
def held(card: str | None, waiting: Waiting, stop: int | None = None) -> Iterator[None]:
    """Hold the slot of a card, or that of the CPUs if `card` is None; waits until it is free.

    A process that waits for the CPUs holds the gate, and all have to pass the gate. So later processes cannot overtake
    it, and cells on cards, which share the CPUs, cannot starve a cell on the CPU. Raises SlotError; raises
    process.Stopped once the descriptor `stop` is readable.
    """
    with ExitStack() as stack:
        with _locked(GATE, waiting, stop):
            stack.enter_context(_locked(CPU, waiting, stop, shared=card is not None))
        if card is not None:
            stack.enter_context(_locked(card, waiting, stop))
        yield


@contextmanager
def _locked(name: str, waiting: Waiting, stop: int | None, shared: bool = False) -> Iterator[None]:
    descriptor = _opened(name)
    try:
        if not lock(descriptor, shared, wait=False):
            what = {CPU: "the CPUs", GATE: "the CPUs"}.get(name, "the card")
            does = "for which another run waits, too" if name == GATE else "on which another run measures"
            begun, said = time.monotonic(), 0
            while not lock(descriptor, shared, wait=False):
                if (waited_s := time.monotonic() - begun) >= said * SAY_EVERY_S:
                    still = f", for {format_duration(waited_s)} now" if said else ""
                    waiting(f"waiting for {what}{still}, {does}{_holder(descriptor)}")
                    said += 1
                if select.select([] if stop is None else [stop], [], [], LOOK_EVERY_S)[0]:
                    raise Stopped
        if not shared:
            os.pwrite(descriptor, f"{os.getpid():<20}".encode(), 0)
        yield
        if not shared:
            os.pwrite(descriptor, b" " * 20, 0)
    finally:
        os.close(descriptor)


def _holder(descriptor: int) -> str:
    """Whose run holds a slot, since when and how long it will take, as far as is known; and how not to wait for it."""
    import psutil

    beside = f"runs take turns cell by cell; with {VARIABLE}=FOLDER this one runs beside it, and disturbs both"
    text = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
    if not re.fullmatch("[0-9]+", text):
        return f"; {beside}"
    known = [f"process {text}"]
    with suppress(psutil.Error, OSError, UserError):
        process = psutil.Process(int(text))
        began = time.localtime(process.create_time())
        known += [f"of {process.username()}", f"since {time.strftime('%Y-%m-%d %H:%M', began)}"]
        files = [Path(file.path) for file in process.open_files()]
        if folder := next((path.parent for path in files if path.name == RECORDS), None):
            left_s = part(folder).left_s
            known += [f"into {folder}", *([f"about {format_duration(left_s)} left"] if left_s else [])]
    return f" ({', '.join(known)}); {beside}"


def _opened(name: str) -> int:
    """The slot's file, opened. It is made if it is missing, and all users may lock it."""
    folder = Path(os.environ.get(VARIABLE, FOLDER))
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with suppress(FileExistsError):
            folder.mkdir()
            folder.chmod(0o1777)  # as /tmp: every user may take a slot
        for create in (0, os.O_CREAT | os.O_EXCL, 0):  # O_CREAT is refused on an existing file of another user
            with suppress(FileNotFoundError, FileExistsError):
                descriptor = os.open(folder / name, flags | create, 0o666)
                if create:
                    os.fchmod(descriptor, 0o666)
                return descriptor
        raise FileNotFoundError(2, "No such file", str(folder / name))
    except OSError as error:
        advice = f"remove it, or let {VARIABLE} name a folder that all who measure here may write"
        raise SlotError(f"{folder / name}: cannot be locked ({error.strerror}); {advice}") from error
