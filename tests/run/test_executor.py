"""Tests of the local executor on GPUs: cases dealt out, parallel cells, and one interrupt for all."""

import os
import signal
import threading
from pathlib import Path

import pytest

from snnbench.machine import cpus, gpus
from snnbench.machine.gpus import Card
from snnbench.plan.cell import Cell
from snnbench.recording.reading import read
from snnbench.recording.record import Record
from snnbench.run import executor, slots
from snnbench.run.executor import LOADED_BYTES, RELAYED_TIMES, Executor, deal, fit
from snnbench.run.setup import RunContext, Setup
from snnbench.run.store import InFolder
from tests.bench import PROTOCOL, SMALL, Bench, Watcher, bench
from tests.fakes import CORRECT

__all__ = ["bench"]

CARDS = [Card("GPU-a", None), Card("GPU-b", None)]
CASES = [SMALL.with_(neurons=neurons, device="cuda") for neurons in (16, 20, 24)]
ANYWHERE = """
from dataclasses import replace
from snnbench.backends import numpy as driver


class Backend(driver.Backend):
    def __init__(self, case):
        super().__init__(replace(case, device="cpu"))


driver.Backend = Backend
"""
SEES = """
import os
from pathlib import Path

with Path(__file__).with_suffix(".seen").open("a") as file:
    file.write(os.environ["CUDA_VISIBLE_DEVICES"] + "\\n")
"""


def anywhere(source: str = CORRECT) -> str:
    """A fake that says nothing of the device."""
    return source + ANYWHERE


def cells(name: str = "a") -> list[Cell]:
    return [Cell(case, name, "default", trial, "time") for trial in range(2) for case in CASES]


def execute(bench: Bench, plan: list[Cell], cards: list[Card] = CARDS) -> list[Record]:
    setup = RunContext({"": Setup(bench.adapters, bench.interpreters)}, PROTOCOL, "a server", 1 << 40)
    bench.watcher = Watcher()
    with bench.writer() as writer:
        Executor(setup, InFolder(writer), bench.watcher).execute(plan, cards)
    return [record for _, record in bench.watcher.ended]


@pytest.fixture
def with_cards(bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bench:
    """A bench on which CUDA cells run: the NumPy backend ignores the device."""
    monkeypatch.setattr(gpus, "has_cuda", lambda: True)
    monkeypatch.setattr(cpus, "usable_cpus", lambda *given: 2)
    monkeypatch.setenv(slots.VARIABLE, str(tmp_path / "slots"))
    return bench


def test_all_cells_of_a_case_go_to_one_gpu_and_cases_in_turn() -> None:
    dealt = deal(cells(), CARDS)
    assert [{cell.case.neurons for cell in found} for found in dealt.values()] == [{16, 24}, {20}]
    assert sum(map(len, dealt.values())) == 6
    assert list(deal(cells()[:1], CARDS)) == CARDS[:1], "a card without work is left out"
    assert deal(cells(), []) == {}


def test_cells_on_cards_come_first(with_cards: Bench) -> None:
    with_cards.add("a", anywhere())
    on_cpu = Cell(SMALL, "a", "default", 0, "time")
    devices = [record.case.device for record in execute(with_cards, [on_cpu, *cells()[:2]])]
    assert devices == ["cuda", "cuda", "cpu"]


def test_workers_that_wait_hold_what_they_have_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of them works at a time; those that measure memory on the CPU do not wait."""
    monkeypatch.setattr(cpus, "usable_cpus", lambda *given: 2)
    least = executor.floor.least_bytes(SMALL, "train")
    times, memory = [Cell(SMALL, "a", "default", 0, "time")] * 3, Cell(SMALL, "a", "default", 0, "memory")
    room = (3 + RELAYED_TIMES) * least + 3 * LOADED_BYTES
    assert fit(times, room) and not fit(times, room - 1)
    assert not fit([*times, memory], room + LOADED_BYTES + RELAYED_TIMES * least - 1)
    assert not fit(times * 2, 1 << 40), "too many for two CPUs"


def test_workers_on_a_card_hold_one_copy_of_what_they_have_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The arrays of one of them are there twice."""
    monkeypatch.setattr(cpus, "usable_cpus", lambda *given: 2)
    case = SMALL.with_(device="cuda")
    least = executor.floor.least_bytes(case, "train")
    room = 4 * least + 3 * LOADED_BYTES
    assert fit([Cell(case, "a", "default", 0, "time")] * 3, room)
    assert not fit([Cell(case, "a", "default", 0, "time")] * 3, room - 1)


def test_interrupt_stops_the_workers_on_all_gpus(with_cards: Bench) -> None:
    mark = 'import os, time\nfrom pathlib import Path\nPath(__file__).with_suffix(f".{os.getpid()}.pid").touch()\n'
    with_cards.add("a", mark + SEES + "time.sleep(30)\n" + anywhere())

    def both_run() -> bool:
        seen = with_cards.folder / "a.seen"
        return len(with_cards.watcher.started) == 2 and seen.exists() and len(set(seen.read_text().split())) == 2

    def interrupt_once_both_run() -> None:
        while not both_run():
            threading.Event().wait(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    watcher = threading.Thread(target=interrupt_once_both_run)
    watcher.start()
    with pytest.raises(KeyboardInterrupt):
        execute(with_cards, cells())
    watcher.join()
    pids = [int(path.name.split(".")[1]) for path in with_cards.folder.glob("*.pid")]
    assert len(pids) >= 2 and not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert [record.outcome.kind for record in read(with_cards.recording).records] == ["cancelled"] * 2
