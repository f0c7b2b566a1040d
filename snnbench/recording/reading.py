"""Recordings as they are read: a folder of records with the documents that describe it.

    results/2026-11-21_quick_<machine>/
        config.json       the resolved config, and the selection from it
        machine.json      facts of the machine
        records.jsonl     one record a line
        environments.json installed versions, by environment key

A recording can be read at any moment, also while it is written. A line torn by a kill or a full disk is not a record;
its cell is run again.
"""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from snnbench.machine import description
from snnbench.printable import printable
from snnbench.recording import drift, schema
from snnbench.recording.drift import DRIFTED
from snnbench.recording.record import Record, RecordingError, loaded, parse
from snnbench.worker.contention import CONTENDED_CPUS, others_cpus
from snnbench.worker.messages import EXCHANGES

RECORDS, CONFIG, MACHINE, ENVIRONMENTS = "records.jsonl", "config.json", "machine.json", "environments.json"
FILES = (RECORDS, CONFIG, MACHINE, ENVIRONMENTS)


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording as read. `torn` counts lines that are not records; `environments` maps key -> package -> version.

    `records` has one record a cell, the attempt that counts; `attempts` has the other attempts of disturbed cells.
    `disproved` has the failures in DISPROVED of cells that were measured later. `exchanges` has the cells of
    importers and exporters, which are in none of the others.
    """

    folder: Path
    config: dict[str, Any]
    machine: dict[str, Any]
    records: list[Record]
    torn: int
    environments: dict[str, Any] = field(default_factory=dict)
    disproved: list[Record] = field(default_factory=list)
    attempts: list[Record] = field(default_factory=list)
    exchanges: list[Record] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The folder's name, also if its path is a link or ends in dots."""
        return printable(self.folder.resolve().name)

    @property
    def model(self) -> str | None:
        """The machine's model by its recorded facts, None if it is unknown."""
        return description.recorded_model(self.machine)

    @property
    def named_by(self) -> str | None:
        """The machine's model in the names of its cells, which the snnbench that measured gave it."""
        return self.machine.get("model")

    @property
    def version(self) -> str | None:
        """The version of snnbench that measured, None if it is unknown."""
        return self.config.get("snnbench")

    @property
    def resolved(self) -> dict[str, Any]:
        """The resolved config, {} if it is unknown."""
        return self.config.get("config", {})  # type: ignore[no-any-return]

    @property
    def protocol(self) -> dict[str, Any]:
        """The protocol of the config, {} if it is unknown."""
        return self.resolved.get("protocol", {})  # type: ignore[no-any-return]

    @property
    def is_race(self) -> bool:
        """Whether slower contenders have fewer trials, and fewer phases, than those that lead."""
        return self.protocol.get("until") == "certain" and bool(self.protocol.get("phases")) and not self.sides

    @property
    def baseline(self) -> str:
        """The contender that others are divided by; "" if the config names none."""
        return str(self.config.get("baseline", ""))

    @property
    def sides(self) -> dict[str, list[str]]:
        """The changes of each side of an A/B test; {} in other recordings."""
        return self.config.get("sides", {})  # type: ignore[no-any-return]

    @property
    def finished(self) -> bool:
        """Whether every planned cell was measured."""
        return bool(self.config.get("finished"))

    @property
    def closed(self) -> str:
        """Why cells stay missing, if `snnbench close` ended the recording before it was finished; else ""."""
        return str(self.config.get("closed", ""))

    @property
    def unfinished(self) -> bool:
        """Whether its run was stopped or still goes on, or planned cells are not there. Without an identity it is of no
        run.
        """
        lacks = not self.finished or len(self.records) < (self.planned or 0)
        return "identity" in self.config and lacks and not self.closed

    @property
    def planned(self) -> int | None:
        """The number of planned cells, None if it is unknown."""
        return self.config.get("planned")


def read(folder: Path) -> Recording:
    """The recording in `folder`, also while it is written. If an attempt has two records, the later one counts.

    Only records of a contender's latest adapter file and environment in a workload count: earlier ones are stale.
    """
    if folder.name == RECORDS and folder.is_file():  # the file that a shell completes to
        folder = folder.parent
    if not (folder / RECORDS).is_file():
        raise RecordingError(f"{folder}: no recording here (no {RECORDS})")
    by_cell: dict[str, dict[int, Record]] = {}
    latest: dict[tuple[str, str, str, str, bool], tuple[str, str]] = {}
    failures: dict[tuple[str, int], Record] = {}
    torn = 0
    with _uncollected():
        for line in _text(folder / RECORDS).split("\n"):
            record = parse(line, folder)
            if record is None:
                torn += bool(line.strip())
            else:
                by_cell.setdefault(record.cell, {})[record.attempt] = record
                if record.outcome.disproved:
                    failures[record.cell, record.attempt] = record
                latest[_maker(record)] = (record.adapter, record.environment)
    levels = drift.relative(record for tried in by_cell.values() for record in tried.values())
    records, attempts = [], []
    for tried in by_cell.values():
        for number, record in tried.items():
            level = levels.get((record.cell, number))
            tried[number] = flagged(record, level is not None and level.drifted)
        counting = chosen(list(tried.values()))
        if (counting.adapter, counting.environment) == latest[_maker(counting)]:
            records.append(counting)
            attempts += [tried[number] for number in sorted(tried) if tried[number] is not counting]
    disproved = [
        failures[record.cell, record.attempt]
        for record in [*records, *attempts]
        if record.status == "measured" and (record.cell, record.attempt) in failures
    ]
    exchanges = [record for record in records if record.measure in EXCHANGES]
    records = [record for record in records if record.measure not in EXCHANGES]
    config, machine, environments = (document(folder / name) for name in (CONFIG, MACHINE, ENVIRONMENTS))
    return Recording(folder, config, machine, records, torn, environments, disproved, attempts, exchanges)


def _maker(record: Record) -> tuple[str, str, str, str, bool]:
    """Whose records a later adapter or environment makes stale: those of a contender in a workload.

    A workload may need packages of its own. An exchange of a NIR graph leaves the contender's times alone.
    """
    is_exchange = record.measure in EXCHANGES
    return record.library, record.variant, record.side, record.case.workload, is_exchange


def flagged(record: Record, drifted: bool) -> Record:
    """The record with or without the drift flag. Only the whole recording decides it, not the record's line."""
    if drifted == (DRIFTED in record.flags):
        return record
    return replace(record, flags=[*(flag for flag in record.flags if flag != DRIFTED), *([DRIFTED] if drifted else [])])


def chosen(attempts: Sequence[Record]) -> Record:
    """The attempt of a cell that counts: the least disturbed measured attempt; among equals, the later one.

    Disturbance is the number of reasons (contended, drifted), then the CPUs that others took. Contention comes from the
    record's raw numbers, for its flag may be missing.

    If an attempt disproved the work (DISPROVED), it counts before all measured ones. If no attempt was measured, the
    latest counts.
    """
    if disproved := [record for record in attempts if record.outcome.disproved]:
        return max(disproved, key=lambda record: record.attempt)
    measured = [record for record in attempts if record.status == "measured"]

    def disturbance(record: Record) -> tuple[int, float, int]:
        taken = others_cpus(record.phases)
        return (taken > CONTENDED_CPUS) + (DRIFTED in record.flags), taken, -record.attempt

    return min(measured or attempts, key=disturbance)


def document(path: Path) -> dict[str, Any]:
    """A document of a recording; {} if the file is missing. Raises RecordingError."""
    if path.is_fifo():  # reading it would wait for a writer
        raise RecordingError(f"{path}: Is a pipe")
    try:
        content = loaded(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise RecordingError(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise RecordingError(f"{path}: {error}") from error
    if not isinstance(content, dict):
        raise RecordingError(f"{path}: expected a JSON object")
    if complaint := schema.complaint(path.stem, content):
        raise RecordingError(f"{path}: {complaint}")
    return content


def _text(path: Path) -> str:
    """The text of a file that is there. Raises RecordingError."""
    try:
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise RecordingError(f"{path}: {error.strerror}") from error


@contextmanager
def _uncollected() -> Iterator[None]:
    """Disable garbage collection of cycles: parsed records have none, and it took two thirds of reading 10,000."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
