"""Tests of recordings: a written record is read again, and only the run that a recording belongs to adds to it."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from snnbench.cases.outcome import Outcome
from snnbench.recording import in_progress
from snnbench.recording.reading import CONFIG, ENVIRONMENTS, MACHINE, RECORDS, read
from snnbench.recording.record import SCHEMA, Record, RecordingError, repeated
from snnbench.recording.writer import append
from tests.fakes import CASE
from tests.recordings import EXACT, failed, record, timed
from tests.shipped import copied

ABOUT = {"identity": "this", "machine": "laptop", "config": {"name": "quick"}}
FACTS = {"model": "a laptop"}


def keep(folder: Path, *records: Record, about: dict[str, Any] = ABOUT) -> set[str]:
    """Append records. Returns the cells done before."""
    with append(folder, about, FACTS) as writer:
        done = set(writer.done())
        for added in records:
            writer.add(added)
    return done


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder for a recording; it does not exist yet."""
    return tmp_path / "results" / "one"


@pytest.fixture
def three() -> list[Record]:
    """Three cells."""
    return [timed("a", trial, train=1.0, flags=["contended"]) for trial in range(3)]


def test_recording_round_trip(folder: Path, three: list[Record]) -> None:
    keep(folder, *three)
    recording = read(folder)
    assert recording.records == three
    assert (recording.name, recording.config, recording.machine, recording.torn) == ("one", ABOUT, FACTS, 0)


def test_added_record_is_in_the_file_at_once(folder: Path, three: list[Record]) -> None:
    with append(folder, ABOUT, FACTS) as writer:
        for count, added in enumerate(three, start=1):
            writer.add(added)
            assert len(read(folder).records) == count


def test_record_is_one_line_with_its_schema(folder: Path) -> None:
    keep(folder, failed("a", "crash", "x", log="two\nlines\u2028and a half"))
    (line,) = (folder / RECORDS).read_text().splitlines()
    assert json.loads(line)["schema"] == SCHEMA
    assert read(folder).records[0].log == "two\nlines\u2028and a half"


def test_newer_schema_is_refused_with_a_next_step(folder: Path, three: list[Record]) -> None:
    keep(folder, *three)
    with (folder / RECORDS).open("a") as stream:
        stream.write(f'{{"schema": {SCHEMA + 1}, "cell": "x"}}\n')
    expected = f"{folder}: written by a newer snnbench (schema above {SCHEMA}); install that one"
    for use in (read, keep):
        with pytest.raises(RecordingError) as caught:
            use(folder)
        assert str(caught.value) == expected


def test_schema_number_matches_the_fields() -> None:
    """Otherwise an older snnbench takes the records for torn lines, without a message."""
    measured = ["checks", "settings", "phases", "memory", "peaks", "probes", "flags", "started", "wall_s", "log"]
    names = ["cell", "library", "variant", "trial", "measure", "case", "outcome", "attempt", "side"]
    names += ["version", "adapter", "environment"]
    assert (SCHEMA, list(Record.__dataclass_fields__)) == (8, names + measured)


def test_record_of_the_first_schema_is_read(folder: Path, three: list[Record]) -> None:
    """The first schema has no `peaks`, and its input is always spikes."""
    keep(folder, *three)
    lines = [json.loads(line) for line in (folder / RECORDS).read_text().splitlines()]
    for line in lines:
        assert line["case"].pop("input_kind") == "spikes"
    old = [{name: value for name, value in line.items() if name != "peaks"} | {"schema": 1} for line in lines]
    (folder / RECORDS).write_text("".join(f"{json.dumps(line)}\n" for line in old))
    assert (read(folder).records, read(folder).torn) == (three, 0)


def test_shipped_recordings_are_read() -> None:
    """Old ones are read, too."""
    paths = sorted((Path(__file__).parents[2] / "results").glob("*/records.jsonl"))
    assert paths, "no shipped recording"
    for path in paths:
        recording_read = read(path.parent)
        written = {json.loads(line)["cell"] for line in path.read_text(encoding="utf-8").splitlines()}
        kept = {one.cell for one in (*recording_read.records, *recording_read.exchanges)}
        assert recording_read.torn == 0 and kept == written != set()


@pytest.mark.parametrize(
    ("outcome", "retry", "again"),
    [
        (EXACT, (), False),
        (Outcome(status="failed", kind="cancelled", reason="x"), (), True),
        (Outcome(status="failed", kind="lost", reason="x"), (), False),
        (Outcome(status="failed", kind="lost", reason="x", scheduler="NODE_FAIL"), (), True),
        (Outcome(status="failed", kind="crash", reason="x", scheduler="FAILED"), (), False),
        (Outcome(status="failed", kind="crash", reason="x"), ("crash",), True),
        (Outcome(status="failed", kind="crash", reason="x"), ("timeout",), False),
        (Outcome(status="failed", kind="lost", reason="x"), ("lost",), True),
    ],
)
def test_inconclusive_or_retried_cell_is_run_again(
    outcome: dict[str, Any], retry: tuple[str, ...], again: bool
) -> None:
    assert repeated(outcome, retry) is again


def test_folder_without_recording_is_refused(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(RecordingError) as caught:
            read(folder)
        assert str(caught.value) == f"{folder}: no recording here (no records.jsonl)"


def test_unmeasured_record_holds_no_measurement(folder: Path) -> None:
    for held in ({"phases": {"train": {}}}, {"memory": {"host": {}}}, {"peaks": {"copy": {}}}, {"wall_s": 0.5}):
        with pytest.raises(ValueError, match="is failed, yet holds measurements"):
            failed("a", "incorrect", "x", **held)
    keep(folder, failed("a", "incorrect", "x"))
    forged = json.loads((folder / RECORDS).read_text()) | {"phases": {"train": {"repetitions_ns": [1]}}}
    (folder / RECORDS).write_text(json.dumps(forged) + "\n")
    assert (read(folder).records, read(folder).torn) == ([], 1)


def test_nan_is_not_written(folder: Path) -> None:
    with append(folder, ABOUT, FACTS) as writer, pytest.raises(ValueError, match="JSON compliant"):
        writer.add(timed("a", memory={"host": {"peak_bytes": float("nan")}}))
    assert (folder / RECORDS).read_bytes() == b""


@pytest.mark.parametrize("wrong", [{"case": CASE.with_(seed=10**16)}, {"flags": ["two words"]}])
def test_record_that_cannot_be_read_back_is_not_written(folder: Path, wrong: dict[str, Any]) -> None:
    """Its line would count as torn. A cell is marked before it is measured, so that nothing is measured in vain."""
    with append(folder, ABOUT, FACTS) as writer:
        for keeping in (writer.add, partial(in_progress.put, folder)):
            with pytest.raises(RecordingError, match="cannot hold"):
                keeping(timed("a", **wrong))
        with pytest.raises(RecordingError, match="cannot hold"):
            writer.environments({"one": {"numpy": None}})  # type: ignore[dict-item]
    assert ((folder / RECORDS).read_bytes(), list(folder.glob("*.running"))) == (b"", [])


def test_later_record_of_a_cell_counts(folder: Path) -> None:
    keep(folder, failed("a", "cancelled", "x"), record("a"))
    assert [one.status for one in read(folder).records] == ["measured"]


def test_cancelled_cell_is_not_done_but_a_failed_one_is(folder: Path) -> None:
    keep(folder, failed("a", "cancelled", "x"), failed("b", "crash", "x"), timed("c", train=1.0))
    assert keep(folder) == {one.cell for one in read(folder).records if one.library != "a"}


@pytest.mark.parametrize("change", [{"adapter": "new"}, {"environment": "new"}])
def test_records_of_an_old_adapter_or_environment_are_ignored(folder: Path, change: dict[str, str]) -> None:
    """They are not trials of the present adapter and environment. Another library's records count."""
    old = {"adapter": "old", "environment": "old"}
    keep(folder, *(timed(name, trial, train=9.0, **old) for name in "ab" for trial in (0, 1)))
    keep(folder, timed("a", 2, train=1.0, **(old | change)))
    assert [(one.library, one.trial) for one in read(folder).records] == [("b", 0), ("b", 1), ("a", 2)]
    assert len((folder / RECORDS).read_text().splitlines()) == 5, "they stay on the disk"


def test_second_writer_is_refused_until_the_first_has_ended(folder: Path, three: list[Record]) -> None:
    with append(folder, ABOUT, FACTS) as writer:
        writer.add(three[0])
        with pytest.raises(RecordingError) as caught:
            keep(folder)
        assert str(caught.value) == f"{folder}: another run is writing here"
        writer.add(three[1])
    assert keep(folder, three[2]) == {three[0].cell, three[1].cell}
    assert read(folder).records == three


@pytest.mark.parametrize(
    ("change", "other"),
    [
        ({"config": {"name": "quick", "protocol": {"trials": 2}}}, "config (protocol.trials)"),
        ({"only": ["neurons=3"]}, "choice of contenders (--only)"),
        ({"machine": "a server"}, "machine"),
        ({}, "machine, Python (--env) or file of a side"),
    ],
)
def test_folder_of_another_run_is_refused(
    folder: Path, three: list[Record], change: dict[str, Any], other: str
) -> None:
    keep(folder, *three)
    with pytest.raises(RecordingError) as caught:
        keep(folder, about=ABOUT | {"identity": "other"} | change)
    assert str(caught.value) == f"{folder}: holds a recording of another {other}; name another folder"
    assert read(folder).records == three


def test_folder_of_another_machine_is_refused_by_its_name(folder: Path, three: list[Record]) -> None:
    keep(folder, *three)
    with (
        pytest.raises(RecordingError, match="is of another machine, a laptop; this is a server"),
        append(folder, ABOUT | {"identity": "other"}, {"model": "a server"}),
    ):
        pass


def test_recording_is_read_by_the_name_of_its_records_and_behind_a_mark(folder: Path, three: list[Record]) -> None:
    keep(folder, *three)
    for name in (RECORDS, CONFIG):
        (folder / name).write_text("\ufeff" + (folder / name).read_text())
    there = read(folder / RECORDS)
    assert (there.records, there.folder, there.config["identity"]) == (three, folder, "this")


def test_versions_by_environment_only_grow(folder: Path) -> None:
    with append(folder, ABOUT, FACTS) as writer:
        writer.environments({"one": {"numpy": "1"}})
        writer.environments({"two": {"numpy": "2"}})
    assert json.loads((folder / ENVIRONMENTS).read_text()) == {"one": {"numpy": "1"}, "two": {"numpy": "2"}}


def test_unchanged_plan_is_not_rewritten(folder: Path) -> None:
    """The file is indented for human readers."""
    with append(folder, ABOUT, FACTS) as writer:
        writer.plan({"planned": 3})
        before = (folder / CONFIG).stat().st_ino
        writer.plan({"planned": 3})
        assert (folder / CONFIG).stat().st_ino == before
        writer.plan({"planned": 4})
    lines = ["{", '  "config": {', '    "name": "quick"', "  },", '  "identity": "this",', '  "machine": "laptop",']
    assert (folder / CONFIG).read_text().splitlines() == [*lines, '  "planned": 4', "}"]


def test_malformed_machine_file_is_one_line(folder: Path) -> None:
    keep(folder)
    (folder / MACHINE).write_text("{")
    with pytest.raises(RecordingError, match=r"machine\.json: Expecting property name"):
        read(folder)


def test_recording_has_the_name_of_its_folder_however_it_is_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder := copied(tmp_path))
    Path("../latest").symlink_to(folder)
    assert {read(path).name for path in (Path(), Path("../latest"))} == {folder.name}
