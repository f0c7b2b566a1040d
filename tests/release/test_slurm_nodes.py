"""Tests of ranks on the two nodes of a real Slurm: their proofs and records, and their deaths."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from snnbench import checking
from tests.processes import alive, within
from tests.slurm import NODES, Slurm, running
from tests.slurm_run import SLOW_S, Run

pytestmark = pytest.mark.slurm

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0
"""How long a rank may be silent. A death is noticed sooner."""
NOTING = """
import os, signal
from pathlib import Path

def note():
    folder, node = Path(__file__).parent, os.environ["SLURMD_NODENAME"]
    with (folder / "ranks").open("a") as file:
        file.write(f"{node} {os.getpid()}\\n")
    if node == "b" and (folder / "fatal").exists():
        os.kill(os.getpid(), signal.SIGKILL)

def noting(layer):
    def forward(current):
        note()
        return layer(current)
    return forward
"""
"""Has each pass of an adapter note its node and its process; the rank on node b dies if there is a file `fatal`."""
SMALL = {
    "sweep.libraries": '["fused-devices/temporal", "fused-devices/neurons"]',
    "case.devices": "2",
    "case.neurons": "64",
    "sweep.time_steps": "16",
    "protocol.trials": "1",
    "protocol.memory_trials": "0",
    "protocol.max_phase_seconds": "0.5",
    "protocol.remeasure": "0",
}
ORPHANED = """
import os, signal, sys
from pathlib import Path
from snnbench import workloads
from snnbench.adapter import loading, reading
from snnbench.backends.torch import Backend
from snnbench.cases.case import PROFILES
from snnbench.workloads import lif_devices
from tests.fakes import LIF

path = Path(sys.argv[1])
given = {name: value for name, value in LIF.as_dict().items() if name != "workload"}
problem = lif_devices.Problem(lif_devices.Case(**given | {"devices": 2, "reset": "zero"}))
variant = reading.read(path).variants["neurons"]
session = Backend(problem.case).session(workloads.of(problem.case).builder(loading.load(path)), variant, problem)
session.synchronise(session.train())
print(session.provider(), flush=True)
ranks = dict(line.split() for line in (path.parent / "ranks").read_text().splitlines())
os.kill(int(ranks["b"]), signal.SIGSTOP)
os.kill(os.getpid(), signal.SIGKILL)
"""
"""A rank 0 that stops the rank on the other node and dies."""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """A Slurm without jobs."""
    pytest.importorskip("torch")
    with running(tmp_path_factory.mktemp("slurm")) as started:
        yield started


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    """The fused kernel on many devices, with notes of its passes."""
    text = (ROOT / "adapters/fused-devices.py").read_text()
    parts = "lambda current: layer(current, **options)"
    assert parts in text
    path = tmp_path / "fused-devices.py"
    path.write_text(text.replace(parts, f"noting({parts})") + NOTING)
    return path


def ranks(folder: Path) -> set[tuple[str, int]]:
    """The node and the process of every rank that ran a pass."""
    return {(node, int(pid)) for node, pid in map(str.split, (folder / "ranks").read_text().splitlines())}


def left(folder: Path) -> list[str]:
    """The command lines of ranks that still run an adapter in this folder."""
    lines = [path.read_bytes().decode() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    return [line for line in lines if "snnbench.backends.torch" in line and str(folder) in line]


def command(adapter: Path) -> list[str | Path]:
    """`run` of the config `devices`, small, on two devices."""
    settings = [word for key, value in SMALL.items() for word in ("--set", f"{key}={value}")]
    return ["run", "--config", "devices", "--env", "current", "--adapter", adapter, *settings]


def test_ranks_on_two_nodes_are_exact(slurm: Slurm, tmp_path: Path, adapter: Path) -> None:
    run = Run(tmp_path, slurm, command(adapter))
    status, messages = run.whole("--slurm", "nodes=2", "--slurm", "time=5")
    assert status == 0, messages
    for record in run.records:
        assert (record.status, record.outcome.verdict) == ("measured", "exact"), record
    (merged,) = (tmp_path / "results").glob("*")
    (complaint,) = checking.check(merged)
    assert "replaced snnbench's own adapters: fused-devices" in complaint.text
    assert {node for node, _ in ranks(tmp_path)} == set(NODES)
    assert "2 nodes" in (merged / "machine.json").read_text()


def test_killed_rank_on_another_node_ends_its_cell(slurm: Slurm, tmp_path: Path, adapter: Path) -> None:
    (tmp_path / "fatal").touch()
    run, started = Run(tmp_path, slurm, command(adapter)), time.monotonic()
    _, messages = run.whole("--slurm", "nodes=2", "--slurm", "time=5")
    assert time.monotonic() - started < PATIENCE_S, messages
    assert len(run.records) == 2
    for record in run.records:
        assert (record.outcome.kind, record.outcome.reason) == ("crash", "RuntimeError: rank 1 of 2 died of signal 9")
    assert not [pid for _, pid in ranks(tmp_path) if alive(pid)] and not left(tmp_path)


def test_stopped_rank_ends_with_rank_0(slurm: Slurm, tmp_path: Path, adapter: Path) -> None:
    script = tmp_path / "orphaned.py"
    script.write_text(ORPHANED)
    line = f"PYTHONPATH={ROOT} {sys.executable} {script} {adapter}"
    slurm.say("sbatch", "--nodes=2", f"--output={tmp_path}/log", f"--chdir={tmp_path}", f"--wrap={line}; sleep 20")
    assert within(SLOW_S, lambda: "Killed" in (tmp_path / "log").read_text() if (tmp_path / "log").exists() else False)
    assert "2 x gloo on 2 nodes" in (tmp_path / "log").read_text()
    assert within(10, lambda: not left(tmp_path) and not [pid for _, pid in ranks(tmp_path) if alive(pid)])
