"""Drift: cells beside which the machine was not as usual are flagged, and measured again."""

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
from snnbench.recording.record import RECORDS, Record, Recording, chosen, read
from snnbench.recording.writer import append
from snnbench.report.findings import find
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
        for one in records:
            writer.add(one)
    return folder


def levels(*records: Record) -> list[float]:
    """The level beside each."""
    found = relative(records)
    return [round(found[one.cell, one.attempt].all, 3) for one in records if (one.cell, one.attempt) in found]


def test_a_level_is_over_what_is_usual_beside_cells_with_the_same_probe() -> None:
    usual = 1.1**0.5  # the median of four is the geometric mean of the two in the middle
    assert levels(*(beside(factor, trial) for trial, factor in enumerate((1.0, 1.1, 1.0, 2.0)))) == [
        round(value / usual, 3) for value in (1.0, 1.1, 1.0, 2.0)
    ]


def test_too_few_cells_say_nothing_of_what_is_usual() -> None:
    assert levels(beside(1.0), beside(2.0, 1)) == []
    assert len(levels(beside(1.0), beside(2.0, 1), beside(1.0, 2))) == 3


def test_the_interpreter_is_one_for_all_libraries_and_a_framework_is_a_library_s_own() -> None:
    others = [beside(1.0, trial, "b") for trial in range(3)]
    alone = beside(2.0, 0, "a", environment="other")
    found = relative([*others, alone])[alone.cell, 0]
    assert found.probes == {"interpreter": pytest.approx(2.0)}
    elsewhere = replace(alone, settings={"python": "3.13.0"})
    assert (alone.cell, 0) not in relative([*others, elsewhere])


def test_most_probes_have_to_move() -> None:
    """A copy may be slow for reasons of its own."""
    odd = beside(1.0, 3)
    odd.probes["copy"] = {"looks_ns": [[9_000_000]] * 2}
    found = relative([*(beside(1.0, trial) for trial in range(3)), odd])[odd.cell, 0]
    assert (found.probes["copy"], found.drifted) == (pytest.approx(9.0), False)


def test_what_is_measured_again_changes_what_is_usual_for_no_other() -> None:
    first = [beside(factor, trial) for trial, factor in enumerate((1.0, 1.0, 1.0, 2.0))]
    again = [replace(first[3], attempt=n, probes=beside(3.0).probes) for n in (1, 2)]
    assert levels(*first, *again) == [1.0, 1.0, 1.0, 2.0, 3.0, 3.0]


def test_a_step_in_a_run_flags_the_fewer_cells_and_the_attempt_that_is_as_usual_counts(tmp_path: Path) -> None:
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


def test_the_flag_is_the_recording_s_and_no_line_s(tmp_path: Path) -> None:
    lying = [beside(1.0, trial, flags=["drifted"]) for trial in range(3)]
    assert [one.flags for one in read(written(tmp_path / "r", *lying)).records] == [[], [], []]
    without = [replace(one, probes={}) for one in lying]
    assert [one.flags for one in read(written(tmp_path / "s", *without)).records] == [[], [], []]


def test_the_fewest_disturbances_count_before_the_fewest_others() -> None:
    def disturbed(cpus: float, *flags: str, attempt: int) -> Record:
        one = timed("a", train=1.0, attempt=attempt, flags=list(flags))
        one.phases["train"]["contention"] = {"foreign_cpus": cpus, "stolen_cpus": 0.0}
        return one

    both = disturbed(0.5, "contended", "drifted", attempt=0)
    drifted, quiet = disturbed(0.01, "drifted", attempt=1), disturbed(0.02, attempt=2)
    assert chosen([both, drifted]) is drifted
    assert chosen([both, drifted, quiet]) is quiet
    forged = disturbed(9.0, attempt=3)  # without its flag
    assert chosen([disturbed(0.5, "contended", attempt=0), forged]).attempt == 0


def test_the_page_draws_the_machine_and_says_how_often_it_drifted() -> None:
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


def test_a_sound_recording_with_a_drifted_cell_has_no_complaint_of_its_flags(tmp_path: Path) -> None:
    folder = written(tmp_path / "r", *(beside(factor, trial) for trial, factor in enumerate((1.0, 1.0, 1.0, 2.0))))
    assert not [one for one in checking.check(folder) if one.rule == "flags"]
    line = json.loads((folder / RECORDS).read_text().splitlines()[-1])
    assert line["flags"] == []


def test_shards_that_are_merged_twice_agree_whatever_is_flagged_in_them(tmp_path: Path) -> None:
    """The slow cell is as usual in its shard, and drifted in the whole."""

    def shard(index: int, *records: Record) -> Recording:
        config = {"identity": f"i{index}", "whole": "w", "shard": f"{index}/2", "planned": 3, "whole_planned": 6}
        with append(tmp_path / f"part{index}", config | {"config": {}, "finished": True}, {"model": "x"}) as writer:
            for one in records:
                writer.add(one)
        return read(tmp_path / f"part{index}")

    one = shard(1, *(beside(1.0, trial) for trial in range(3)))
    other = shard(2, *(beside(2.0, trial, "b") for trial in range(2)))
    assert not any(each.flags for each in (*one.records, *other.records))
    for _ in range(2):
        merged = merge.merge([one, other], tmp_path / "merged")
        assert [each.library for each in merged.records if "drifted" in each.flags] == ["b", "b"]
    assert "drifted" not in (tmp_path / "merged" / RECORDS).read_text()
