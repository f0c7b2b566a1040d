"""Tests of the checker: sound recordings, and recordings with one error each."""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from snnbench import checking
from snnbench.checking import files, records, trials
from snnbench.exits import Exit
from snnbench.plan.config import Protocol
from snnbench.recording.reading import CONFIG, ENVIRONMENTS, MACHINE, RECORDS, read
from snnbench.recording.record import Record
from snnbench.workloads.case import Case
from snnbench.workloads.outcome import decode
from tests.sweep import snnbench

RESULTS = Path(__file__).parents[2] / "results"
TIMED = "2026-11-21_quick_epyc-2cpu_2"
OTHER_NEURONS = "2026-11-21_library-defaults_epyc-2cpu_2"
Document = dict[str, Any]


@pytest.mark.parametrize("folder", sorted(RESULTS.iterdir()), ids=lambda folder: folder.name)
def test_shipped_recording_keeps_the_rules(folder: Path) -> None:
    assert checking.check(folder) == []


def copied(tmp_path: Path, name: str = TIMED) -> Path:
    return Path(shutil.copytree(RESULTS / name, tmp_path / name))


def edited(folder: Path, name: str, change: Callable[[Document], Any]) -> None:
    path = folder / name
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def edited_record(folder: Path, measure: str, change: Callable[[Document], Any]) -> None:
    """Change the first record of this kind of measurement."""
    lines = [json.loads(line) for line in (folder / RECORDS).read_text().splitlines()]
    change(next(line for line in lines if line["measure"] == measure))
    (folder / RECORDS).write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def faster(record: Document) -> None:
    """Divide the times of a training pass by 100."""
    train = record["phases"]["train"]
    train["repetitions_ns"] = [ns // 100 for ns in train["repetitions_ns"]]
    train["times_floor"] /= 100


def shortened(record: Document) -> None:
    record["phases"]["train"]["repetitions_ns"] = record["phases"]["train"]["repetitions_ns"][:3]


def spot(record: Document) -> Document:
    return record["checks"]["spot-train"]  # type: ignore[no-any-return]


def sound(measure: str) -> Document:
    """A record of this kind of measurement that keeps all rules."""
    return next(one for one in read(RESULTS / TIMED).records if one.measure == measure).as_dict()


def proof(document: Document) -> list[str]:
    """The complaints about the proof in a record of schema 3."""
    return list(
        records.proof(
            Record(**document | {"case": Case(**document["case"]), "outcome": decode(document["outcome"])}), 3
        )
    )


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
    ("durations", "3 repetitions", "time", shortened),
    ("durations", "whole nanoseconds", "time", lambda r: r["phases"]["train"].update(warmup_ns=[0, 5])),
    ("durations", "1 warm-up", "time", lambda r: r["phases"]["train"].update(warmup_ns=[5])),
    ("durations", "1 compilations", "time", lambda r: r["phases"]["train"].update(compilations=1)),
    ("durations", "protocol asks for", "time", lambda r: r["phases"].pop("forward")),
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


def test_malformed_and_duplicate_lines_are_reported(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    text = (folder / RECORDS).read_text()
    (folder / RECORDS).write_text(text + text.splitlines()[0] + "\n" + text[:100])
    assert [one.text for one in checking.check(folder) if one.rule == "files"] == [
        "1 lines are no records",
        f"cell {json.loads(text.splitlines()[0])['cell']} is there more than once; the last counts",
    ]


def relabelled(schema: int, more: Callable[[Document], Any] = lambda line: None) -> Callable[[Document], Any]:
    """A line with an older schema, without that schema's missing fields, and with the change `more`."""

    def change(line: Document) -> None:
        line["schema"] = schema
        line["case"].pop("input_kind")
        if schema < 2:
            line.pop("peaks")
            for timing in line["phases"].values():
                for name in ("flops", "least_bytes", "floor_ns", "times_floor"):
                    timing.pop(name)
        more(line)

    return change


RULE = {"slope": 1.0}
OLDER: list[tuple[int, str, Callable[[Document], Any]]] = [
    (1, "peaks", lambda line: line.update(peaks={})),
    (1, "floor_ns", lambda line: line["phases"]["train"].update(flops=1, least_bytes=1, floor_ns=1, times_floor=1.0)),
    (2, "own_rule", lambda line: line["outcome"].update(own_rule=RULE)),
    (2, "inference_only", lambda line: line["outcome"].update(inference_only="slow")),
    (2, "common-train", lambda line: line["checks"].update({"common-train": COMMON})),
    (2, "input_kind", lambda line: line["case"].update(input_kind="spikes")),
]
COMMON: Document = {
    **{"compared": 5, "differing": 1, "gradient_errors": {}, "complaints": [], "rate": 0.5, "expected_rate": 0.1},
    "cosines": {},
}


@pytest.mark.parametrize(("schema", "text", "more"), OLDER, ids=[f"{w[0]}-{w[1]}" for w in OLDER])
def test_newer_field_in_an_older_schema_is_reported(
    tmp_path: Path, schema: int, text: str, more: Callable[[Document], Any]
) -> None:
    folder = copied(tmp_path)

    def schema_complaints() -> list[str]:
        return [one.text for one in checking.check(folder) if one.rule == "files" and "did not have" in one.text]

    edited_record(folder, "time", relabelled(schema))
    assert schema_complaints() == []
    edited_record(folder, "time", more)
    (complaint,) = schema_complaints()
    assert f"is of schema {schema}, which did not have " in complaint and text in complaint


@pytest.mark.parametrize(
    ("more", "newer"),
    [
        ({}, []),
        ({"attempt": 0}, ["attempt"]),
        ({"checks": {"fresh-train": {}, "spot-train": {}}}, ["fresh-train"]),
        ({"phases": {"train": {"fresh_ns": [1], "drawn_ns": [1], "passes": 1}}}, ["drawn_ns", "fresh_ns"]),
        ({"phases": {"train": {"drawn_ns": [1]}}, "attempt": 1}, ["drawn_ns", "attempt"]),
    ],
)
def test_fresh_passes_and_attempts_came_with_schema_4(more: Document, newer: list[str]) -> None:
    line = {"schema": 3, "case": {"input_kind": "spikes"}, "outcome": {}, **more}
    assert list(files._newer(line)) == newer
    assert list(files._newer(line | {"schema": 4})) == []


def test_sides_came_with_schema_5() -> None:
    line = {"schema": 4, "case": {}, "outcome": {}, "side": "base"}
    assert list(files._newer(line)) == ["side"]
    assert list(files._newer(line | {"schema": 6})) == list(files._newer(line | {"side": ""})) == []


@pytest.mark.parametrize(
    ("stops_early", "timed", "required"),
    [(True, 4, 4), (True, 5, 6), (True, 9, 12), (True, 0, 4), (False, 4, 12)],
)
def test_both_sides_are_required_up_to_a_look(stops_early: bool, timed: int, required: int) -> None:
    recording = replace(read(RESULTS / TIMED), config={"sides": {"base": [], "new": []}, "stops_early": stops_early})
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


def test_mixed_schemas_are_reported(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    edited_record(folder, "time", relabelled(1))
    assert [one.text for one in checking.check(folder) if one.rule == "files"] == [
        "lines of the schemas 1, 3; a recording has one",
        "input_kind, which there was not yet in schema 1",
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


def test_several_layers_need_a_second_exam() -> None:
    deep = sound("time") | {"case": sound("time")["case"] | {"layers": 2}}
    assert "no check exam-2" in proof(deep)
    assert "no check exam-2" not in proof(sound("time"))
    deep["checks"] = deep["checks"] | {"exam-2": deep["checks"]["exam-1"]}
    assert "no check exam-2" not in proof(deep)


def test_verified_record_needs_a_spot_check() -> None:
    recorded = read(RESULTS / OTHER_NEURONS).records
    verified = next(one for one in recorded if one.status == "measured").as_dict()
    assert verified["measure"] == "verify" and proof(verified) == []
    verified["checks"] = {name: check for name, check in verified["checks"].items() if not name.startswith("spot-")}
    assert "no spot check" in proof(verified)


def test_trials_without_turns_are_reported(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    lines = (folder / RECORDS).read_text().splitlines(keepends=True)
    by_work = sorted(lines, key=lambda line: json.dumps([json.loads(line)[k] for k in ("library", "variant", "case")]))
    (folder / RECORDS).write_text("".join(by_work))
    assert [one.text for one in checking.check(folder)] == [
        "the trials of each contender follow one another; they should take turns with those of the others"
    ]


def keep_lines(folder: Path, keep: Callable[[Document], bool]) -> None:
    """Leave only some of the lines."""
    lines = (folder / RECORDS).read_text().splitlines(keepends=True)
    (folder / RECORDS).write_text("".join(line for line in lines if keep(json.loads(line))))


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
        (None, ["sweep 'zero': nothing of 1 of 1 cases, the first at N=256, zero"]),
        (["neurons>=8"], ["sweep 'zero': nothing of 1 of 1 cases, the first at N=256, zero"]),
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
    edited(folder, CONFIG, lambda c: c.update(only=["library=torch-loop"]))
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


def test_fault_of_a_contender_with_its_own_rule_is_reported(tmp_path: Path) -> None:
    folder = copied(tmp_path, OTHER_NEURONS)

    def lie(record: Document) -> None:
        record["checks"]["exam-1"].update(correct=False, complaints=["another neuron"])

    lines = [json.loads(line) for line in (folder / RECORDS).read_text().splitlines()]
    lie(next(line for line in lines if "own_rule" in line["outcome"]))
    (folder / RECORDS).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert [one.text for one in checking.check(folder)] == ["exam-1: found a fault: another neuron"]


DEVIATING: list[tuple[str, Callable[[Document], Any]]] = [
    ("spot-train: compared nothing", lambda r: spot(r).update(compared=0)),
    ("exam-1: compared 1, where", lambda r: r["checks"]["exam-1"].update(compared=1)),
    ("common-train: compared 5, where", lambda r: r["checks"]["common-train"].update(compared=5)),
    ("spot-train: 900000 spikes differ", lambda r: spot(r).update(differing=900000)),
    ("how far off its gradient", lambda r: r["checks"].pop("common-train")),
    ("how far off its gradient", lambda r: r["checks"]["common-train"]["gradient_errors"].clear()),
    ("malformed: KeyError", lambda r: spot(r).pop("rate")),
]


@pytest.mark.parametrize(("text", "change"), DEVIATING, ids=[text for text, _ in DEVIATING])
def test_deviating_record_needs_its_distance(tmp_path: Path, text: str, change: Callable[[Document], Any]) -> None:
    folder = copied(tmp_path, "2026-11-21_library-defaults_epyc-2cpu")
    path = folder / RECORDS
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    free = next(line for line in lines if "deviation" in line["outcome"] and "own_rule" not in line["outcome"])
    change(free)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert [one.rule for one in checking.check(folder) if text in one.text] == ["proof"]


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_non_finite_rate_is_reported(value: float) -> None:
    timed = next(one for one in read(RESULTS / TIMED).records if one.measure == "time")
    document = timed.as_dict()
    spot(document).update(rate=value)
    record = replace(timed, checks=document["checks"])
    assert "spot-train: rate is" in " ".join(records.proof(record, 3))


def test_command_has_its_own_exit_code(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    done = snnbench(tmp_path, "check", str(folder))
    assert (done.returncode, done.stdout) == (0, "") and "39 cells, keeps the rules" in done.stderr
    edited_record(folder, "time", faster)
    done = snnbench(tmp_path, "check", str(folder))
    assert done.returncode == Exit.UNSOUND == 7 and "below the floor" in done.stdout
    done = snnbench(tmp_path, "check", str(tmp_path))
    assert done.returncode == Exit.ERROR and done.stderr.count("\n") == 1 and "no recording here" in done.stderr


def test_diverged_sample_in_several_layers_is_not_a_fault() -> None:
    """One spike that rounding moves in a hidden layer changes a whole sample."""
    (sound,) = [one for one in read(RESULTS / TIMED).records if one.measure == "time" and one.library == "norse"][:1]
    check = sound.checks["spot-inference"] | {"differing": 400}
    record = replace(sound, checks=sound.checks | {"spot-inference": check, "exam-2": sound.checks["exam-1"]})
    assert any("400 of 76800 spikes differ" in text for text in records.proof(record, 3))
    deep = replace(record, case=record.case.with_(layers=2))
    assert not any("spikes differ" in text for text in records.proof(deep, 3))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"passes": 2, "fresh_ns": [9] * 5, "drawn_ns": [9]}, ""),
        ({"passes": 2, "fresh_ns": [9] * 4, "drawn_ns": [9]}, "4 fresh passes, 1 on content drawn anew, where"),
        ({"passes": 2, "fresh_ns": [9] * 6, "drawn_ns": []}, "6 fresh passes, 0 on content drawn anew, where"),
        ({"passes": 1, "fresh_ns": [5, 6], "drawn_ns": [7, 8]}, ""),
        ({"passes": 1, "fresh_ns": [5], "drawn_ns": [7]}, "a repetition of a single pass is not among"),
        ({"passes": 1}, "malformed"),
    ],
)
def test_every_phase_needs_fresh_passes_since_schema_4(changes: dict[str, Any], complaint: str) -> None:
    recording = read(RESULTS / TIMED)
    timed = next(one for one in recording.records if one.measure == "time")
    phases = {"train": timed.phases["train"] | {"repetitions_ns": [5, 6, 7], "warmup_ns": [1]} | changes}
    checks = timed.checks | {"fresh-train": timed.checks["spot-train"]}
    protocol = Protocol.model_validate(recording.config["config"]["protocol"]).model_copy(
        update={"phases": ("train",), "repetitions": 3, "warmup_passes": 1}
    )
    record = replace(timed, phases=phases, checks=checks)
    texts = [text for rule, text in records.complaints(record, 4, "", protocol) if rule == "durations"]
    assert any(complaint in text for text in texts) if complaint else texts == []
    assert [text for rule, text in records.complaints(record, 3, "", protocol) if rule == "durations"] == []
    without = replace(record, checks=timed.checks)
    assert "no check fresh-train" in [text for _, text in records.complaints(without, 4, "", protocol)]


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
    assert any("at N=512, subtract: no memory 0, time 0, time 1" in text for text in complaints)
    edited(folder, CONFIG, lambda c: c.update(only=["neurons=256"]))
    assert [one.text for one in checking.check(folder) if one.rule == "trials"] == []
