"""Tests of ranks on other nodes, with a fake srun that starts them here; test_slurm_nodes.py has a real one."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.system.test_ranks import run

SRUN = """#!/bin/sh
while [ "${1#--}" != "$1" ]; do shift; done
SLURM_LAUNCH_NODE_IPADDR=127.0.0.1 exec "$@"
"""
FAILING = """#!/bin/sh
exit 3
"""
PASSES = """
problem = lif_devices.Problem(case_of(3, "zero"))
session = session_of(problem, "temporal")
finding = SpotCheck(problem, 0, budget_ns=10**12).check(answer_of("train", session))
"""


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    """The environment variables of a job on the nodes a and b."""
    (tmp_path / "scontrol").write_text("#!/bin/sh\necho a\necho b\n")
    (tmp_path / "srun").write_text(SRUN)
    for path in tmp_path.iterdir():
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return {"SLURM_JOB_NUM_NODES": "2", "SLURMD_NODENAME": "a", "SLURM_JOB_NODELIST": "[a-b]"}


def test_ranks_on_two_nodes_are_the_reference(job: Mapping[str, str]) -> None:
    done = run(
        PASSES
        + """
print(finding.correct, finding.differing, session.provider(), [other.remote for other in session.team.others.values()])
print(session.others_s()[:2], session.others_s()[2] > 0)
""",
        **job,
    )
    passes, seconds = done.stdout.splitlines() or pytest.fail(done.stderr[-2000:])
    assert passes.startswith("True 0 snnbench:") and passes.endswith("3 x gloo on 2 nodes [True, False]"), passes
    assert seconds == "(0.0, 0.0) True", "this machine's CPUs count once"


def test_seconds_of_another_machine_count(job: Mapping[str, str]) -> None:
    done = run(
        """
from snnbench.cases import cpu_time
cpu_time.machine = lambda: "another"
"""
        + PASSES
        + "print(session.others_s()[0] > 0)",
        **job,
    )
    assert done.stdout == "True\n", done.stderr[-2000:]


def test_rank_that_cannot_start_ends_the_case(job: Mapping[str, str], tmp_path: Path) -> None:
    (tmp_path / "srun").write_text(FAILING)
    done = run(PASSES, **job)
    assert done.stderr.splitlines()[-1] == "RuntimeError: rank 2 on node b ended with status 3"


def test_node_without_enough_cpus_is_unavailable(job: Mapping[str, str]) -> None:
    done = run("session_of(lif_devices.Problem(case_of(2, 'zero', threads=100_000)), 'batch')", **job)
    last = done.stderr.splitlines()[-1]
    assert "Unavailable: " in last and last.endswith("CPUs for a rank on its node: expected 100000")


def test_stranger_is_not_taken_for_a_rank(job: Mapping[str, str], tmp_path: Path) -> None:
    stranger = """
import json, socket, sys
with socket.create_connection(("127.0.0.1", json.loads(sys.argv[-1])["listening_at"])) as connection:
    connection.sendall(b"0" * 64)
    assert connection.recv(1) == b""
"""
    (tmp_path / "stranger.py").write_text(stranger)
    first = f'python3 {tmp_path}/stranger.py "$@" || exit 4\n'
    (tmp_path / "srun").write_text(SRUN.replace("SLURM_LAUNCH", f"{first}SLURM_LAUNCH"))
    done = run(PASSES + "print(finding.correct)", **job)
    assert done.stdout == "True\n", done.stderr[-2000:]


def test_stopped_rank_ends_the_pass_and_then_itself(job: Mapping[str, str]) -> None:
    done = run(
        """
from snnbench.backends.torch import team
team.PATIENCE_S = 2.0
import psutil
session = session_of(lif_devices.Problem(case_of(2, "zero")), "neurons")
session.synchronise(session.train())
[rank] = psutil.Process(session.team.others[1].process.pid).children()
rank.suspend()
try:
    session.synchronise(session.train())
except RuntimeError as error:
    print(error)
session.team.close()
print(rank.is_running())
""",
        **job,
    )
    assert done.stdout.splitlines() == ["rank 1 of 2 gave no answer in 2 s", "False"], done.stderr[-2000:]
