"""A Slurm for the tests: two nodes on this machine, without accounting, with all its files in one folder.

It runs as the user of the tests, on free ports of the loopback interface, and ends with the fixture.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.processes import within

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel")
NODES = ("a", "b")
CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=1
KillWait=2
ReturnToService=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
NodeName={nodes} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports} CPUs=8 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=INFINITE
"""


class Slurm:
    """A test's direct access to the scheduler, without snnbench."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {"SLURM_CONF": str(folder / "slurm.conf")}

    def say(self, *command: str) -> str:
        """The output of a Slurm command, which must succeed."""
        done = subprocess.run(command, env=os.environ | self.environment, capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
        return done.stdout

    def states(self) -> dict[str, str]:
        """The state of every job."""
        rows = self.say("squeue", "-h", "-r", "-t", "all", "-o", "%i %T").split("\n")
        return dict(row.split() for row in rows if row)

    def node_of(self, job: str) -> str:
        """The node on which a job runs."""
        return self.say("squeue", "-h", "-r", "-j", job, "-o", "%N").split()[0]

    def lose(self, node: str) -> None:
        """Make Slurm treat a node and its jobs as lost; the node comes back at once."""
        self.say("scontrol", "update", f"nodename={node}", "state=down", "reason=test")

    def ready(self) -> bool:
        """Whether every node can be used."""
        return self.say("sinfo", "-h", "-N", "-o", "%T").split() == ["idle"] * len(NODES)


def require() -> None:
    """Skip the test if Slurm is missing; fail it if SNNBENCH_TEST_REQUIRES lists Slurm."""
    missing = [name for name in NEEDED if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None]
    if missing:
        reason = f"not installed: {', '.join(missing)} (Debian and Ubuntu: apt-get install slurm-wlm munge)"
        if "slurm" in os.environ.get("SNNBENCH_TEST_REQUIRES", "").replace(",", " ").split():
            pytest.fail(reason)
        pytest.skip(reason)


@contextmanager
def running(folder: Path) -> Iterator[Slurm]:
    """Run a Slurm with all its files in `folder`."""
    require()
    (folder / "state").mkdir()
    key = folder / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o600)
    controller, *ports = free_ports(1 + len(NODES))
    user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
    settings = {"host": socket.gethostname().split(".")[0], "user": user, "folder": folder, "controller": controller}
    conf = CONF.format(**settings, nodes=",".join(NODES), ports=",".join(map(str, ports)))
    (folder / "slurm.conf").write_text(conf)
    slurm = Slurm(folder)
    munge = [f"--{what}={folder}/munge.{what.removesuffix('-file')}" for what in ("key-file", "pid-file", "log-file")]
    munge += [f"--seed-file={folder}/munge.seed", f"--socket={folder}/munge.socket", "--num-threads=2"]
    with ExitStack() as stack:
        stack.enter_context(_daemon(slurm, "munged", "--foreground", "--force", *munge))
        assert within(10, (folder / "munge.socket").exists), (folder / "munged.out").read_text()
        stack.enter_context(_daemon(slurm, "slurmctld", "-D"))
        for node in NODES:
            stack.enter_context(_daemon(slurm, "slurmd", "-D", "-N", node))
        stack.callback(_cancel_all, slurm)
        assert within(30, lambda: _answers(slurm)), (folder / "slurmctld.out").read_text()[-4000:]
        yield slurm


def free_ports(count: int) -> list[int]:
    """Free ports of the loopback interface."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for free_socket in sockets:
            free_socket.bind(("127.0.0.1", 0))
        return [free_socket.getsockname()[1] for free_socket in sockets]


@contextmanager
def _daemon(slurm: Slurm, name: str, *arguments: str) -> Iterator[None]:
    """Run a program until the end of the context."""
    path = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    log = slurm.folder / f"{'-'.join([name, *arguments[-1:]]) if name == 'slurmd' else name}.out"
    with log.open("w") as output:
        process = subprocess.Popen(
            [str(path), *arguments],
            env=os.environ | slurm.environment,
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _answers(slurm: Slurm) -> bool:
    try:
        return slurm.ready()
    except (AssertionError, subprocess.TimeoutExpired):
        return False


def _cancel_all(slurm: Slurm) -> None:
    """Cancel all jobs, so that no job outlives its node."""
    if active := [job for job, state in slurm.states().items() if state in ("RUNNING", "PENDING", "COMPLETING")]:
        slurm.say("scancel", *active)
        ended = lambda: not {"RUNNING", "COMPLETING"} & set(slurm.states().values())  # noqa: E731
        if not within(15, ended):
            print(f"jobs that did not end: {slurm.states()}", file=sys.stderr)
