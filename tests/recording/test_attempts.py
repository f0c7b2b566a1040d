"""Tests of a contended cell's attempts: the least disturbed one counts, and a disturbed cell has another one due."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from snnbench.analysis.results import results_by_case
from snnbench.recording import attempts
from snnbench.recording.reading import Recording, chosen, read
from snnbench.recording.record import Record
from snnbench.recording.writer import append
from snnbench.report import tidy
from tests.bench import SMALL
from tests.recordings import failed, timed


def disturbed(name: str = "a", attempt: int = 0, cpus: float = 0.5, **fields: Any) -> Record:
    """A time with this many foreign CPUs; flagged if more than a tenth of a CPU."""
    record = timed(name, attempt=attempt, flags=["contended"] if cpus > 0.1 else [], **{"train": 3.0, **fields})
    record.phases["train"]["contention"] = {"foreign_cpus": cpus, "stolen_cpus": 0.0, "own_cpus": 1.0}
    return record


def attempted(kind: str, attempt: int, name: str = "a") -> Record:
    return failed(name, kind, "so it was", attempt=attempt, measure="time")


def written(folder: Path, *records: Record, remeasure: int = 2, **about: Any) -> Recording:
    """A recording on disk. Its protocol allows `remeasure` more attempts."""
    config = {"config": {"protocol": {"remeasure": remeasure}}, "identity": "x", **about}
    with append(folder, config, {"model": "a laptop"}) as writer:
        for record in records:
            writer.add(record)
    return read(folder)


@pytest.mark.parametrize(
    ("cpus", "counts"),
    [((0.5, 0.3, 0.4), 1), ((0.5, 0.3, 0.0), 2), ((0.2, 0.3, 0.4), 0), ((0.3, 0.5, 0.3), 2), ((0.5, 0.5, 0.5), 2)],
)
def test_least_disturbed_attempt_counts(tmp_path: Path, cpus: tuple[float, ...], counts: int) -> None:
    """Of equals the later attempt counts. Speed does not matter: the first is the fastest."""
    records = [disturbed(attempt=n, cpus=taken, train=1.0 + n) for n, taken in enumerate(cpus)]
    stored = written(tmp_path / "r", *records)
    assert stored.records == [records[counts]]
    assert stored.attempts == [one for one in records if one is not records[counts]]
    (result,) = results_by_case(stored.records)[SMALL.with_(neurons=48, batch=7, time_steps=20)]
    assert result.summaries["train", "time"].trials == (1e6 * (1.0 + counts),)
    assert {row["trial"] for row in tidy.rows([stored])} == {0} and len(tidy.rows([stored])) == 2


def test_most_disturbed_phase_counts_for_an_attempt() -> None:
    first, second = disturbed(attempt=0, cpus=0.3), disturbed(attempt=1, cpus=0.2)
    second.phases["forward"] = second.phases["train"] | {"contention": {"foreign_cpus": 0.1, "stolen_cpus": 0.3}}
    assert chosen([first, second]) is first


@pytest.mark.parametrize(
    ("records", "following"),
    [
        ([disturbed()], [1]),
        ([disturbed(), disturbed(attempt=1)], [2]),
        ([disturbed(cpus=0.0)], []),
        ([disturbed(), disturbed(attempt=1, cpus=0.0)], []),
        ([disturbed(), attempted("crash", 1)], [2]),
        ([disturbed(), attempted("cancelled", 1)], [1]),  # says nothing about the cell, and runs again
        ([disturbed(), attempted("incorrect", 1)], []),  # decides the cell
        ([attempted("crash", 0)], []),
        ([attempted("crash", 0), disturbed(attempt=1)], [2]),
    ],
)
def test_next_attempt_of_a_cell(tmp_path: Path, records: list[Record], following: list[int]) -> None:
    assert list(attempts.of(written(tmp_path / "r", *records)).next.values()) == following


def test_next_attempts_of_cells_are_independent(tmp_path: Path) -> None:
    stored = written(tmp_path / "r", disturbed("a"), disturbed("b", attempt=1), disturbed("c", cpus=0.0))
    assert sorted(attempts.of(stored).next.values()) == [1, 2]


@pytest.mark.parametrize("kind", ["incorrect", "recompiled", "below-floor"])
@pytest.mark.parametrize("later", [False, True])
def test_attempt_with_other_work_is_final(tmp_path: Path, kind: str, later: bool) -> None:
    records = [disturbed(), attempted(kind, 1), *([disturbed(attempt=2, cpus=0.0)] if later else [])]
    stored = written(tmp_path / "r", *records)
    assert [one.outcome.kind for one in stored.records] == [kind]
    assert attempts.due(stored) == 0, "and it is not tried a third time"


@pytest.mark.parametrize("kind", ["crash", "timeout", "cancelled", "lost"])
def test_otherwise_failed_attempt_leaves_the_measured_time(tmp_path: Path, kind: str) -> None:
    stored = written(tmp_path / "r", disturbed(), attempted(kind, 1))
    assert [one.status for one in stored.records] == ["measured"]
    assert [one.outcome.kind for one in stored.attempts] == [kind]


def test_due_cells_are_disturbed_and_have_attempts_left(tmp_path: Path) -> None:
    records = [
        *(disturbed("often", attempt=n) for n in range(3)),
        *(disturbed("again", attempt=n, cpus=0.5 - 0.5 * n) for n in range(2)),
        *(disturbed("once", attempt=n) for n in range(2)),
        *(disturbed("stopped"), attempted("cancelled", 1, "stopped")),
        *(disturbed("crashed"), attempted("crash", 1, "crashed")),
        disturbed("quiet", cpus=0.0),
        timed("hot", train=1.0, flags=["throttled"]),
    ]
    stored = written(tmp_path / "r", *records)
    names = {one.cell: one.library for one in stored.records}
    assert {names[cell]: number for cell, number in attempts.of(stored).next.items()} == {
        **{"often": 3, "once": 2, "stopped": 1, "crashed": 2}
    }
    assert attempts.due(stored) == 3
    assert attempts.due(replace(stored, config={})) == 0, "before there was such a key"
