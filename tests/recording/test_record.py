"""Tests of recordings: a written record survives every later event, and a run finds its own recording again."""

import errno
import io
import json
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from snnbench.recording.reading import CONFIG, ENVIRONMENTS, MACHINE, RECORDS, read
from snnbench.recording.record import SCHEMA, Record, RecordingError, repeated
from snnbench.recording.writer import Writer, append, choose
from snnbench.workloads.outcome import Outcome
from tests.recordings import EXACT, failed, record, timed

ABOUT = {"identity": "this", "machine": "laptop", "config": {"name": "quick"}}
FACTS = {"model": "a laptop"}
TODAY = date(2026, 11, 21)
NOBODY = 65534


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


@pytest.mark.parametrize("remainder", [1, 0.5, 0.99], ids=["one byte", "half", "almost all"])
def test_torn_last_line_is_ignored(folder: Path, three: list[Record], remainder: float) -> None:
    keep(folder, *three)
    whole = (folder / RECORDS).read_bytes()
    start = whole[:-1].rindex(b"\n") + 1
    torn = whole[: start + (remainder if isinstance(remainder, int) else int((len(whole) - start) * remainder))]
    (folder / RECORDS).write_bytes(torn)
    recording = read(folder)
    assert (recording.records, recording.torn) == (three[:2], 1)
    done = keep(folder, three[2])
    assert done == {one.cell for one in three[:2]}
    recording = read(folder)
    assert (recording.records, recording.torn) == (three, 1)
    assert (folder / RECORDS).read_bytes().startswith(torn + b"\n"), "existing bytes are never rewritten"


def test_last_line_without_newline_is_a_record(folder: Path, three: list[Record]) -> None:
    keep(folder, *three)
    whole = (folder / RECORDS).read_bytes()
    (folder / RECORDS).write_bytes(whole[:-1])
    assert keep(folder) == {one.cell for one in three}
    assert (folder / RECORDS).read_bytes() == whole


@pytest.mark.parametrize(
    "line",
    ["{}", "[]", "null", "\0\0\0", '{"schema": 1}', '{"schema": "new"}', '{"schema": 1, "cell": "x", "more": 1}'],
)
def test_malformed_line_is_counted(folder: Path, three: list[Record], line: str) -> None:
    keep(folder, *three)
    with (folder / RECORDS).open("a") as stream:
        stream.write(f"{line}\n")
    recording = read(folder)
    assert (recording.records, recording.torn) == (three, 1)


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
    assert (SCHEMA, list(Record.__dataclass_fields__)) == (6, names + measured)


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
        assert recording_read.torn == 0 and {one.cell for one in recording_read.records} == written != set()


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


def test_folder_of_another_run_is_refused(folder: Path, three: list[Record]) -> None:
    keep(folder, *three)
    with pytest.raises(RecordingError) as caught:
        keep(folder, about=ABOUT | {"identity": "other"})
    assert str(caught.value) == f"{folder}: holds a recording of another config or machine; name another folder"
    assert read(folder).records == three


def test_versions_by_environment_only_grow(folder: Path) -> None:
    with append(folder, ABOUT, FACTS) as writer:
        writer.environments({"one": {"numpy": "1"}})
        writer.environments({"two": {"numpy": "2"}})
    assert json.loads((folder / ENVIRONMENTS).read_text()) == {"one": {"numpy": "1"}, "two": {"numpy": "2"}}


@contextmanager
def unprivileged() -> Iterator[None]:
    """Act as a user without root's rights."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def refusal(folder: Path) -> str:
    """The error message for a folder that cannot be written."""
    with pytest.raises(RecordingError) as caught:
        keep(folder)
    return str(caught.value)


def test_unwritable_folder_is_one_line(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    advice = "its records are kept, and the same command continues once it can be written"
    with unprivileged():
        message = refusal(closed / "one")
    assert message == f"{closed}/one: cannot be written (Permission denied); {advice}"
    (tmp_path / "file").touch()
    assert refusal(tmp_path / "file" / "one") == f"{tmp_path}/file/one: cannot be written (Not a directory); {advice}"


@contextmanager
def file_size_limit(size_bytes: int) -> Iterator[None]:
    """Limit the size of every file. The kernel writes up to the limit and refuses the rest, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_full_disk_tears_one_line_and_loses_nothing(folder: Path, three: list[Record]) -> None:
    keep(folder, *three[:2])
    size = (folder / RECORDS).stat().st_size
    with file_size_limit(size + 100), pytest.raises(RecordingError) as caught:
        keep(folder, three[2])
    assert str(caught.value).startswith(f"{folder}: cannot be written (File too large); its records are kept")
    assert (folder / RECORDS).stat().st_size == size + 100, "nothing is tried again once there is room"
    assert read(folder).records == three[:2]
    assert keep(folder, three[2]) == {one.cell for one in three[:2]}
    assert read(folder).records == three


class Full(io.FileIO):
    """A stream to a disk with room for a few bytes."""

    room = 30

    def write(self, data: Any) -> int:
        """Write as many bytes as fit, then raise the error of a full disk."""
        if not self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = super().write(data[: self.room])
        self.room -= written
        return written


def test_no_space_left_is_one_line(folder: Path, three: list[Record]) -> None:
    keep(folder, three[0])
    with Full(folder / RECORDS, "ab+") as stream, pytest.raises(RecordingError) as caught:
        Writer(folder, stream, ABOUT, FACTS).add(three[1])
    assert str(caught.value) == (
        f"{folder}: cannot be written (No space left on device); "
        "its records are kept, and the same command continues once it can be written"
    )
    assert (read(folder).records, read(folder).torn) == (three[:1], 1)


def begun(root: Path, name: str, finished: bool = False, **about: Any) -> Path:
    """A recording under `root`."""
    with append(root / name, ABOUT | about, FACTS) as writer:
        if finished:
            writer.finish()
    return root / name


def chosen(root: Path, identity: str = "this", machine: str = "laptop") -> str:
    """The folder for a run."""
    return choose(root, "quick", identity, machine, TODAY).relative_to(root).name


def test_run_continues_its_own_unfinished_recording(tmp_path: Path) -> None:
    begun(tmp_path, "2026-11-20_quick_laptop")
    assert chosen(tmp_path) == "2026-11-20_quick_laptop"


@pytest.mark.parametrize("about", [{"identity": "other"}, {"machine": "server"}, {"finished": True}], ids=str)
def test_other_or_finished_recording_is_not_continued(tmp_path: Path, about: dict[str, Any]) -> None:
    begun(tmp_path, "2026-11-20_quick_laptop", **about)
    assert chosen(tmp_path) == "2026-11-21_quick_laptop"


def test_later_unfinished_recording_is_continued(tmp_path: Path) -> None:
    for day in ("19", "20", "18"):
        begun(tmp_path, f"2026-11-{day}_quick_laptop")
    assert chosen(tmp_path) == "2026-11-20_quick_laptop"


def test_second_recording_of_a_day_has_a_number(tmp_path: Path) -> None:
    names = []
    for _ in range(3):
        names.append(chosen(tmp_path))
        begun(tmp_path, names[-1], finished=True)
    assert names == [f"2026-11-21_quick_laptop{end}" for end in ("", "_2", "_3")]


def test_tenth_of_a_day_is_later_than_the_ninth(tmp_path: Path) -> None:
    for end in ("", "_2", "_10", "_9"):
        begun(tmp_path, f"2026-11-20_quick_laptop{end}")
    assert chosen(tmp_path) == "2026-11-20_quick_laptop_10"
    begun(tmp_path, "2026-11-21_quick_laptop")
    assert chosen(tmp_path) == "2026-11-21_quick_laptop"


def test_bare_number_is_a_name(tmp_path: Path) -> None:
    for end in ("_9", "_10"):
        begun(tmp_path, end)
    assert chosen(tmp_path) == "_9", "these are two names, of which _9 is the later"


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


def test_other_files_under_results_are_ignored(tmp_path: Path) -> None:
    for name, text in (("published", "[1, 2]"), ("broken", '{"ident'), ("empty", "{}")):
        (tmp_path / name).mkdir()
        (tmp_path / name / CONFIG).write_text(text)
    assert chosen(tmp_path) == "2026-11-21_quick_laptop"


def test_malformed_machine_file_is_one_line(folder: Path) -> None:
    keep(folder)
    (folder / MACHINE).write_text("{")
    with pytest.raises(RecordingError, match=r"machine\.json: Expecting property name"):
        read(folder)
