"""Tests of contended cells: measured again in rounds, with every attempt kept; the least disturbed counts."""

import json
import os
import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from snnbench import checking
from snnbench.analysis.results import results_by_case
from snnbench.checking import files
from snnbench.plan.cell import Cell
from snnbench.plan.shard import Shard
from snnbench.recording import attempts, in_progress, merge
from snnbench.recording.reading import CONFIG, RECORDS, Recording, chosen, read
from snnbench.recording.record import SCHEMA, Record
from snnbench.recording.writer import append
from snnbench.report import tidy
from snnbench.report.findings import find
from snnbench.report.page import noise
from snnbench.report.text import cell_description
from snnbench.run import status
from snnbench.run.executor import Executor
from snnbench.run.progress import Pace, ending
from snnbench.run.runner import Run, Setup
from snnbench.run.slurm import jobs
from snnbench.run.slurm.scheduler import State
from tests.fakes import CORRECT
from tests.recordings import failed, recording, timed
from tests.run.test_runner import SMALL, Bench, bench
from tests.sweep import lines, recordings, run_arguments, snnbench, write_config

pytestmark = pytest.mark.quiet

__all__ = ["bench"]

LYING = """
from pathlib import Path
from snnbench.worker import contention, probes

probes.Probes.as_dict = lambda self: {{"interpreter": {{"looks_ns": [[5], [5]]}}}}

with Path(__file__).with_suffix(".runs").open("a+") as file:
    file.write("x")
    file.flush()
    file.seek(0)
    TAKEN = {taken}[len(file.read()) - 1]
contention.between = lambda *usages: {{"foreign_cpus": TAKEN, "stolen_cpus": 0.0, "own_cpus": 1.0}}
"""
"""Makes a fake report these foreign CPUs, one number for each of its processes in turn."""


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


def rounds(bench: Bench, trials: int = 1, remeasure: int = 2) -> list[Record]:
    """Run a plan of all fakes of a bench. Returns the records in the order of their creation."""
    plan = [Cell(SMALL, name, "default", trial, "time") for trial in range(trials) for name in bench.adapters]
    bench.protocol = bench.protocol.model_copy(update={"remeasure": remeasure})
    return bench.run(plan)


def test_disturbed_cells_run_again_in_rounds_after_the_plan(bench: Bench) -> None:
    """All three attempts of a are disturbed, b's second is undisturbed, and c is never disturbed."""
    for name, taken in (("a", [0.5, 0.4, 0.6, 0.0]), ("b", [0.5, 0.0, 9.9]), ("c", [0.0, 9.9])):
        bench.add(name, LYING.format(taken=taken) + CORRECT)
    made = rounds(bench)
    assert [(one.library, one.attempt) for one in made] == [
        *[("a", 0), ("b", 0), ("c", 0)],
        *[("a", 1), ("b", 1)],
        ("a", 2),
    ]
    assert [cell.library for cell in bench.watcher.again] == ["a", "b", "a"]
    stored = read(bench.recording)
    counting = {one.library: (one.attempt, one.flags) for one in stored.records}
    assert counting == {"a": (1, ["contended"]), "b": (1, []), "c": (0, [])}
    assert len(stored.attempts) == 3 and not list(bench.recording.glob("*.running"))
    assert rounds(bench) == [], "the same command measures nothing beyond the limit"


@pytest.mark.parametrize(("remeasure", "count"), [(0, 1), (1, 2), (3, 4)])
def test_protocol_limits_the_number_of_attempts(bench: Bench, remeasure: int, count: int) -> None:
    bench.add("a", LYING.format(taken=[0.5] * 5) + CORRECT)
    assert [one.attempt for one in rounds(bench, remeasure=remeasure)] == list(range(count))


def test_killed_run_continues_with_the_remaining_attempts(bench: Bench) -> None:
    bench.add("a", LYING.format(taken=[0.5, 0.4, 0.3, 0.0]) + CORRECT)
    first = rounds(bench, remeasure=0)
    assert [one.attempt for one in first] == [0], "as if it was killed here"
    assert [one.attempt for one in rounds(bench)] == [1, 2]
    assert [one.flags for one in read(bench.recording).records] == [["contended"]]
    assert rounds(bench) == []


def test_interrupted_attempt_is_repeated_under_its_number(bench: Bench) -> None:
    waiting = "import time\nif TAKEN < 0:\n    Path(__file__).with_suffix('.now').touch()\n    time.sleep(30)\n"
    bench.add("a", LYING.format(taken=[0.5, -1.0, 0.0]) + waiting + CORRECT)

    def interrupt() -> None:
        while not (bench.folder / "a.now").exists():
            threading.Event().wait(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    watcher = threading.Thread(target=interrupt)
    watcher.start()
    with pytest.raises(KeyboardInterrupt):
        rounds(bench)
    watcher.join()
    stored = read(bench.recording)
    assert [one.status for one in stored.records] == ["measured"]
    assert [(one.attempt, one.outcome.kind) for one in stored.attempts] == [(1, "cancelled")]
    assert [one.attempt for one in rounds(bench)] == [1]
    stored = read(bench.recording)
    assert [(one.attempt, one.flags) for one in stored.records] == [(1, [])]
    assert [one.attempt for one in stored.attempts] == [0]


def test_incorrect_attempt_decides_the_cell(bench: Bench) -> None:
    wrong = "if TAKEN < 0:\n    build = lambda case, weights, variant: network(replace(case, beta=0.5), weights)\n"
    bench.add("a", LYING.format(taken=[0.5, -1.0, 0.0]) + CORRECT + wrong)
    made = rounds(bench)
    assert [(one.attempt, one.outcome.kind) for one in made] == [(0, None), (1, "incorrect")]
    assert [one.outcome.kind for one in read(bench.recording).records] == ["incorrect"]


def test_memory_and_verification_are_not_measured_again(bench: Bench) -> None:
    bench.add("a", LYING.format(taken=[0.5] * 9) + CORRECT)
    plan = [Cell(SMALL, "a", "default", 0, measure) for measure in ("memory", "verify")]  # type: ignore[arg-type]
    bench.protocol = bench.protocol.model_copy(update={"remeasure": 2})
    assert [one.attempt for one in bench.run(plan)] == [0, 0]


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


def test_run_on_a_busy_machine_ends_with_a_message(tmp_path: Path) -> None:
    """The whole command, with a shard, and the output of other commands for its recording."""
    from tests.fakes import write

    adapter = write(tmp_path, LYING.format(taken=[0.5, 0.4, 0.0, 0.0, 0.0]) + CORRECT, "a")
    config = write_config(tmp_path, ["a"], trials=2, memory_trials=0, remeasure=1)
    options = run_arguments(config, [adapter], "--shard", "1/1")
    planned = snnbench(tmp_path, *options, "--dry-run").stdout
    assert planned.count("a subtract") == 2 and not recordings(tmp_path)
    done = snnbench(tmp_path, *options)
    assert done.returncode == 0, done.stderr
    assert "2 of 2 cells were disturbed, and are measured again" in done.stderr
    assert "[4/4]" in done.stderr and "measured again" in done.stderr
    (folder,) = recordings(tmp_path)
    assert [line["attempt"] for line in lines(folder)] == [0, 0, 1, 1]
    assert {line["schema"] for line in lines(folder)} == {SCHEMA}
    assert [one.text for one in checking.check(folder) if one.rule in ("files", "flags", "trials")] == []
    printed = snnbench(tmp_path, "status", folder).stdout
    assert printed.startswith(f"{folder}: 2 of 2 cells, finished; 2 measured")
    again = snnbench(tmp_path, *options)
    assert len(lines(folder)) == 4 and len(recordings(tmp_path)) == 2, again.stderr


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
        "attempt 3 of 3 counts: others took 0.3 CPUs",
        "  attempt 1 does not: others took 0.5 CPUs, train 3 ms",
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
    source = Path(__file__).parents[2] / "results" / "2026-11-21_quick_epyc-2cpu_3"
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


def test_parallel_cells_are_measured_again_on_their_gpus(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    from snnbench.machine import cpus, gpus
    from snnbench.run import slots
    from tests.run.test_executor import ANYWHERE, CARDS

    monkeypatch.setattr(gpus, "has_cuda", lambda: True)
    monkeypatch.setattr(cpus, "usable_cpus", lambda *given: 2)
    monkeypatch.setenv(slots.VARIABLE, str(bench.folder / "slots"))
    for name, taken in (("a", [0.0, 0.0]), ("b", [0.5, 0.0])):
        bench.add(name, LYING.format(taken=taken) + ANYWHERE)
    sizes = {"a": 16, "b": 20}
    cases = {name: SMALL.with_(neurons=neurons, device="cuda") for name, neurons in sizes.items()}
    plan = [Cell(case, name, "default", 0, "time") for name, case in cases.items()]
    protocol = bench.protocol.model_copy(update={"remeasure": 1})
    setup = Run({"": Setup(bench.adapters, bench.interpreters)}, protocol, "s", 1 << 40)
    with bench.writer() as writer:
        Executor(setup, writer, bench.watcher).execute(plan, CARDS)
    made = [record for _, record in bench.watcher.ended]
    assert sorted((cell_record.library, cell_record.attempt) for cell_record in made) == [("a", 0), ("b", 0), ("b", 1)]
    cards = {cell_record.library: set[str]() for cell_record in made}
    for cell_record in made:
        cards[cell_record.library].add(cell_record.settings["card"])
    assert cards == {"a": {CARDS[0].name}, "b": {CARDS[1].name}}
