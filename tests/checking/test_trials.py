"""Tests of the checker's rules for trials: the plan's cells are all there, and contenders take turns."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from snnbench import checking
from snnbench.checking import trials
from snnbench.plan.config import Protocol
from snnbench.recording.reading import CONFIG, RECORDS, read
from tests.shipped import TIMED, copied, edited, keep_lines, shipped


@pytest.mark.parametrize(
    ("stops_early", "timed", "required"),
    [(True, 4, 4), (True, 5, 6), (True, 9, 12), (True, 0, 4), (False, 4, 12)],
)
def test_both_sides_are_required_up_to_a_look(stops_early: bool, timed: int, required: int) -> None:
    recording = replace(read(shipped(TIMED)), config={"sides": {"base": [], "new": []}, "stops_early": stops_early})
    protocol = Protocol(
        phases=("train",),
        trials=12,
        memory_trials=20,
        warmup_passes=1,
        repetitions=3,
        min_repetition_ms=1.0,
        max_phase_seconds=1.0,
        timeout_seconds=1.0,
        seed=0,
    )
    present = {("time", trial, side) for trial in range(timed) for side in ("base", "new")} | {("memory", 19, "base")}
    times = {("time", trial, side) for trial in range(required) for side in ("base", "new")}
    memory = {("memory", trial, side) for trial in range(20) for side in ("base", "new")}
    assert trials._asked(protocol, recording, present) == times | memory


def test_trials_without_turns_are_reported(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    lines = (folder / RECORDS).read_text().splitlines(keepends=True)
    by_work = sorted(lines, key=lambda line: json.dumps([json.loads(line)[k] for k in ("library", "variant", "case")]))
    (folder / RECORDS).write_text("".join(by_work))
    assert [one.text for one in checking.check(folder)] == [
        "the trials of each contender follow one another; they should take turns with those of the others"
    ]


def test_missing_cells_of_the_plan_are_reported(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    edited(folder, CONFIG, lambda c: c.update(planned=39))
    assert checking.check(folder) == []
    edited(folder, CONFIG, lambda c: c.update(planned=38))
    assert [one.text for one in checking.check(folder)] == ["39 cells, where 38 were planned"]
    edited(folder, CONFIG, lambda c: c.update(planned=39))
    keep_lines(folder, lambda line: line["library"] != "rockpool")
    assert [one.text for one in checking.check(folder)] == [
        "36 cells, where 39 were planned",
        "sweep 'subtract': nothing of rockpool/torch",
    ]


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        (None, ["sweep 'zero': nothing of 1 of 1 cases, the first at N=256, B=16, T=100, zero"]),
        (["neurons>=8"], ["sweep 'zero': nothing of 1 of 1 cases, the first at N=256, B=16, T=100, zero"]),
        (["profile=subtract"], []),
        (["profile=subtract,neurons=256"], []),
        (["library=*"], []),
    ],
)
def test_missing_sweep_is_reported(tmp_path: Path, only: list[str] | None, expected: list[str]) -> None:
    folder = copied(tmp_path)
    keep_lines(folder, lambda line: line["case"]["reset"] == "subtract")
    edited(folder, CONFIG, lambda c: c.update(only=only))
    assert [one.text for one in checking.check(folder) if "cases" in one.text] == expected


def test_only_contender_of_a_case_needs_no_turns(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    edited(folder, CONFIG, lambda c: c.update(only=["library=torch-loop"], planned=6))
    keep_lines(folder, lambda line: line["library"] == "torch-loop")
    lines = (folder / RECORDS).read_text().splitlines(keepends=True)
    (folder / RECORDS).write_text("".join(sorted(lines, key=lambda line: json.loads(line)["case"]["reset"])))
    assert checking.check(folder) == []


def test_turns_are_taken_within_a_case(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    lines = [json.loads(line) for line in (folder / RECORDS).read_text().splitlines()]
    of_each = {reset: [one for one in lines if one["case"]["reset"] == reset] for reset in ("subtract", "zero")}
    of_each["zero"].sort(key=lambda one: [one["library"], one["variant"]])
    (folder / RECORDS).write_text("".join(f"{json.dumps(one)}\n" for part in of_each.values() for one in part))
    (complaint,) = checking.check(folder)
    assert "they should take turns" in complaint.text


def test_single_trial_needs_no_turns(tmp_path: Path) -> None:
    """Each contender of a case is timed once, one after the other. With a second trial, that breaks the turns."""
    folder = copied(tmp_path)
    turns = "they should take turns"
    keep_lines(folder, lambda line: line["measure"] == "time" and line["trial"] == 0)
    assert any(turns in one.text for one in checking.check(folder)), "the protocol asks for two"
    edited(folder, CONFIG, lambda c: c["config"]["protocol"].update(trials=1))
    assert not any(turns in one.text for one in checking.check(folder))


@pytest.mark.parametrize(
    ("order", "alternate"),
    [
        ("aabb", False),
        ("abab", True),
        ("abba", True),
        ("aaaa", True),
        ("aabbcc", False),
        ("abcabc", True),
        ("ab", False),
    ],
)
def test_alternating_contenders_take_turns(order: str, alternate: bool) -> None:
    assert trials._alternate([(name, "default") for name in order]) is alternate


def test_unselected_case_is_not_required(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    edited(folder, CONFIG, lambda c: [sweep.update(neurons=[256, 512]) for sweep in c["config"]["sweep"]])
    complaints = [one.text for one in checking.check(folder) if one.rule == "trials"]
    assert any("nothing of 1 of 2 cases, the first at N=512" in text for text in complaints)
    assert any("at N=512, B=16, T=100, subtract: no memory 0, time 0, time 1" in text for text in complaints)
    edited(folder, CONFIG, lambda c: c.update(only=["neurons=256"]))
    assert [one.text for one in checking.check(folder) if one.rule == "trials"] == []
