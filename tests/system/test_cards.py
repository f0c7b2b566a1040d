"""Tests of the local executor with two GPUs: a worker sees the GPU of its case, and has it for itself when it works."""

from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest

from snnbench.machine.gpus import Card
from snnbench.plan.cell import Cell
from snnbench.worker.messages import Measure
from tests.bench import Bench, bench
from tests.fakes import altered
from tests.run.test_executor import CARDS, CASES, SEES, anywhere, cells, execute, with_cards
from tests.whole import WHOLE

__all__ = ["bench", "with_cards"]


def test_each_worker_sees_only_its_own_gpu(with_cards: Bench) -> None:
    with_cards.add("a", SEES + anywhere())
    records = execute(with_cards, cells()[:3])
    assert {record.status for record in records} == {"measured"} and len(records) == 3
    by_card = {record.case.neurons: record.settings["card"] for record in records}
    assert by_card == {16: CARDS[0].name, 20: CARDS[1].name, 24: CARDS[0].name}
    seen = (with_cards.folder / "a.seen").read_text().split()
    assert sorted(seen) == ["GPU-a"] * 2 + ["GPU-b"]
    assert execute(with_cards, cells()[:3]) == [], "all is there"


@pytest.mark.parametrize("measures", [("memory", "time"), *([("time", "time"), ("time", "memory")] if WHOLE else [])])
def test_workers_load_at_once_and_use_a_card_in_turn(
    with_cards: Bench, tmp_path: Path, measures: tuple[Measure, Measure]
) -> None:
    log = tmp_path / "log"
    note = f'print("EVENT", __name__, file=open({str(log)!r}, "a"))'
    loads = "import time\n" + note.replace("EVENT", "loads") + "\ntime.sleep(0.5)\n"
    for name in "ab":
        with_cards.add(name, loads + anywhere(altered(f"{note.replace('EVENT', 'passes')}\nreturn right")))
    plan = [Cell(CASES[0], name, "default", 0, measure) for name, measure in zip("ab", measures, strict=True)]
    assert [record.status for record in execute(with_cards, plan)] == ["measured"] * 2
    events = [line.split() for line in log.read_text().splitlines()]
    assert [event for event, _ in events[:2]] == ["loads"] * 2, "the card is free until both have loaded"
    users = [name for event, name in events if event == "passes"]
    assert len(set(users)) == 2 and users == sorted(users, key=users.index), "one after the other"


@pytest.mark.parametrize(
    ("card", "are_first"),
    [
        (replace(CARDS[0], memory_bytes=16 << 30), True),
        (replace(CARDS[0], memory_bytes=16 << 30, exclusive=True), False),
    ],
)
def test_workers_take_their_exams_before_a_time_unless_a_card_is_exclusive(
    with_cards: Bench, tmp_path: Path, card: Card, are_first: bool
) -> None:
    log = tmp_path / "log"
    event = f'"passes" if case.neurons == {CASES[0].neurons} else "exam"'
    note = f'print({event}, file=open({str(log)!r}, "a"))'
    for name in "ab":
        with_cards.add(name, anywhere(altered(f"{note}\nreturn right")))
    plan = [Cell(CASES[0], name, "default", 0, "time") for name in "ab"]
    assert [record.status for record in execute(with_cards, plan, [card])] == ["measured"] * 2
    events = [line for line, _ in groupby(log.read_text().split())]
    assert events == ["exam", "passes"] * (1 if are_first else 2)
