"""Tests of the verifier: cells share a process, and no cell changes the verdict of another."""

import time
from pathlib import Path

import pytest

from snnbench.adapter import reading
from snnbench.cases.outcome import Outcome
from snnbench.environments import compiler_caches
from snnbench.files import home
from snnbench.machine import cpus
from snnbench.plan.cell import Cell
from snnbench.run.executor import Executor, Sharing
from snnbench.run.process import environment
from snnbench.run.store import InMemory
from tests.bench import HERE, SMALL, Bench, Watcher, bench
from tests.fakes import CORRECT, write
from tests.processes import alive, noted
from tests.recordings import EXACT

__all__ = ["bench"]

VARIANTS = {
    "patches": "reference.network_forward = lambda weights, x, case: 1 / 0\nnp.einsum = np.dot = np.matmul = None",
    "leaves": "STATE.append('left')\nos.environ['LEFT'] = 'left'\nos.chdir('/')",
    "lies": "return network(replace(case, beta=case.beta / 2), weights)",
    "exits": "os._exit(0)",
    "kills": "os.killpg(0, 9)",
    "fills": "np.ones(1 << 40)",
    "hangs": "time.sleep(60)",
    "refuses": "from snnbench.adapter import Unsupported\nraise Unsupported('not here')",
    "starts": "note('pids', subprocess.Popen(['sleep', '60'], start_new_session=True).pid)",
}
"""Variant -> a statement of its build, before it returns the right network."""
ALONE = {"patches", "lies", "exits", "kills", "fills", "hangs"}
"""The variants that fail."""
HEAD = """
import os
import subprocess
import sys
import time
from pathlib import Path

STATE = []
VARIANTS = {variants}


def note(name, text):
    with Path(__file__).with_suffix("." + name).open("a") as file:
        file.write(str(text) + "\\n")



def build(case, weights, variant):
    assert variant == "leaves" or (STATE == [] and "LEFT" not in os.environ)
{branches}    return network(case, weights)


note("loads", os.getpid())
"""


def adapter(folder: Path, head: str = "", name: str = "many") -> Path:
    """A fake with these variants, and an honest one after each."""
    variants, branches = {"honest": "the right network"}, ""
    for variant, statement in VARIANTS.items():
        body = statement.replace("\n", "\n        ")
        branches += f"    if variant == {variant!r}:\n        {body}\n"
        variants |= {variant: "no good neighbour", f"after-{variant}": "the right network"}
    source, _, _ = CORRECT.partition("def build(")
    return write(folder, source + HEAD.format(variants=variants, branches=branches) + head, name)


def loads(path: Path) -> list[int]:
    """The processes that loaded a fake."""
    return noted(path.with_suffix(".loads"))


def outcomes(bench: Bench, path: Path, variants: list[str], timeout_s: float = 20.0) -> dict[str, Outcome]:
    """The outcomes of these variants, verified by one thread in this order."""
    bench.adapters = {path.stem: reading.read(path)}
    bench.interpreters = {((path.stem, variant), ()): HERE for variant in variants}
    bench.protocol = bench.protocol.model_copy(update={"timeout_seconds": timeout_s})
    kept = InMemory()
    plan = [Cell(SMALL, path.stem, variant, 0, "verify") for variant in variants]
    Executor(bench.setup(), kept, Watcher()).execute(plan)
    return {record.variant: record.outcome for record in kept.records}


@pytest.fixture(autouse=True)
def one_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpus, "usable_cpus", lambda *given: 1)


def test_bad_neighbours_change_no_verdict(bench: Bench, tmp_path: Path) -> None:
    """Each outcome is that of a process of its own, also after a neighbour that patches, leaves state, lies or dies."""
    path = adapter(tmp_path)
    names = list(reading.read(path).variants)
    shared = outcomes(bench, path, names, timeout_s=2.0)
    assert all(shared[name] == EXACT for name in names if name == "honest" or name.startswith("after-"))
    kinds = {name: shared[name].kind for name in VARIANTS}
    assert kinds == {
        "patches": "crash",
        "leaves": None,
        "lies": "incorrect",
        "exits": "lost",
        "kills": "crash",
        "fills": "oom-host",
        "hangs": "timeout",
        "refuses": "unsupported",
        "starts": None,
    }
    assert not any(alive(pid) for pid in noted(path.with_suffix(".pids")))
    # A server and a process of its own for each failure, and the first server; all other cells share these servers.
    assert len(loads(path)) == 2 * len(ALONE) + 1


def test_cells_of_one_adapter_share_a_process(bench: Bench, tmp_path: Path) -> None:
    path = adapter(tmp_path)
    honest = ["honest", *(f"after-{name}" for name in VARIANTS)]
    assert set(outcomes(bench, path, honest).values()) == {EXACT}
    assert len(loads(path)) == 1


def test_end_of_a_server_leaves_the_locks_of_others(bench: Bench, tmp_path: Path) -> None:
    """Another worker of this Python may compile an extension meanwhile."""
    lock = compiler_caches.extensions_folder(environment(1, home()), HERE.python) / "dynamics" / "lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    assert set(outcomes(bench, adapter(tmp_path), ["honest", "after-lies"]).values()) == {EXACT}
    assert lock.exists()


def test_failure_in_a_shared_process_alone_does_not_stand(bench: Bench, tmp_path: Path) -> None:
    """A fake that fails in each fork, but never in a process of its own."""
    path = adapter(tmp_path, 'os.register_at_fork(after_in_child=lambda: STATE.append("forked"))\n')
    assert set(outcomes(bench, path, ["honest", "after-lies", "after-exits"]).values()) == {EXACT}
    assert len(loads(path)) == 4, "after the first failure in a server's first cell, each cell has its own process"


def test_adapter_that_breaks_while_it_loads_has_its_own_outcome(bench: Bench, tmp_path: Path) -> None:
    path = adapter(tmp_path, "os.kill(os.getpid(), 11)\n")
    each = outcomes(bench, path, ["honest", "after-lies"])
    assert {(outcome.kind, outcome.reason) for outcome in each.values()} == {("crash", "died of SIGSEGV")}


def test_process_with_threads_is_not_forked(bench: Bench, tmp_path: Path) -> None:
    path = adapter(tmp_path, "import threading\nthreading.Thread(target=time.sleep, args=[60], daemon=True).start()\n")
    assert set(outcomes(bench, path, ["honest", "after-lies"]).values()) == {EXACT}
    assert len(loads(path)) == 3, "the server, and a process for each cell"


def test_threads_begin_with_a_group_of_their_own_and_compiled_cells_come_last() -> None:
    names = ["a", "a", "a", "b", "compiled", "a", "b"]
    plan = [Cell(SMALL, name, "default", trial, "verify") for trial, name in enumerate(names)]
    sharing = Sharing(plan, lambda cell: cell.library, lambda cell: cell.library == "compiled")
    first, second = sharing.cells(), sharing.cells()
    turns = [next(thread).library for thread in (first, second, first, second, second, first, second)]
    assert turns == ["a", "b", "a", "b", "a", "a", "compiled"]
    assert not list(first) and not list(second)


def test_interrupted_verification_keeps_what_has_ended(bench: Bench, tmp_path: Path) -> None:
    """The running cell is cancelled, and its process is gone at once."""
    path = adapter(tmp_path, "note('started', os.getpid())\n")
    bench.adapters, bench.interpreters = {"many": reading.read(path)}, {}
    for variant in ("honest", "hangs"):
        bench.interpreters[("many", variant), ()] = HERE
    kept = InMemory()

    class Interrupting(Watcher):
        def start(self, cell: Cell) -> None:
            super().start(cell)
            if cell.variant == "hangs":
                raise KeyboardInterrupt

    plan = [Cell(SMALL, "many", variant, 0, "verify") for variant in ("honest", "hangs")]
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        Executor(bench.setup(), kept, Interrupting()).execute(plan)
    assert time.monotonic() - began < 20
    assert [record.outcome.kind for record in kept.records] == [None, "cancelled"]
    assert kept.records[1].outcome.reason == "interrupted", "no later command continues here"
    assert not any(alive(pid) for pid in loads(path))
