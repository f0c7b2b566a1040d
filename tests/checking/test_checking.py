"""Tests of the checker: sound recordings, and recordings with one error each."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from snnbench import checking
from snnbench.exits import Exit
from snnbench.recording.reading import CONFIG, ENVIRONMENTS, MACHINE, RECORDS, read
from tests.shipped import Document, copied, edited, edited_record, spot
from tests.sweep import snnbench


def only_pass(record: Document) -> None:
    """One pass in place of the repetitions of a phase, as in a race."""
    train = record["phases"]["train"]
    longest = max(train["repetitions_ns"])
    train.update(passes=1, repetitions_ns=[longest], fresh_ns=[longest], drawn_ns=[], warmup_ns=[], enough_ns=1)


def faster(record: Document) -> None:
    """Divide the times of a training pass by 100."""
    train = record["phases"]["train"]
    train["repetitions_ns"] = [ns // 100 for ns in train["repetitions_ns"]]
    train["times_floor"] /= 100


def shortened(record: Document) -> None:
    record["phases"]["train"]["repetitions_ns"] = record["phases"]["train"]["repetitions_ns"][:3]


WRONG: list[tuple[str, str, str, Callable[[Document], Any]]] = [
    ("outcome", "an unknown kind", "time", lambda r: r.update(outcome=NEITHER | {"kind": "lazy"}, **NOTHING)),
    ("outcome", "without a reason", "time", lambda r: r.update(outcome=NEITHER | {"reason": ""}, **NOTHING)),
    ("outcome", "malformed", "time", lambda r: r.update(started="yesterday")),
    ("outcome", "its zone", "time", lambda r: r.update(started="2026-11-21T10:00:00")),
    ("name", "its content has the name", "time", lambda r: r["case"].update(seed=2)),
    ("name", "its content has the name", "time", lambda r: r.update(trial=9)),
    ("proof", "exact is the word", "time", lambda r: r["outcome"].update(verdict="equivalent")),
    ("proof", "no check exam-1", "time", lambda r: r["checks"].pop("exam-1")),
    ("proof", "no check spot-forward", "time", lambda r: r["checks"].pop("spot-forward")),
    ("proof", "no check spot-train", "memory", lambda r: r["checks"].pop("spot-train")),
    ("proof", "compared nothing", "time", lambda r: r["checks"]["spot-train"].update(compared=0)),
    ("proof", "compared 40, where there are 51200 to 76800", "time", lambda r: spot(r).update(compared=40)),
    ("proof", "compared 900000000, where", "time", lambda r: spot(r).update(compared=900000000)),
    ("proof", "compared 8, where there are 1480 to", "time", lambda r: r["checks"]["exam-1"].update(compared=8)),
    ("proof", "1 spikes differ, 2 of them", "time", lambda r: spot(r).update(differing=1, unexplained=2)),
    ("proof", "found a fault: no", "time", lambda r: r["checks"]["exam-1"].update(complaints=["no"])),
    ("proof", "found a fault", "time", lambda r: r["checks"]["exam-1"].update(unexplained=1)),
    ("proof", "400 of 76800 spikes differ", "time", lambda r: r["checks"]["spot-train"].update(differing=400)),
    ("proof", "outside the window", "time", lambda r: r["checks"]["spot-train"].update(rate=0.0)),
    ("proof", "off by", "time", lambda r: r["checks"]["spot-train"]["gradient_errors"].update(weight=0.1)),
    ("proof", "no gradient of input", "time", lambda r: r["checks"]["exam-1"]["gradient_errors"].pop("input")),
    ("proof", "malformed: KeyError", "time", lambda r: r["checks"]["exam-1"].pop("rate")),
    ("provenance", "it is version 9, and", "time", lambda r: r["settings"].update(version="9")),
    ("durations", "3 repetitions", "time", shortened),
    ("durations", "whole nanoseconds", "time", lambda r: r["phases"]["train"].update(warmup_ns=[0, 5])),
    ("durations", "1 warm-up", "time", lambda r: r["phases"]["train"].update(warmup_ns=[5])),
    ("durations", "1 compilations", "time", lambda r: r["phases"]["train"].update(compilations=1)),
    ("durations", "this is no race", "time", only_pass),
    ("durations", "protocol asks for", "time", lambda r: r["phases"].pop("forward")),
    ("energy", "energy of 0.5 s, where it takes 1 s", "time", lambda r: r["phases"]["train"].update(energy=SHORT)),
    ("floor", "below the floor", "time", faster),
    ("floor", "floor_ns is 1,", "time", lambda r: r["phases"]["train"].update(floor_ns=1)),
    ("floor", "flops is 7,", "time", lambda r: r["phases"]["train"].update(flops=7)),
    ("floor", "no peak of copy", "time", lambda r: r["peaks"].pop("copy")),
    ("floor", "peak current is of 5 FLOPs", "time", lambda r: r["peaks"]["current"].update(work=5)),
    ("memory", "whole bytes", "memory", lambda r: r["memory"]["host"].update(peak_bytes=-1)),
    ("memory", "static_bytes is 5", "memory", lambda r: r["memory"].update(static_bytes=5)),
    ("flags", "give ['contended']", "time", lambda r: r["phases"]["train"]["contention"].update(foreign_cpus=1.0)),
    ("flags", "its numbers give []", "time", lambda r: r.update(flags=["quiet"])),
]
NEITHER: Document = {"status": "skipped", "kind": "unsupported", "reason": "it cannot"}
CRASHED: Document = {"status": "failed", "kind": "crash", "reason": "died of SIGSEGV"}
SHORT = {"counter": "rapl", "passes": 9, "wall_ns": 500_000_000, "counted_uj": 9, "idle_ns": 9, "idle_uj": 9}
NOTHING: Document = {"phases": {}, "memory": {}, "peaks": {}, "probes": {}, "wall_s": None, "flags": []}


@pytest.mark.parametrize(("rule", "text", "measure", "change"), WRONG, ids=[f"{w[0]}-{w[1]}" for w in WRONG])
def test_one_fault_in_a_record_is_reported(
    tmp_path: Path, rule: str, text: str, measure: str, change: Callable[[Document], Any]
) -> None:
    folder = copied(tmp_path)
    edited_record(folder, measure, change)
    complaints = checking.check(folder)
    assert any(one.rule == rule and text in one.text for one in complaints), complaints


@pytest.mark.parametrize(
    ("rule", "text", "name", "change"),
    [
        ("files", "not finished", CONFIG, lambda c: c.update(finished=False)),
        ("provenance", "version of snnbench", CONFIG, lambda c: c.pop("snnbench")),
        ("provenance", "holds no config", CONFIG, lambda c: c.pop("config")),
        ("provenance", "protocol.trials", CONFIG, lambda c: c["config"]["protocol"].update(trials="two")),
        ("trials", "no time 2", CONFIG, lambda c: c["config"]["protocol"].update(trials=3)),
        ("trials", "not in the config", CONFIG, lambda c: c["config"]["sweep"].pop()),
        ("provenance", "kernel is not known", MACHINE, lambda m: m.pop("kernel")),
        ("provenance", "record hashes", MACHINE, lambda m: m.update(host="my-laptop")),
        ("provenance", "record hashes", MACHINE, lambda m: m.update(host="0123456789abcdef.example")),
        ("provenance", "record hashes", MACHINE, lambda m: m.update(host="0123456789a")),
        ("provenance", "record hashes", MACHINE, lambda m: m.update(gpus=[{"uuid": "GPU-0123456789ab"}])),
        ("provenance", "AWS_SECRET should not", MACHINE, lambda m: m["environment"].update(AWS_SECRET="x")),
        ("provenance", "MY_KEY should not", MACHINE, lambda m: m.update(varying={"environment.MY_KEY": ["x", None]})),
        ("provenance", "lists no packages for", ENVIRONMENTS, lambda e: e.clear()),
        (
            "provenance",
            "is not among its installed packages",
            ENVIRONMENTS,
            lambda e: [v.update(snntorch="9") for v in e.values()],
        ),
        ("name", "its content", MACHINE, lambda m: m.update(model="a faster one")),
    ],
)
def test_one_fault_in_a_recording_is_reported(
    tmp_path: Path, rule: str, text: str, name: str, change: Callable[[Document], Any]
) -> None:
    folder = copied(tmp_path)
    edited(folder, name, change)
    complaints = checking.check(folder)
    assert any(one.rule == rule and text in one.text for one in complaints), complaints


@pytest.mark.parametrize("divisor", [1, 30_001, 40_003, 50_021])
def test_floor_in_whole_nanoseconds_is_its_own_rounding(tmp_path: Path, divisor: int) -> None:
    """A floor of some hundred nanoseconds differs from its rounding by more than a thousandth."""

    def divide_times(record: Document) -> None:
        for timed in (*record["peaks"].values(), *record["phases"].values()):
            timed["passes"] *= divisor
        for phase in record["phases"].values():
            phase["floor_ns"] = round(phase["floor_ns"] / divisor)

    folder = copied(tmp_path)
    edited_record(folder, "time", divide_times)
    found = [one.text for one in checking.check(folder) if one.rule == "floor"]
    assert not [text for text in found if "far below the case's" not in text]


def test_malformed_and_duplicate_lines_are_reported(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    text = (folder / RECORDS).read_text()
    (folder / RECORDS).write_text(text + text.splitlines()[0] + "\n" + text[:100])
    assert [one.text for one in checking.check(folder) if one.rule == "files"] == [
        "1 lines are no records",
        f"cell {json.loads(text.splitlines()[0])['cell']} is there more than once; the last counts",
    ]


def test_gpu_without_uuid_needs_no_hash(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    edited(folder, MACHINE, lambda m: m.update(gpus=[{"name": "a card"}, {"name": "too", "uuid": "0123456789ab"}]))
    assert not [one for one in checking.check(folder) if one.rule == "provenance"]


def test_repeated_complaint_is_reported_once(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    edited(folder, ENVIRONMENTS, lambda e: e.clear())
    complaints = [one.text for one in checking.check(folder) if one.rule == "provenance"]
    contenders = {(one.library, one.variant) for one in read(folder).records if one.status == "measured"}
    assert len(complaints) == len(set(complaints)) == len(contenders)


@pytest.mark.parametrize("error", [OSError("x"), KeyError("x"), IndexError("x"), TypeError("x"), ValueError("x")])
def test_malformed_input_is_reported_after_earlier_complaints(error: Exception) -> None:
    def look() -> Iterator[str]:
        yield "one"
        yield "one"
        yield "two"
        raise error

    complaints = [(one.rule, one.where, one.text) for one in checking._guarded("trials", "here", look())]
    malformed = f"malformed: {type(error).__name__}: {error}"
    assert complaints == [("trials", "here", text) for text in ("one", "two", malformed)]


def test_missing_environments_file_is_malformed(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    (folder / ENVIRONMENTS).unlink()
    (complaints,) = (one.text for one in checking.check(folder) if one.rule == "provenance")
    assert complaints.startswith("malformed: FileNotFoundError")


def test_empty_recording_is_reported(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    (folder / RECORDS).write_text("")
    assert "no cell is recorded" in [one.text for one in checking.check(folder) if one.rule == "files"]


def test_only_a_failed_cell_may_be_repeated(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    first, *others = [json.loads(line) for line in (folder / RECORDS).read_text().splitlines()]

    def complaints(*documents: Document) -> list[str]:
        (folder / RECORDS).write_text("".join(f"{json.dumps(line)}\n" for line in (*documents, *others)))
        return [one.text for one in checking.check(folder) if one.rule == "files"]

    crashed, incorrect = (first | NOTHING | {"outcome": CRASHED | {"kind": kind}} for kind in ("crash", "incorrect"))
    assert complaints(first) == complaints(crashed, first) == []
    assert complaints(first, first) == [f"cell {first['cell']} is there more than once; the last counts"]
    assert complaints(first, crashed) == [f"cell {first['cell']} is there more than once; the last counts"]
    assert complaints(incorrect, first) == [f"cell {first['cell']} was incorrect before it was measured"]


def test_command_has_its_own_exit_code(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    done = snnbench(tmp_path, "check", str(folder))
    assert (done.returncode, done.stdout) == (0, "") and "39 cells, keeps the rules" in done.stderr
    edited_record(folder, "time", faster)
    done = snnbench(tmp_path, "check", str(folder))
    assert done.returncode == Exit.UNSOUND == 7 and "below the floor" in done.stdout
    done = snnbench(tmp_path, "check", str(tmp_path))
    assert done.returncode == Exit.ERROR and done.stderr.count("\n") == 1 and "no recording here" in done.stderr


def test_check_names_what_changed_between_two_halves(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    edited(folder, MACHINE, lambda machine: machine.update(varying={"kernel": ["6.1", "6.2"]}))
    assert "not the same for all cells: kernel" in snnbench(tmp_path, "check", str(folder)).stderr
