"""Tests of drift: a cell is flagged and measured again if the machine's speed was unusual beside it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from snnbench import checking
from snnbench.checking import files
from snnbench.recording import attempts, merge
from snnbench.recording.drift import FACTOR, relative
from snnbench.recording.flags import FLAGS
from snnbench.recording.reading import RECORDS, Recording, chosen, read
from snnbench.recording.record import Record
from snnbench.recording.writer import append
from snnbench.report.overview import find
from snnbench.report.page import noise
from snnbench.report.text import cell_description
from tests.recordings import recording, timed

KINDS = ("interpreter", "calls", "copy", "product")


def beside(factor: float, trial: int = 0, name: str = "a", **fields: Any) -> Record:
    """A time beside which each probe took so many times a millisecond in both looks."""
    probes = {kind: {"looks_ns": [[round(1e6 * factor), round(4e6)]] * 2} for kind in KINDS}
    given = {"settings": {"python": "3.12.1"}, "started": f"2026-11-22T00:{trial:02}:00+00:00", "train": 3.0}
    return timed(name, trial, probes=probes, **{**given, **fields})


def written(folder: Path, *records: Record) -> Path:
    """A recording on disk that may measure cells again twice."""
    config = {"config": {"protocol": {"remeasure": 2}}, "identity": "x"}
    with append(folder, config, {"model": "a laptop"}) as writer:
        for record in records:
            writer.add(record)
    return folder


def levels(*records: Record) -> list[float]:
    """The machine's relative level beside each record."""
    relative_levels = relative(records)
    return [
        round(relative_levels[one.cell, one.attempt].all, 3)
        for one in records
        if (one.cell, one.attempt) in relative_levels
    ]


def test_level_is_relative_to_the_usual_probe() -> None:
    usual = 1.1**0.5  # the median of four is the geometric mean of the two in the middle
    assert levels(*(beside(factor, trial) for trial, factor in enumerate((1.0, 1.1, 1.0, 2.0)))) == [
        round(value / usual, 3) for value in (1.0, 1.1, 1.0, 2.0)
    ]


def test_too_few_cells_give_no_level() -> None:
    assert levels(beside(1.0), beside(2.0, 1)) == []
    assert len(levels(beside(1.0), beside(2.0, 1), beside(1.0, 2))) == 3


def test_other_libraries_share_only_the_interpreter_probe() -> None:
    others = [beside(1.0, trial, "b") for trial in range(3)]
    alone = beside(2.0, 0, "a", environment="other")
    level = relative([*others, alone])[alone.cell, 0]
    assert level.probes == {"interpreter": pytest.approx(2.0)}
    elsewhere = replace(alone, settings={"python": "3.13.0"})
    assert (alone.cell, 0) not in relative([*others, elsewhere])


def test_drift_needs_most_probes_to_move() -> None:
    """A copy may be slow for reasons of its own."""
    odd = beside(1.0, 3)
    odd.probes["copy"] = {"looks_ns": [[9_000_000]] * 2}
    level = relative([*(beside(1.0, trial) for trial in range(3)), odd])[odd.cell, 0]
    assert (level.probes["copy"], level.drifted) == (pytest.approx(9.0), False)


def test_repeated_attempts_do_not_change_the_usual_level() -> None:
    first = [beside(factor, trial) for trial, factor in enumerate((1.0, 1.0, 1.0, 2.0))]
    again = [replace(first[3], attempt=n, probes=beside(3.0).probes) for n in (1, 2)]
    assert levels(*first, *again) == [1.0, 1.0, 1.0, 2.0, 3.0, 3.0]


def test_step_in_a_run_flags_the_smaller_part(tmp_path: Path) -> None:
    """An attempt at the usual level then counts."""
    factors = (1.0, 1.0, 1.01, 0.99, 1.0, 2.0, 2.0)
    first = [beside(factor, trial) for trial, factor in enumerate(factors)]
    folder = written(tmp_path / "r", *first)
    there = read(folder)
    assert [one.trial for one in there.records if "drifted" in one.flags] == [5, 6]
    assert attempts.due(there) == 2
    back = replace(beside(1.0, 5), attempt=1, started="2026-11-22T01:00:00+00:00")
    still = replace(beside(2.0, 6), attempt=1, started="2026-11-22T01:00:01+00:00")
    there = read(written(folder, back, still))
    assert [(one.trial, one.attempt) for one in there.records if one.attempt] == [(5, 1), (6, 1)]
    assert [one.trial for one in there.records if "drifted" in one.flags] == [6]
    assert attempts.due(there) == 1
    assert [text for text in files._attempts(there)] == []
    text = "\n".join(cell_description.lines(there, there.records[5]))
    assert "attempt 2 of 2 counts" in text and "the machine drifted" in text


def test_drift_flag_is_computed_and_not_read_from_lines(tmp_path: Path) -> None:
    lying = [beside(1.0, trial, flags=["drifted"]) for trial in range(3)]
    assert [one.flags for one in read(written(tmp_path / "r", *lying)).records] == [[], [], []]
    without = [replace(one, probes={}) for one in lying]
    assert [one.flags for one in read(written(tmp_path / "s", *without)).records] == [[], [], []]


def test_attempt_with_the_fewest_flags_counts() -> None:
    def disturbed(cpus: float, *flags: str, attempt: int) -> Record:
        record = timed("a", train=1.0, attempt=attempt, flags=list(flags))
        record.phases["train"]["contention"] = {"foreign_cpus": cpus, "stolen_cpus": 0.0}
        return record

    both = disturbed(0.5, "contended", "drifted", attempt=0)
    drifted, quiet = disturbed(0.01, "drifted", attempt=1), disturbed(0.02, attempt=2)
    assert chosen([both, drifted]) is drifted
    assert chosen([both, drifted, quiet]) is quiet
    forged = disturbed(9.0, attempt=3)  # without its flag
    assert chosen([disturbed(0.5, "contended", attempt=0), forged]).attempt == 0


def test_page_shows_the_machine_and_its_drift() -> None:
    records = [beside(factor, trial) for trial, factor in enumerate((1.0, 1.0, 1.0, 1.0, 2.0))]
    section = noise.section(find(recording(*records)))
    machine, *others = section.charts
    assert machine.title == "The machine during the run" and others
    assert machine.words.endswith("over what it usually took: 1.00 to 2.00 times as long.")
    assert machine.note == f"1 measurement beyond {FACTOR:g} or below {1 / FACTOR:g}: drifted."
    assert next(iter(machine.table.rows)) == ["Python loops", "1.00", "1.00", "2.00"]
    assert noise.MACHINE in section.sentences
    plain = noise.section(find(recording(*(replace(one, probes={}) for one in records))))
    assert noise.MACHINE not in plain.sentences
    assert "drifted" in FLAGS


def test_drifted_cell_keeps_the_rule_of_flags(tmp_path: Path) -> None:
    folder = written(tmp_path / "r", *(beside(factor, trial) for trial, factor in enumerate((1.0, 1.0, 1.0, 2.0))))
    assert not [one for one in checking.check(folder) if one.rule == "flags"]
    line = json.loads((folder / RECORDS).read_text().splitlines()[-1])
    assert line["flags"] == []


def test_repeated_merge_of_drifted_shards_agrees(tmp_path: Path) -> None:
    """The slow cell is as usual in its shard, and drifted in the whole."""

    def shard(index: int, *records: Record) -> Recording:
        config = {"identity": f"i{index}", "whole": "w", "shard": f"{index}/2", "planned": 3, "whole_planned": 6}
        with append(tmp_path / f"part{index}", config | {"config": {}, "finished": True}, {"model": "x"}) as writer:
            for record in records:
                writer.add(record)
        return read(tmp_path / f"part{index}")

    first = shard(1, *(beside(1.0, trial) for trial in range(3)))
    second = shard(2, *(beside(2.0, trial, "b") for trial in range(2)))
    assert not any(each.flags for each in (*first.records, *second.records))
    for _ in range(2):
        merged = merge.merge([first, second], tmp_path / "merged")
        assert [each.library for each in merged.records if "drifted" in each.flags] == ["b", "b"]
    assert "drifted" not in (tmp_path / "merged" / RECORDS).read_text()
