"""Tests of merges of recordings made by hand: the merge's entries about its shards, and the record that counts."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from snnbench.recording import merge, reading, writer
from snnbench.recording.merge import Disagreement
from snnbench.recording.reading import read
from snnbench.recording.record import Record
from tests.recordings import failed, timed


def shard(folder: Path, index: int, *records: Record, **about: Any) -> reading.Recording:
    """One of two shards, with these records, as a run leaves it."""
    config = {"identity": f"i{index}", "whole": "w", "shard": f"{index}/2", "planned": 2, "whole_planned": 4}
    config |= {"config": {}, "snnbench": "1", "finished": True}
    with writer.append(folder / f"part{index}", config | about, {"model": "a laptop"}) as writing:
        for added in records:
            writing.add(added)
        writing.environments({"e": {"numpy": f"2.{index}"}, f"e{index}": {"torch": "2"}})
    return read(folder / f"part{index}")


def test_two_shards_merge_in_the_order_of_their_starts(tmp_path: Path) -> None:
    of = {"adapter": "file", "environment": "e"}
    first = [timed("a", trial, train=1.0, started=f"2026-11-21T10:00:0{9 - 2 * trial}+00:00", **of) for trial in (0, 1)]
    second = [timed("b", trial, train=1.0, started="2026-11-21T10:00:08+00:00") for trial in (1, 0)]
    parts = [shard(tmp_path, 1, *first), shard(tmp_path, 2, *second)]
    merged = merge.merge(parts, tmp_path / "merged")
    assert [(one.library, one.trial) for one in merged.records] == [("a", 1), ("b", 0), ("b", 1), ("a", 0)]
    config = merged.config
    assert (config["identity"], config["shards"], config["planned"], config["finished"]) == (
        "w",
        ["1/2", "2/2"],
        4,
        True,
    )
    assert "shard" not in config and "whole_planned" not in config
    assert merged.environments == {"e": {"numpy": "2.1"}, "e1": {"torch": "2"}, "e2": {"torch": "2"}}
    assert merge.merge(parts[::-1], tmp_path / "other").environments == merged.environments


@pytest.mark.parametrize(("finished", "whole"), [((True, True), True), ((True, False), False), ((False, True), False)])
def test_merge_is_finished_if_every_shard_is(tmp_path: Path, finished: tuple[bool, bool], whole: bool) -> None:
    first, second = (shard(tmp_path, index, finished=done) for index, done in enumerate(finished, 1))
    assert merge.merge([first, second], tmp_path / "merged").config["finished"] is whole
    alone = merge.merge([first], tmp_path / "alone").config
    assert not alone["finished"] and alone["shards"] == ["1/2"]
    assert merge.missing(alone) == ["2/2"] and merge.missing({}) == []
    after = merge.merge([first, second], tmp_path / "alone").config
    assert after["finished"] is whole and merge.missing(after) == []


def test_unfinished_shard_stays_unfinished_until_merged_again(tmp_path: Path) -> None:
    """The second merged shard makes the run whole, but does not make the first shard finished."""
    first_shard, second_shard = (shard(tmp_path, index, finished=index == 2) for index in (1, 2))
    first = merge.merge([first_shard], tmp_path / "merged").config
    assert first["unfinished"] == ["1/2"]
    both = merge.merge([second_shard], tmp_path / "merged").config
    assert (both["finished"], both["unfinished"], merge.missing(both)) == (False, ["1/2"], [])
    again = merge.merge(
        [replace(first_shard, config=first_shard.config | {"finished": True})], tmp_path / "merged"
    ).config
    assert again["finished"] and "unfinished" not in again


def test_measured_then_conclusive_then_later_record_counts(tmp_path: Path) -> None:
    measured = timed("a", train=1.0, started="2026-11-21T10:00:00+00:00")
    crashed, later = (failed("a", "crash", "died", measure="time", started=f"2027-01-0{day}") for day in (1, 2))
    cancelled = failed("a", "cancelled", "stopped", measure="time", started="2029-01-01")
    best_first = [measured, later, crashed, cancelled]
    for number, best in enumerate(best_first):
        for worse in best_first[number + 1 :]:
            for pair in ((best, worse), (worse, best)):
                sides = [reading.Recording(tmp_path, {}, {}, [one], 0) for one in pair]
                assert merge.cells(sides) == [best]


def test_trials_started_in_the_same_second_keep_their_order(tmp_path: Path) -> None:
    some = [timed("a", trial, train=1.0, started="2026-11-21T10:00:00+00:00") for trial in range(8)]
    assert merge.cells([reading.Recording(tmp_path, {}, {}, some[::-1], 0)]) == some


def test_merge_keeps_each_attempt_once(tmp_path: Path) -> None:
    first, second = (timed("a", train=1.0, attempt=attempt) for attempt in (0, 1))
    part = reading.Recording(tmp_path, {}, {}, [second], 0, attempts=[first])
    assert merge.cells([part, part]) == [first, second]


def test_identical_records_of_a_cell_are_merged(tmp_path: Path) -> None:
    cell_record = timed("a", train=1.0)
    same = [shard(tmp_path / place, 1, cell_record) for place in ("here", "there")]
    assert merge.merge(same, tmp_path / "merged").records == [cell_record]
    changed = shard(tmp_path / "elsewhere", 1, replace(cell_record, wall_s=2.0))
    with pytest.raises(Disagreement, match=r"was measured in .*here/part1 and, otherwise, in .*elsewhere/part1"):
        merge.merge([same[0], changed], tmp_path / "merged")


def test_empty_recording_can_be_merged_into(tmp_path: Path) -> None:
    (tmp_path / "merged").mkdir()
    (tmp_path / "merged" / "records.jsonl").touch()
    cell_record = timed("a", train=1.0)
    assert merge.merge([shard(tmp_path, 1, cell_record)], tmp_path / "merged").records == [cell_record]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "records.jsonl").write_text("{torn")
    with pytest.raises(Disagreement, match="other: holds a recording that is not a merge"):
        merge.merge([shard(tmp_path, 2)], tmp_path / "other")


@pytest.mark.parametrize(
    ("first", "second", "line"),
    [
        ({"config": {"trials": 3}}, {"config": {"trials": 5}}, "config.trials: 3 in {one}, 5 in {two}"),
        ({"config": {"a": {"b": 1}}}, {"config": {"a": {}}}, "config.a.b: 1 in {one}, None in {two}"),
        ({"config": {"a": {}}}, {"config": {"a": {"b": 1}}}, "config.a.b: None in {one}, 1 in {two}"),
        ({"config": {"a": [1, 2]}}, {"config": {"a": [1, 3]}}, "config.a: [1, 2] in {one}, [1, 3] in {two}"),
        ({"config": {"a": [{"b": 1}]}}, {"config": {"a": [{"b": 2}]}}, "config.a.0.b: 1 in {one}, 2 in {two}"),
        ({"config": {"a": [1, 2]}}, {"config": {"a": [1]}}, "config.a: [1, 2] in {one}, [1] in {two}"),
        ({"snnbench": "1"}, {"snnbench": "2"}, "snnbench: '1' in {one}, '2' in {two}"),
        ({"only": ["a"]}, {}, "--only: ['a'] in {one}, None in {two}"),
        ({"whole": "v"}, {"whole": "w"}, "run: 'v' in {one}, 'w' in {two}"),
    ],
)
def test_differing_fact_is_named_with_both_values(
    tmp_path: Path, first: dict[str, Any], second: dict[str, Any], line: str
) -> None:
    parts = [
        reading.Recording(tmp_path / f"part{index}", {"whole": "w", "shard": f"{index}/2"} | config, {}, [], 0)
        for index, config in enumerate((first, second), 1)
    ]
    with pytest.raises(Disagreement) as refusal:
        merge.merge(parts, tmp_path / "merged")
    assert str(refusal.value) == line.format(one=parts[0].folder, two=parts[1].folder)


def test_facts_of_every_part_are_named(tmp_path: Path) -> None:
    parts = [
        reading.Recording(Path(f"part{version}"), {"whole": "w", "snnbench": version}, {}, [], 0) for version in "123"
    ]
    with pytest.raises(Disagreement) as refusal:
        merge.merge(parts, tmp_path / "merged")
    assert str(refusal.value).count("in part1, ") == 2


def test_cell_that_another_part_disproves_is_refused(tmp_path: Path) -> None:
    right, wrong = timed("a", train=1.0), failed("a", "incorrect", "3 spikes differ", measure="time")
    with pytest.raises(Disagreement, match=r"is incorrect in .*part2 and measured in .*part1"):
        merge.merge([shard(tmp_path, 1, right), shard(tmp_path, 2, wrong)], tmp_path / "merged")
