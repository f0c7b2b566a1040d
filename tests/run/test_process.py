"""Tests of a worker's process: the harness sleeps while it runs, knows how it ended, and leaves no child process."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from snnbench.cases.outcome import Outcome
from snnbench.run import process
from snnbench.run.process import LOG_TAIL_BYTES, CannotWait, Ending, environment
from tests.fakes import CORRECT, altered, ask, reply_of, request, write
from tests.processes import alive, noted, within

VERIFY = request("verify")
TIMEOUT_S = 4.0
"""Long enough for a worker to start on a busy machine."""
SETTLED_S = 10.0


def dying(statement: str) -> str:
    """A fake that runs this statement in its build."""
    return altered(f"import ctypes, os, signal, subprocess, sys, time\n{statement}\nreturn right")


RECORDED = """
from pathlib import Path

def record(pid):
    with Path(__file__).with_name("pids").open("a") as file:
        file.write(f"{pid}\\n")

"""
GRANDCHILDREN = {
    "a child": "record(subprocess.Popen(['sleep', '60']).pid)",
    "a child without an environment": "record(subprocess.Popen(['/bin/sleep', '60'], env={}).pid)",
    "a child in a session of its own": "record(subprocess.Popen(['sleep', '60'], start_new_session=True).pid)",
    "a child in a session of its own without an environment": (
        "record(subprocess.Popen(['/bin/sleep', '60'], start_new_session=True, env={}).pid)"
    ),
    "a child that init has adopted": "subprocess.run(['sh', '-c', 'setsid sleep 60 & echo $! >> ' + pids])",
    "a fork": "pid = os.fork()\nif not pid:\n    os.setsid()\n    time.sleep(60)\nrecord(pid)",
}
ADOPTED = [name for name in GRANDCHILDREN if "of its own without an environment" not in name]
"""Grandchildren that can be told apart from other processes after the worker's end."""


def family(grandchild: str, then: str) -> str:
    """A fake that starts a process, notes both pids, and then runs `then`."""
    body = f"pids = str(Path(__file__).with_name('pids'))\nrecord(os.getpid())\n{GRANDCHILDREN[grandchild]}\n{then}"
    return dying(body) + RECORDED


def recorded(folder: Path) -> list[int]:
    """The pids noted by a fake in this folder."""
    return noted(folder / "pids")


@pytest.fixture(scope="module")
def hung(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Ending, list[int]]]:
    """The endings of workers that hang, and their noted pids: all at once, because they only wait."""

    home = tmp_path_factory.mktemp("hung")

    def end(grandchild: str) -> tuple[Ending, list[int]]:
        folder = home / grandchild.replace(" ", "-")
        folder.mkdir()
        ending = ask(folder, family(grandchild, "time.sleep(60)"), VERIFY, TIMEOUT_S)
        return ending, recorded(folder)

    with ThreadPoolExecutor(len(GRANDCHILDREN)) as pool:
        return dict(zip(GRANDCHILDREN, pool.map(end, GRANDCHILDREN), strict=True))


@pytest.mark.parametrize("grandchild", GRANDCHILDREN)
def test_hanging_worker_is_killed_with_its_children(hung: dict[str, tuple[Ending, list[int]]], grandchild: str) -> None:
    ending, pids = hung[grandchild]
    assert ending.timed_out and ending.reply is None and not ending.oom_killed
    assert ending.status == -signal.SIGKILL
    assert TIMEOUT_S <= ending.wall_s < TIMEOUT_S + SETTLED_S
    assert len(pids) == 2
    assert within(SETTLED_S, lambda: not any(map(alive, pids)))


@pytest.mark.parametrize("grandchild", ADOPTED)
@pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGSEGV)", "return right"])
def test_ended_worker_leaves_no_child_process(tmp_path: Path, grandchild: str, end: str) -> None:
    ask(tmp_path, family(grandchild, end), VERIFY)
    pids = recorded(tmp_path)
    assert len(set(pids)) >= 2
    assert within(SETTLED_S, lambda: not any(map(alive, pids)))


def test_unrelated_process_survives(tmp_path: Path) -> None:
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        ask(tmp_path, CORRECT, VERIFY)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.parametrize(
    ("statement", "status"),
    [
        ("ctypes.string_at(0)", -signal.SIGSEGV),
        ("os.abort()", -signal.SIGABRT),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("os._exit(3)", 3),
        ("os._exit(0)", 0),
        ("sys.exit(4)", 4),
    ],
)
def test_death_without_a_reply_has_its_exit_status(tmp_path: Path, statement: str, status: int) -> None:
    ending = ask(tmp_path, dying(f"print('last words', flush=True)\n{statement}"), VERIFY)
    assert (ending.reply, ending.status, ending.timed_out, ending.oom_killed) == (None, status, False, False)
    assert "last words" in ending.log


def test_death_in_a_pass_has_its_exit_status(tmp_path: Path) -> None:
    source = altered("import ctypes\nreturn Network(lambda x: ctypes.string_at(0), right.backward)")
    assert ask(tmp_path, source, VERIFY).status == -signal.SIGSEGV


FIND_DESCRIPTOR = "descriptor = int(sys.argv[sys.argv.index('--reply-fd') + 1])\n"


@pytest.mark.parametrize("part", ['{"protocol": 1, "outcome": {"sta', '{"protocol": 1, "outcome": {}}'])
def test_truncated_reply_is_ignored(tmp_path: Path, part: str) -> None:
    ending = ask(tmp_path, dying(f"{FIND_DESCRIPTOR}os.write(descriptor, {part.encode()!r})\nos._exit(0)"), VERIFY)
    assert (ending.reply, ending.status, ending.timed_out) == (None, 0, False)


def test_closed_descriptor_gives_no_reply(tmp_path: Path) -> None:
    ending = ask(tmp_path, dying(f"{FIND_DESCRIPTOR}os.close(descriptor)"), VERIFY)
    assert ending.reply is None and ending.status == 1 and not ending.timed_out


def test_reply_larger_than_a_pipe_arrives_whole(tmp_path: Path) -> None:
    source = dying("from snnbench.adapter import Unsupported\nraise Unsupported('x' * 3_000_000)")
    assert len(reply_of(ask(tmp_path, source, VERIFY)).outcome.reason) == 3_000_000


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_large_output_neither_blocks_nor_hides_its_end(tmp_path: Path, stream: str) -> None:
    statement = f"sys.{stream}.write('noise ' * 200_000)\nprint('the end', file=sys.{stream}, flush=True)"
    ending = ask(tmp_path, dying(statement), VERIFY)
    assert reply_of(ending).outcome.status == "measured"
    assert "the end" in ending.log
    assert len(ending.log) <= LOG_TAIL_BYTES


def test_binary_log_is_kept(tmp_path: Path) -> None:
    ending = ask(tmp_path, dying(r"os.write(1, b'\xff\xfe\n')"), VERIFY)
    assert reply_of(ending).outcome.status == "measured" and ending.log


def test_worker_that_hangs_after_its_reply_is_killed(tmp_path: Path) -> None:
    source = CORRECT + "\nimport atexit, time\natexit.register(time.sleep, 60)\n"
    ending = ask(tmp_path, source, VERIFY, 2.0)
    assert ending.timed_out and ending.status == -signal.SIGKILL


@pytest.mark.parametrize("timeout_s", [1e9, float("inf")])
def test_timeout_may_be_longer_than_the_kernel_can_wait(tmp_path: Path, timeout_s: float) -> None:
    assert reply_of(ask(tmp_path, CORRECT, VERIFY, timeout_s)).outcome.status == "measured"


def test_missing_interpreter_leaks_nothing(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    program = process.Program(tmp_path / "python", write(tmp_path, CORRECT), environment(1, tmp_path), 1)
    with ExitStack() as stack:
        assert isinstance(process.start(stack, program, VERIFY), Outcome)
    assert os.listdir("/proc/self/fd") == before


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    ask(tmp_path, CORRECT, VERIFY)
    ask(tmp_path, dying("os._exit(3)"), VERIFY)
    assert os.listdir("/proc/self/fd") == before


HARNESS = """
import signal
import sys
from pathlib import Path
from snnbench.run.process import environment, run
from snnbench.worker.messages import decode_request

signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background job would not have
run(Path(sys.executable), Path(sys.argv[1]), decode_request(sys.stdin.read()), environment(1, Path(sys.argv[2])), 60)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_stopped_harness_leaves_no_worker(tmp_path: Path, number: signal.Signals) -> None:
    adapter = write(tmp_path, family("a child in a session of its own", "time.sleep(60)"))
    harness = subprocess.Popen(
        [sys.executable, "-c", HARNESS, str(adapter), str(tmp_path)], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert harness.stdin is not None
    harness.stdin.write(VERIFY.encode().encode())
    harness.stdin.close()
    assert within(SETTLED_S, lambda: len(recorded(tmp_path)) == 2), "the worker did not start"
    worker, grandchild = recorded(tmp_path)
    try:
        harness.send_signal(number)
        harness.wait(SETTLED_S)
        assert within(SETTLED_S, lambda: not alive(worker))
        if number == signal.SIGINT:  # after SIGKILL no process is left to end it
            assert not alive(grandchild)
    finally:
        for pid in (worker, grandchild):
            if alive(pid):
                os.kill(pid, signal.SIGKILL)


def test_parent_sleeps_while_a_worker_works(tmp_path: Path) -> None:
    started, cpu = time.monotonic(), time.process_time()
    ending = ask(tmp_path, dying("time.sleep(1)"), VERIFY)
    used, lasted = time.process_time() - cpu, time.monotonic() - started
    assert reply_of(ending).outcome.status == "measured"
    assert lasted > 2, "build sleeps for the exam and for the case"
    assert used / lasted < 0.01


def test_missing_pidfd_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(pid: int) -> int:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", refused)
    with pytest.raises(CannotWait, match=r"no pidfd_open \(Function not implemented\).*Linux 5.3 or newer"):
        ask(tmp_path, dying("time.sleep(60)"), VERIFY)


def test_oom_kill_is_a_crash_without_a_kernel_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "VMSTAT", tmp_path / "gone")
    ending = ask(tmp_path, dying("os.kill(os.getpid(), 9)"), VERIFY)
    assert (ending.status, ending.oom_killed) == (-9, False)
