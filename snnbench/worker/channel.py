"""A worker's process: its descriptor for the reply, its end with the harness, and a quick end of its own."""

import atexit
import ctypes
import os
import select
import signal
import sys
from typing import NoReturn

PR_SET_PDEATHSIG = 1


def own_descriptor(given: int | None) -> int:
    """A descriptor for the reply alone; standard output is redirected to standard error."""
    reply_fd = os.dup(1) if given is None else given
    os.set_inheritable(reply_fd, False)
    os.dup2(2, 1)
    return reply_fd


def die_with_parent(reply_fd: int) -> None:
    """End this worker if the harness is killed, even if that happened before this call."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    reader = select.poll()
    reader.register(reply_fd, 0)
    if reader.poll(0):  # only an error is reported here: the reader of the reply is gone
        sys.exit("the harness is gone")


def end(status: int) -> NoReturn:
    """End this process at once: a framework's teardown takes up to half a second and changes nothing."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
