"""A worker process, seen from the harness: start it, wait without spinning, end it with all its children.

A worker prints to a file, so that no process has to read its output while it is timed. Its reply comes through its own
pipe. It runs in its own session, so that a kill reaches its children.
"""

import errno
import os
import select
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import snnbench
from snnbench.cases.outcome import Outcome, failed
from snnbench.digest import digest
from snnbench.environments import compiler_caches
from snnbench.exits import UserError
from snnbench.run import survivors
from snnbench.run.pipes import Ends
from snnbench.worker.messages import NOTE, Announce, Measure, Reply, Request, decode_reply, silent, split_notes
from snnbench.worker.server import LAST

LOG_TAIL_BYTES = 8192
LONGEST_END_S = 5.0
"""How long a server may take to end after its input."""
LONGEST_POLL_MS = 2**31 - 1
"""The kernel's limit, 24 days."""
VMSTAT = Path("/proc/vmstat")
PACKAGE = Path(snnbench.__file__).parent


class CannotWait(Exception):
    """This machine cannot wait for a process without polling; the message says so."""


class Broken(UserError):
    """The state of the machine breaks every worker: no file can be opened, or none written. The message says so."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"{error}: no worker can be started; the same command continues once that has changed")


class Stopped(Exception):
    """A worker was stopped on request, without a reply."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a worker ended: its whole reply or None, its exit status as subprocess gives it, and the end of its log."""

    reply: Reply | None
    status: int
    timed_out: bool
    log: str
    wall_s: float
    oom_killed: bool = False


def command(python: Path, adapter: Path) -> list[str]:
    """The worker's command line. -P keeps the current folder off sys.path: files in it may shadow libraries."""
    return [str(python), "-P", "-m", "snnbench.worker", str(adapter)]


def environment(
    threads: int, home: Path, extra: Mapping[str, str] | None = None, current: bool = False
) -> dict[str, str]:
    """The worker's environment variables: thread limits before any framework is imported, and this package on the path.

    PYTHONPATH names a folder that holds only a link to this package, so that no neighbouring package is importable. A
    worker in the `current` Python also gets the packages of this process's PYTHONPATH and of the user's site folder.
    It gets no other variable of Python: they make a Python slower (PYTHONTRACEMALLOC), strip what a library reads
    (PYTHONOPTIMIZE), or turn a library's warning into its end (PYTHONWARNINGS=error).
    """
    limits = dict.fromkeys(
        ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"), str(threads)
    )
    limits["OPENBLAS_THREAD_TIMEOUT"] = "18"  # NumPy's threads would spin 0.1 s after a check, beside the next pass
    fixed = {"PYTHONPATH": str(_package_folder(home)), "PYTHONNOUSERSITE": "1", "PYTHONUNBUFFERED": "1"}
    jax = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}  # or the allocator's peak would be the whole card
    jax["XLA_CLIENT_MEM_FRACTION"] = "0.95"  # as much as torch has
    profiler = {"TEARDOWN_CUPTI": "0"}  # or later sessions of a process may see no kernel
    caches = compiler_caches.shared(home)
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in NOT_INHERITED and not (name.startswith("PYTHON") and name not in (PLACES if current else ()))
    }
    if current:
        del fixed["PYTHONNOUSERSITE"]
        fixed["PYTHONPATH"] = os.pathsep.join(filter(None, (fixed["PYTHONPATH"], os.environ.get("PYTHONPATH"))))
    return {**inherited, **limits, **fixed, **jax, **profiler, **caches, **(extra or {})}


PLACES = ("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONNOUSERSITE")
"""Variables of Python that say where packages are."""
NOT_INHERITED = ("JAX_COMPILATION_CACHE_DIR", "XLA_PYTHON_CLIENT_MEM_FRACTION")
"""Variables that a worker does not get. Beside its newer name, the old name of the fraction hides all GPUs from JAX."""

ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536", "MALLOC_ARENA_MAX": "2"}
"""Freed memory leaves the process, so that a warm heap hides no allocation."""
PASSIVE = {"OMP_WAIT_POLICY": "PASSIVE"}
"""A thread that waits for its team sleeps: nothing is timed, and several workers run at once."""


def further(measure: Measure, home: Path) -> dict[str, str]:
    """Variables for one kind of measurement, beside those of every worker. Only verification keeps programs of JAX."""
    of_memory, of_verify = ALLOCATOR | PASSIVE, PASSIVE | compiler_caches.of_jax(home)
    return {"time": {}, "memory": of_memory, "verify": of_verify, "import": of_verify, "export": of_verify}[measure]


@contextmanager
def stopping() -> Iterator[int]:
    """A descriptor that becomes readable when all workers should stop."""
    descriptor = os.eventfd(0)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@dataclass(slots=True)
class Worker:
    """A started worker. `wait` ends it."""

    process: "subprocess.Popen[bytes]"
    mark: str
    read_fd: int
    log: IO[bytes]
    extensions: Path
    ended: bool = False

    def wait(self, timeout_s: float, stop: int | None = None, announce: Announce = silent) -> Ending:
        """How it ends, from now on. Raises CannotWait; raises Stopped once the descriptor `stop` is readable.

        `announce` gets the worker's notes.
        """
        began, oom_kills = time.monotonic(), _oom_kills()
        try:
            data, timed_out = _wait(self.process, self.read_fd, began + timeout_s, stop, announce)
        finally:
            self.end()
        status = self.process.returncode
        return Ending(
            reply=None if timed_out else decode_reply(data),
            status=status,
            timed_out=timed_out,
            log=_tail(self.log),
            wall_s=time.monotonic() - began,
            oom_killed=status == -signal.SIGKILL and not timed_out and _oom_kills() > oom_kills,
        )

    def end(self) -> None:
        """Kill it, if it lives, with all that it started. When this returns, they are gone."""
        if self.ended:
            return
        self.ended = True
        survivors.end_all(self.process, self.mark)
        if self.process.returncode:
            compiler_caches.release_locks(self.extensions)

    def close(self) -> None:
        """End it; a server ends by itself once its input ends, because the locks of a killed one are released."""
        try:
            if self.process.stdin and not self.ended:
                self.process.stdin.close()
                pidfd = os.pidfd_open(self.process.pid)
                try:
                    select.select([pidfd], [], [], LONGEST_END_S)  # waits without reaping it
                finally:
                    os.close(pidfd)
        finally:
            self.end()
            if self.process.stdin:
                with suppress(BrokenPipeError):  # of a request that it did not read
                    self.process.stdin.close()

    def ask(
        self, request: Request, timeout_s: float, stop: int | None = None, announce: Announce = silent
    ) -> Ending | None:
        """The answer of a server (worker/server.py) to a request; without a whole reply, None, and it is gone.

        Raises CannotWait; raises Stopped once the descriptor `stop` is readable.
        """
        began = time.monotonic()
        assert self.process.stdin is not None
        try:
            with suppress(BrokenPipeError):  # it is gone, which the wait shows
                self.process.stdin.write(request.encode().encode() + LAST)
                self.process.stdin.flush()
            data, timed_out = _wait(self.process, self.read_fd, began + timeout_s, stop, announce, LAST)
        except BaseException:
            self.end()
            raise
        reply = decode_reply(data.removesuffix(LAST)) if data.endswith(LAST) else None
        if reply is None:
            self.end()
            return None
        return Ending(reply, status=0, timed_out=timed_out, log="", wall_s=time.monotonic() - began)


@dataclass(frozen=True, slots=True)
class Program:
    """What a worker runs: its Python, the adapter file and the environment variables.

    Locks of compilers that are older than `stale_s` are released before it starts.
    """

    python: Path
    adapter: Path
    env: Mapping[str, str]
    stale_s: float


def start(
    stack: ExitStack, program: Program, request: Request | None = None, ends: Ends | None = None
) -> Worker | Outcome:
    """A worker that does one request or, without one, a server that answers them one after the other (Worker.ask).

    It is gone when the `stack` closes. Returns a failed outcome if its Python cannot be started. Another call starts
    the other workers of `ends`. Raises Broken if no worker could be started.
    """
    extensions = compiler_caches.extensions_folder(program.env, program.python)
    mark = uuid.uuid4().hex
    own = {survivors.WORKER_ID: mark, compiler_caches.EXTENSIONS: str(extensions)}
    options = ("--serve",) if request is None else ends.options if ends else ()
    try:
        compiler_caches.release_locks(extensions, older_than_s=program.stale_s)
        log = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115  # ruff does not know a stack that is given
        request_file = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        if request is not None:
            request_file.write(request.encode().encode())
            request_file.seek(0)
            if request.measure == "time":  # its compilers begin with empty caches
                folder = tempfile.TemporaryDirectory(prefix="snnbench-", ignore_cleanup_errors=True)
                own |= dict.fromkeys(compiler_caches.CACHES, stack.enter_context(folder))
        read_fd, write_fd = os.pipe()
        stack.callback(os.close, read_fd)
        try:
            process = subprocess.Popen(
                [*command(program.python, program.adapter), "--reply-fd", str(write_fd), *options],
                stdin=subprocess.PIPE if request is None else request_file,
                stdout=log,
                stderr=log,
                env={**program.env, **own},
                pass_fds=(write_fd, *(ends.descriptors if ends else ())),
                start_new_session=True,
            )
        finally:
            os.close(write_fd)
    except OSError as error:
        if error.filename != str(program.python):
            raise Broken(error) from error
        return failed("environment", f"the worker cannot be started: {error}")
    finally:
        if ends:
            ends.close()
    worker = Worker(process, mark, read_fd, log, extensions)
    stack.callback(worker.close)
    return worker


def run(
    python: Path,
    adapter: Path,
    request: Request,
    env: Mapping[str, str],
    timeout_s: float,
    stop: int | None = None,
) -> Ending:
    """Run one worker to its end. When this function returns or raises, the worker is gone.

    Raises Broken, CannotWait; raises Stopped once the descriptor `stop` is readable.
    """
    with ExitStack() as stack:
        worker = start(stack, Program(python, adapter, env, timeout_s), request)
        assert isinstance(worker, Worker), worker.reason
        return worker.wait(timeout_s, stop)


def _wait(
    process: "subprocess.Popen[bytes]",
    read_fd: int,
    deadline: float,
    stop: int | None,
    announce: Announce,
    last: bytes | None = None,
) -> tuple[bytes, bool]:
    """Wait for the end of the process or for `last`; returns its reply, and whether the deadline came first."""
    data = bytearray()
    poller = select.poll()
    try:
        pidfd = os.pidfd_open(process.pid)
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
            raise Broken(error) from error
        reason = f"the kernel has no pidfd_open ({error.strerror}), by which a worker is waited for"
        raise CannotWait(f"{reason}: it takes Linux 5.3 or newer; gVisor has none") from error
    poller.register(read_fd, select.POLLIN | select.POLLHUP)
    poller.register(pidfd, select.POLLIN)
    if stop is not None:
        poller.register(stop, select.POLLIN)
    try:
        while True:
            remaining_ms = (deadline - time.monotonic()) * 1000
            ready = dict(poller.poll(min(max(0.0, remaining_ms), LONGEST_POLL_MS)))
            if stop in ready:
                raise Stopped
            if read_fd in ready:
                if chunk := os.read(read_fd, 1 << 20):
                    data += chunk
                    if data.startswith(NOTE):
                        notes, rest = split_notes(bytes(data))
                        data[:] = rest
                        for note in notes:
                            announce(note)
                    if last and data.endswith(last):
                        return bytes(data), False
                    continue  # a reply is read to its end before the process's end counts
                poller.unregister(read_fd)
            if pidfd in ready:
                return bytes(data), False
            if not ready and time.monotonic() >= deadline:
                return bytes(data), True
    finally:
        os.close(pidfd)


def _tail(log: IO[bytes]) -> str:
    size = log.seek(0, os.SEEK_END)
    log.seek(max(0, size - LOG_TAIL_BYTES))
    return log.read().decode(errors="replace")


def _oom_kills() -> int:
    """How often the kernel has killed a process for memory since boot."""
    try:
        lines = VMSTAT.read_text().splitlines()
    except OSError:  # gVisor lacks the file; there a kill for memory is a crash by SIGKILL
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)


def _package_folder(home: Path) -> Path:
    """A folder that holds only a link to this package."""
    folder = home / "worker" / digest(str(PACKAGE))
    link = folder / PACKAGE.name
    if not link.exists():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                link.symlink_to(PACKAGE)
        except OSError as error:
            raise Broken(error) from error
    return folder
