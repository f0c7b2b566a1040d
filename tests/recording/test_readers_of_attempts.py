"""Tests of the readers of a cell's attempts: lost jobs, status, progress, show, the page, the checker, the merge."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from snnbench import checking
from snnbench.checking import files
from snnbench.plan.cell import Cell
from snnbench.plan.shard import Shard
from snnbench.recording import attempts, in_progress, merge
from snnbench.recording.reading import CONFIG, RECORDS, read
from snnbench.recording.record import Record
from snnbench.recording.writer import append
from snnbench.report.overview import find
from snnbench.report.page import noise
from snnbench.report.text import cell_description
from snnbench.run import status
from snnbench.run.progress import Pace, ending
from snnbench.run.slurm import jobs
from snnbench.run.slurm.scheduler import State
from tests.bench import SMALL
from tests.recording.test_attempts import attempted, disturbed, written
from tests.recordings import recording, timed


def test_lost_job_is_recorded_as_its_attempt(tmp_path: Path) -> None:
    """The node died during the second attempt: the first attempt counts, and the second is tried again."""
    shard, folder = Shard(1, 1), tmp_path / "run"
    first = disturbed(started="2026-11-21T10:00:00+00:00")
    job_run = jobs.create(folder, {"shards": ["1/1"], "identity": "x"})
    written(job_run.recording(shard), first)
    job_run = jobs.remember_ids(job_run, {shard: "7"})
    gone = replace(attempted("lost", 1), started="2026-11-21T10:05:00+00:00", settings={"cells_before": 4})
    in_progress.put(job_run.recording(shard), gone)
    (collected,) = jobs.collect(job_run, shard, State("NODE_FAIL"))
    there = read(job_run.recording(shard))
    assert (collected.attempt, collected.outcome.kind) == (1, "lost")
    assert there.records == [first] and attempts.of(there).next == {first.cell: 1}
    in_progress.put(job_run.recording(shard), gone)
    assert jobs.collect(job_run, shard, State("NODE_FAIL")) == [], "it has its record"


def test_status_counts_cells_to_be_measured_again(tmp_path: Path) -> None:
    from snnbench.cli.status import lines as status_lines

    folder = written(tmp_path / "r", disturbed(), disturbed("b", cpus=0.0), planned=2).folder
    assert list(status_lines(folder)) == [
        f"{folder}: 2 of 2 cells, 1 of them disturbed and to be measured again; 2 measured"
    ]
    assert status.part(folder).left_s == 1.5


def test_progress_includes_the_cells_of_a_round() -> None:
    cell = Cell(SMALL, "a", "default", 0, "time")
    pace = Pace([cell])
    pace.start(cell)
    pace.end(cell)
    pace.add([cell])
    assert (pace.count, pace.total, bool(pace.left)) == (1, 2, True)
    assert ending(disturbed()) == "exact, 1.5 s, disturbed by others"
    assert ending(disturbed(attempt=1, cpus=0.0)) == "exact, 1.5 s, measured again"


def test_show_has_every_attempt_of_a_cell(tmp_path: Path) -> None:
    records = [disturbed(cpus=0.5), attempted("crash", 1), disturbed(attempt=2, cpus=0.3, train=4.0)]
    stored = written(tmp_path / "r", *records)
    text = list(cell_description.lines(stored, stored.records[0]))
    assert text[text.index("flags: contended") + 1 :][:3] == [
        "attempt 3 of 3 counts: others took at least 0.3 CPUs",
        "  attempt 1 does not: others took at least 0.5 CPUs, train 3 ms",
        "  attempt 2 does not: failed: crash: so it was",
    ]
    assert not any(
        "attempt" in line for line in cell_description.lines(recording(timed("b", train=1.0)), timed("b", train=1.0))
    )


def test_page_counts_the_cells_measured_again(tmp_path: Path) -> None:
    records = [disturbed(trial=trial, attempt=attempt) for trial in range(2) for attempt in range(3)]
    section = noise.section(find(written(tmp_path / "r", *records)))
    assert section.sentences[-1].startswith("2 cells were measured again because others disturbed them")
    assert not any("again because" in text for text in noise.section(find(recording(disturbed()))).sentences)


@pytest.mark.parametrize(
    ("records", "remeasure", "complaint"),
    [
        ([disturbed(), disturbed(attempt=1), disturbed(attempt=2, cpus=0.0)], 2, ""),
        ([disturbed(), attempted("crash", 1), disturbed(attempt=2)], 2, ""),
        ([disturbed(cpus=0.0), disturbed(attempt=1)], 2, "though an earlier attempt was not disturbed"),
        ([disturbed(), disturbed(attempt=1)], 0, "measured again 1 times, where the protocol allows 0"),
        ([disturbed(), disturbed(attempt=2)], 2, "has the attempts 0, 2, and should have all from 0 on"),
        ([disturbed(attempt=1)], 2, "has the attempts 1, and should"),
        ([disturbed(), disturbed(attempt=1), disturbed(attempt=1, train=9.0)], 2, "is there more than once"),
    ],
)
def test_checker_allows_attempts_of_disturbed_cells_only(
    tmp_path: Path, records: list[Record], remeasure: int, complaint: str
) -> None:
    stored = written(tmp_path / "r", *records, remeasure=remeasure, finished=True)
    texts = [text for _, text in files.complaints(stored, files.lines(stored))]
    assert (len(texts) == 1 and complaint in texts[0]) if complaint else texts == []


def test_attempt_in_an_older_schema_is_reported(tmp_path: Path) -> None:
    stored = written(tmp_path / "r", disturbed(), finished=True)
    line = json.loads((stored.folder / RECORDS).read_text()) | {"schema": 3}
    (stored.folder / RECORDS).write_text(json.dumps(line) + "\n")
    texts = [text for _, text in files.complaints(read(stored.folder), files.lines(stored))]
    assert [text.endswith("of schema 3, which did not have attempt") for text in texts] == [True]
    del line["attempt"]
    (stored.folder / RECORDS).write_text(json.dumps(line) + "\n")
    assert [one.attempt for one in read(stored.folder).records] == [0]


def test_checker_examines_superseded_attempts(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    source = Path(__file__).parents[2] / "results" / "2026-11-21_quick_xeon-2-50ghz-2cpu"
    stored = read(source)
    (record, *_) = (each for each in stored.records if "contended" in each.flags)
    worse = {
        name: phase | {"contention": {"foreign_cpus": 9.0, "stolen_cpus": 0.0}} for name, phase in record.phases.items()
    }
    forged = replace(record, attempt=1, flags=[], phases=worse)
    folder.mkdir()
    for path in source.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    config = json.loads((folder / CONFIG).read_text())
    config["config"]["protocol"]["remeasure"] = 2
    (folder / CONFIG).write_text(json.dumps(config))
    with (folder / RECORDS).open("a") as stream:
        stream.write(forged.encode())
    assert [each.attempt for each in read(folder).attempts] == [1]
    (complaint,) = (each for each in checking.check(folder) if each.rule == "flags")
    assert "attempt 1" in complaint.where


def test_merge_keeps_all_attempts(tmp_path: Path) -> None:
    """The earlier merge is older than the shard's second measurement."""
    shards = {"shard": "1/1", "whole": "w", "planned": 1, "whole_planned": 1}
    first = disturbed(started="2026-11-21T10:00:00+00:00")
    second = disturbed(attempt=1, cpus=0.2, started="2026-11-21T10:00:00+00:00")
    part = written(tmp_path / "part", first, **shards)
    assert merge.merge([part], tmp_path / "merged").records == [first]
    with append(part.folder, part.config, part.machine) as writer:
        writer.add(second)
    for _ in range(2):
        merged = merge.merge([read(part.folder)], tmp_path / "merged")
        assert (merged.records, merged.attempts) == ([second], [first])
    other = written(tmp_path / "other", replace(first, log="otherwise"), **shards)
    with pytest.raises(merge.Disagreement, match=r"was measured in .* and, otherwise, in"):
        merge.merge([part, other], tmp_path / "again")
