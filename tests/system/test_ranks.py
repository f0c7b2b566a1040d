"""Tests of a network divided among ranks: real processes on gloo, their answers, refusals and deaths."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.whole import WHOLE

ROOT = Path(__file__).parents[2]
SCRIPT = """
import json, os, signal, sys, time
import numpy as np, torch
from pathlib import Path
from snnbench import workloads
from snnbench.adapter import Unsupported, loading, reading
from snnbench.backends.torch import Backend
from snnbench.proof import exam
from snnbench.proof.passes import answer_of
from snnbench.proof.spotcheck import SpotCheck
from snnbench.cases.case import PROFILES
from snnbench.workloads import lif_devices
from tests.fakes import LIF

torch.set_num_threads(1)
path = Path("adapters/fused-devices.py")
module, declared = loading.load(path), reading.read(path)
given = {name: value for name, value in LIF.as_dict().items() if name != "workload"}

def session_of(problem, variant):
    build = workloads.of(problem.case).builder(module)
    return Backend(problem.case).session(build, declared.variants[variant], problem)

def case_of(devices, profile, **changes):
    reset, detach = PROFILES[profile]
    return lif_devices.Case(**given | {"devices": devices, "reset": reset, "detach_reset": detach} | changes)
"""


def run(body: str, timeout_s: float = 120.0, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run SCRIPT and this body in a process of its own, with these environment variables."""
    pytest.importorskip("torch")
    script = SCRIPT + textwrap.dedent(body)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **variables}
    command = [sys.executable, "-c", script]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False
    )


def test_every_phase_on_several_ranks_is_the_reference() -> None:
    """On one to four ranks, or on two where few cases are taken."""
    every = [(1, "zero"), (3, "zero-attached"), (4, "subtract-detached"), (2, "subtract")]
    done = run(
        f"""
        for devices, profile in {every if WHOLE else every[-1:]}:
            case = case_of(devices, profile)
            for variant in ("temporal", "batch", "neurons"):
                [small] = lif_devices.exams(case)
                session = session_of(small, variant)
                def passed(which, cotangent):
                    session.load(which, cotangent)
                    outputs = session.train()
                    session.synchronise(outputs)
                    return session.answer(*outputs)
                finding = exam.run_exam(small, passed)
                assert finding.correct, (devices, variant, finding.message)
                problem = lif_devices.Problem(case)
                session = session_of(problem, variant)
                for which in (0, 1):
                    session.load(which, which)
                    for phase in ("inference", "forward", "backward", "train"):
                        finding = SpotCheck(problem, which, budget_ns=10**12).check(answer_of(phase, session))
                        assert finding.correct and finding.differing == 0, (devices, variant, phase, finding.message)
                saved = [session.forward() for _ in range(3)]
                for each in saved:
                    outputs = each, session.backward(each)
                session.synchronise(outputs)
                del saved, each, outputs
                assert session.static_bytes() == 8 * case.updates
                assert devices == 1 or session.others_s()[2] > 0
        print("done", session.provider())
        """
    )
    assert done.stdout.startswith("done snnbench:") and done.stdout.strip().endswith("2 x gloo"), done.stderr[-2000:]


def test_gradients_in_float64_keep_their_precision() -> None:
    done = run(
        """
        problem = lif_devices.Problem(case_of(2, "zero", dtype="float64"))
        session = session_of(problem, "batch")
        finding = SpotCheck(problem, 0, budget_ns=10**12).check(answer_of("train", session))
        print(finding.correct, finding.message)
        """
    )
    assert done.stdout.startswith("True"), done.stdout + done.stderr[-2000:]


def test_too_little_work_for_the_ranks_is_unsupported() -> None:
    done = run(
        """
        try:
            session_of(lif_devices.Problem(case_of(2, "zero", batch=1)), "batch")
        except Unsupported as error:
            print(error)
        """
    )
    assert done.stdout == "2 ranks for 1 samples: expected one each at least\n", done.stderr[-2000:]


@pytest.mark.parametrize("variant", ["temporal", "neurons"])
def test_killed_rank_ends_the_pass_in_seconds(variant: str) -> None:
    done = run(
        f"""
        session = session_of(lif_devices.Problem(case_of(2, "zero")), {variant!r})
        session.synchronise(session.train())
        victim = session.team.others[1].process.pid
        os.kill(victim, signal.SIGKILL)
        started = time.monotonic()
        try:
            session.synchronise(session.train())
        except RuntimeError as error:
            print(error, time.monotonic() - started < 10)
        """
    )
    assert done.stdout == "rank 1 of 2 died of signal 9 True\n", done.stderr[-2000:]


def test_silent_rank_ends_the_pass_after_the_patience() -> None:
    done = run(
        """
        from datetime import timedelta
        from snnbench.backends.torch import team
        team.PATIENCE_S, team.PATIENCE = 2.0, timedelta(seconds=20)
        session = session_of(lif_devices.Problem(case_of(2, "zero")), "neurons")
        session.synchronise(session.train())
        os.kill(session.team.others[1].process.pid, signal.SIGSTOP)
        try:
            session.synchronise(session.train())
        except RuntimeError as error:
            print(error)
        """
    )
    assert done.stdout == "rank 1 of 2 gave no answer in 2 s\n", done.stderr[-2000:]


def test_error_of_a_rank_keeps_its_kind() -> None:
    done = run(
        """
        session = session_of(lif_devices.Problem(case_of(2, "zero")), "neurons")
        import socket
        from dataclasses import replace
        from snnbench.backends.torch import wire
        for kind in (MemoryError, Unsupported, KeyError):
            own, other = socket.socketpair()
            other.sendall(wire.failure(kind("too much")))
            session.team.others[1] = replace(session.team.others[1], connection=own)
            session.team._waiting[1] = 1
            try:
                session.team.wait()
            except Exception as error:
                print(type(error).__name__, error)
        """
    )
    expected = ["MemoryError too much", "Unsupported too much", "RuntimeError rank 1 of 2: KeyError: 'too much'"]
    assert done.stdout.splitlines() == expected, done.stderr[-2000:]


def test_ranks_end_with_the_worker() -> None:
    done = run(
        """
        session = session_of(lif_devices.Problem(case_of(2, "zero")), "neurons")
        print(session.team.others[1].process.pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    assert done.returncode == -signal.SIGKILL
    rank = int(done.stdout)
    with pytest.raises(ProcessLookupError):
        for _ in range(100):
            os.kill(rank, 0)
            subprocess.run(["sleep", "0.05"], check=True)
