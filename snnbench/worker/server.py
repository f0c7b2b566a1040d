"""A worker that answers many requests: it loads the adapter once, and answers each request in a fork of itself.

A fork starts with the libraries loaded, and with nothing that an earlier request left: no patched function, no state,
no compiled program. What it changes or breaks dies with it, and so does every process that it started.

A request is a JSON document that a null byte ends. The answer, a reply as of any worker, ends with a null byte, too. If
a fork dies, nothing or half a reply stands before that byte.
"""

import ctypes
import gc
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from snnbench.worker.channel import end

LAST = b"\0"
"""The last byte of a request and of its answer."""
PR_SET_CHILD_SUBREAPER = 36


def serve(reply_fd: int, load: Callable[[str], Any], answer: Callable[[Any, str], int], adapter: Path) -> int:
    """Answer the requests on standard input until it ends.

    `load` gets the first request, and `answer` what it gave and each request.
    """
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    loaded, forks = None, None
    for text in _requests():
        if forks is None:
            loaded = load(text)
            gc.collect()
            gc.freeze()  # the forks share these objects, and a collection would copy them
            forks = not _runs_threads()
        if forks:
            _in_fork(partial(answer, loaded, text))
        else:
            _in_process(reply_fd, adapter, text)
        _end_children()
        os.write(reply_fd, LAST)
    return 0


def _requests() -> Iterator[str]:
    data = bytearray()
    while chunk := os.read(0, 1 << 16):
        data += chunk
        while LAST in data:
            text, _, data = data.partition(LAST)
            yield text.decode()


def _runs_threads() -> bool:
    """Whether threads run that a fork would lack: locks that they hold would stay locked in it.

    OpenBLAS ends its own before each fork, so they are counted after one.
    """
    if (pid := os.fork()) == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return len(os.listdir("/proc/self/task")) > 1


def _in_fork(answer: Callable[[], int]) -> None:
    """Answer in a fork, and return when it has ended."""
    if pid := os.fork():
        os.waitpid(pid, 0)
        return
    status = 1
    try:
        status = answer()
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        end(status)


def _in_process(reply_fd: int, adapter: Path, text: str) -> None:
    """Answer in a process that loads the adapter again, and return when it has ended."""
    command = [sys.executable, "-P", "-m", "snnbench.worker", str(adapter), "--reply-fd", str(reply_fd)]
    subprocess.run(command, input=text.encode(), pass_fds=(reply_fd,))


def _end_children() -> None:
    """Kill all processes that an answer started and left: they are children of this process once their parent died."""
    while children := _children():
        for pid in children:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in children:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _children() -> list[int]:
    """The children of this process."""
    own = os.getpid()
    children = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):
                _, _, after_name = (folder / "stat").read_text(errors="replace").rpartition(")")
                if int(after_name.split()[1]) == own:
                    children.append(int(folder.name))
    return children
