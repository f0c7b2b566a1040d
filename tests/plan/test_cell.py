"""Tests of cells: their set, run order, names and worker requests."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from snnbench.adapter import reading
from snnbench.adapter.contender import Work
from snnbench.plan.cell import GIB, Cell, cells
from snnbench.plan.config import Protocol
from tests.fakes import CASE, CORRECT, write

PROTOCOL = Protocol(
    phases=("train", "inference"),
    trials=3,
    memory_trials=2,
    warmup_passes=2,
    repetitions=10,
    min_repetition_ms=0.5,
    max_phase_seconds=1.5,
    timeout_seconds=60.0,
    seed=0,
)
WORKS = [Work(CASE.with_(neurons=n), library, "default") for n in (8, 16, 32) for library in ("a", "b", "c")]


def changed(**fields: Any) -> Protocol:
    """The protocol with other values."""
    return Protocol(**(PROTOCOL.model_dump() | fields))


def blocks(plan: list[Cell]) -> list[tuple[str, int]]:
    """(measure, trial) of each block in turn. If another block interrupts a block, it appears twice."""
    sequence: list[tuple[str, int]] = []
    for cell in plan:
        if not sequence or sequence[-1] != (cell.measure, cell.trial):
            sequence.append((cell.measure, cell.trial))
    return sequence


def order(plan: list[Cell], measure: str, trial: int) -> list[Work]:
    """The works of one block in the order of running."""
    return [Work(c.case, c.library, c.variant) for c in plan if (c.measure, c.trial) == (measure, trial)]


def test_every_work_is_measured_once_in_every_block() -> None:
    plan = cells(WORKS, PROTOCOL)
    times, memories = ([(measure, t) for t in range(n)] for measure, n in (("time", 3), ("memory", 2)))
    assert blocks(plan) == [times[0], *memories, *times[1:]]
    for measure, trial in (*times, *memories):
        assert Counter(order(plan, measure, trial)) == Counter(WORKS)


def test_blocks_are_shuffled_differently_but_reproducibly() -> None:
    plan = cells(WORKS, PROTOCOL)
    orders = [order(plan, *block) for block in blocks(plan)]
    assert all(one != WORKS for one in orders)
    assert len({tuple(one) for one in orders}) == len(orders)
    assert cells(WORKS, PROTOCOL) == plan
    assert cells(WORKS, changed(seed=1)) != plan


def test_more_trials_keep_the_order_of_the_first() -> None:
    plan, longer = cells(WORKS, PROTOCOL), cells(WORKS, changed(trials=9))
    for block in blocks(plan):
        assert order(longer, *block) == order(plan, *block)


def test_without_phases_cells_are_only_verified() -> None:
    plan = cells(WORKS, changed(phases=(), trials=2))
    assert blocks(plan) == [("verify", 0), ("verify", 1)]
    assert len(plan) == 2 * len(WORKS)


def test_memory_is_not_measured_without_memory_trials() -> None:
    assert {cell.measure for cell in cells(WORKS, changed(memory_trials=0))} == {"time"}


def key(folder: Path, source: str = CORRECT, environment: str = "e", machine: str = "m", **changes: Any) -> str:
    """The key of one cell, with these changes."""
    folder.mkdir(exist_ok=True)
    adapter = reading.read(write(folder, source))
    protocol = changed(**changes.pop("protocol", {}))
    cell = Cell(**({"case": CASE, "library": "a", "variant": "x", "trial": 0, "measure": "time"} | changes))
    return cell.key(adapter.digest, environment, machine, protocol)


def test_equal_content_has_an_equal_key(tmp_path: Path) -> None:
    assert key(tmp_path / "one") == key(tmp_path / "another")


@pytest.mark.parametrize(
    "change",
    [
        {"source": CORRECT + "\n"},
        {"environment": "other"},
        {"machine": "other"},
        {"library": "b"},
        {"variant": "y"},
        {"trial": 1},
        {"measure": "memory"},
        {"case": CASE.with_(neurons=49)},
        {"case": CASE.with_(seed=8)},
        {"protocol": {"repetitions": 11}},
        {"protocol": {"phases": ("train",)}},
        {"protocol": {"warmup_passes": 3}},
        {"protocol": {"min_repetition_ms": 1.0}},
        {"protocol": {"max_phase_seconds": 2.0}},
        {"protocol": {"memory_limit_gib": 1.0}},
    ],
    ids=str,
)
def test_key_depends_on_everything_that_affects_the_result(tmp_path: Path, change: dict[str, Any]) -> None:
    assert key(tmp_path, **change) != key(tmp_path)


@pytest.mark.parametrize(
    "change", [{"trials": 9}, {"memory_trials": 0}, {"timeout_seconds": 1.0}, {"seed": 1}, {"remeasure": 0}], ids=str
)
def test_key_does_not_depend_on_trials_timeout_or_order(tmp_path: Path, change: dict[str, Any]) -> None:
    assert key(tmp_path, protocol=change) == key(tmp_path)


def test_request_follows_the_protocol() -> None:
    request = Cell(CASE, "a", "x", 2, "time").request(changed(memory_limit_gib=1.5), [3, 1], memory_bytes=7)
    assert (request.measure, request.case, request.variant, request.phases) == (
        "time",
        CASE,
        "x",
        ("train", "inference"),
    )
    assert (request.warmup_passes, request.repetitions, request.cpus) == (2, 10, (3, 1))
    assert (request.min_repetition_ns, request.max_phase_ns) == (500_000, 1_500_000_000)
    assert request.memory_limit_bytes == 3 * GIB // 2


def test_default_memory_limit_is_the_available_memory() -> None:
    assert Cell(CASE, "a", "x", 0, "time").request(PROTOCOL, [0], memory_bytes=7).memory_limit_bytes == 7


def test_unknown_memory_is_no_limit() -> None:
    assert Cell(CASE, "a", "x", 0, "time").request(PROTOCOL, [0], memory_bytes=0).memory_limit_bytes is None


def test_label_omits_an_only_variant() -> None:
    assert [Cell(CASE, "a", variant, 0, "time").label for variant in ("default", "x")] == ["a", "a/x"]
