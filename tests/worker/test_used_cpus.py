"""Tests of the CPUs that a worker uses: its threads and processes may take as many as the case has threads."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from snnbench.worker import used_cpus
from snnbench.worker.used_cpus import UsedCpus
from tests.fakes import CORRECT, altered, ask, reply_of, request

BURN = "import time\nuntil = time.process_time() + {:g}\nwhile time.process_time() < until: pass\n"
THREADS = """
import os
import threading

if {measured}:
    os.sched_setaffinity(0, range(os.cpu_count()))

    def work():
        values = np.ones(1 << 22)
        out = np.empty_like(values)
        while True:
            np.sin(values, out=out)

    threading.Thread(target=work, daemon=True).start()
return right
"""
"""A thread that computes beside the passes, in long calls, in which NumPy lets go of the interpreter."""
PROCESS = f"""
import os
import subprocess
import sys

if {{measured}}:
    os.sched_setaffinity(0, range(os.cpu_count()))
    subprocess.Popen([sys.executable, "-c", {BURN.format(30)!r}])
return right
"""


def test_seconds_of_processes_count_while_they_run_and_when_they_have_ended() -> None:
    before_s = used_cpus.of_children_s()
    grandchild = "import subprocess, sys, time\n" + f"subprocess.run([sys.executable, '-c', {BURN.format(0.2)!r}])\n"
    program = grandchild + "print(flush=True)\ntime.sleep(9)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as child:
        assert child.stdout
        child.stdout.readline()
        assert used_cpus.of_children_s() - before_s > 0.19
        child.kill()
    subprocess.run([sys.executable, "-c", BURN.format(0.2)], check=True)
    assert used_cpus.of_children_s() - before_s > 0.39


def test_repetitions_decide_and_other_passes_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """A first call of 10 s on no CPU, a pass of 1 s on one, and repetitions of 4, 5 and 4 s on 1, 2 and 3 CPUs."""
    walls, cpus = iter([0, 10, 10, 11, 11, 15, 15, 20, 20, 24]), iter([0, 0, 0, 1, 1, 5, 5, 15, 15, 27])
    monkeypatch.setattr(used_cpus.time, "perf_counter", lambda: next(walls))
    monkeypatch.setattr(used_cpus, "seconds", lambda: next(cpus))
    used = UsedCpus(lambda: 7)
    assert [used.count() for _ in range(10)] == [7] * 10
    error_s = 3 * (3 * 2 / 6) ** 0.5 / os.sysconf("SC_CLK_TCK")
    timing = {"repetitions_ns": [4_000_000_000, 5_000_000_000, 4_000_000_000]}
    assert used.cpus(timing, 2) == round((26 - error_s) / 13, 3)
    contested = {"repetitions_ns": [1_000_000_000], "contested_ns": timing["repetitions_ns"]}
    assert used.cpus(contested, 2) == used.cpus(timing, 2), "a single pass is too short"


def test_cpus_of_an_epoch_are_those_of_its_contention() -> None:
    epoch = {"repetitions_ns": [1], "contention": {"own_cpus": 1.25}}
    assert UsedCpus(lambda: None).cpus(epoch, 1) == 1.25


@pytest.mark.parametrize(
    ("cpus", "threads", "complaint"),
    [
        (1.1, 1, None),
        (1.11, 1, "train uses 1.11 CPUs where the case has 1 thread"),
        (3.4, 2, "train uses 3.4 CPUs where the case has 2 threads"),
    ],
)
def test_tenth_of_a_cpu_more_is_allowed(cpus: float, threads: int, complaint: str | None) -> None:
    assert used_cpus.complaint("train", cpus, threads) == complaint


def refused(folder: Path, fault: str, **changes: Any) -> str:
    """Why a library with this fault gets no time."""
    asked = request("time", phases=("inference",), min_repetition_ns=50_000_000, **changes)
    reply = reply_of(ask(folder, altered(fault.replace("{measured}", "case.neurons == 48")), asked))
    assert reply.outcome and reply.outcome.kind == "incorrect" and not reply.phases, reply
    return str(reply.outcome.reason)


@pytest.mark.quiet
@pytest.mark.parametrize("fault", [THREADS, PROCESS])
def test_time_with_more_threads_or_processes_than_the_case_has_is_refused(tmp_path: Path, fault: str) -> None:
    uses, _, rest = refused(tmp_path, fault).partition(" CPUs ")
    assert (uses[: len("inference uses 1.")], rest) == ("inference uses 1.", "where the case has 1 thread")


@pytest.mark.parametrize("fault", [THREADS, PROCESS])
def test_thread_or_process_that_leaves_the_cpus_of_its_case_is_refused(tmp_path: Path, fault: str) -> None:
    """On an idle machine it also takes the time of the other CPUs, and that is said first."""
    first, *others = sorted(os.sched_getaffinity(0))
    why = refused(tmp_path, fault, cpus=(first,))
    unpinned = f"inference may run on CPU {', '.join(map(str, others))}, to which its case is not pinned"
    assert why == unpinned or re.fullmatch(r"inference uses [\d.]+ CPUs where the case has 1 thread", why)


def test_honest_worker_has_the_cpus_of_its_repetitions_recorded(tmp_path: Path) -> None:
    reply = reply_of(ask(tmp_path, CORRECT, request("time", phases=("inference",), min_repetition_ns=20_000_000)))
    assert 0.1 < reply.phases["inference"]["contention"]["timed_cpus"] <= 1.1
