"""Checks a recording against the rules of measurement, apart from the runner that made it: for those that others send.

Nothing in a recording is run or imported. What cannot be seen in it, such as who made it, is not checked.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path

from snnbench import record as records
from snnbench import selection
from snnbench.adapter import label
from snnbench.case import Case
from snnbench.checking import cell, files
from snnbench.config import Config, Protocol, Work
from snnbench.machine import SETTINGS
from snnbench.record import Record, Recording

RULES = {
    "files": "every line is a record, all of one schema, none twice, and the run is finished",
    "provenance": "machine, versions, config and snnbench are known; hosts and cards are hashed, no secret is recorded",
    "trials": "of every case and contender there are all trials that the protocol asks for, and they took turns",
    "outcome": "a cell is measured, skipped or failed in a way that there is, with a reason",
    "name": "a cell's name is the digest of its content",
    "proof": "what was measured sat the exam and the spot checks, and they found nothing that was not declared",
    "durations": "every raw duration is there, and nothing was compiled among them",
    "floor": "the floor follows from the peaks that were measured, and no time lies below it",
    "memory": "memory is in whole bytes, from a process that timed nothing",
    "flags": "what disturbed a measurement is flagged",
}
"""What is checked, by the name of the rule."""
FACTS = ("model", "host", "cpu", "memory", "gpus", "os", "kernel", "python", "environment")
HASH = re.compile(r"[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Complaint:
    """A rule that does not hold somewhere: in a file, or in a cell."""

    rule: str
    where: str
    text: str


def check(folder: Path) -> list[Complaint]:
    """Everything that does not hold of a recording. Raises RecordingError where there is none to be read."""
    recording = records.read(folder)
    found = [Complaint("files", where, text) for where, text in files.complaints(recording)]
    config = _config(recording)
    if isinstance(config, str):
        return [*found, Complaint("provenance", records.CONFIG, config)]
    found += _guarded("provenance", records.MACHINE, _provenance(recording))
    found += _guarded("trials", records.RECORDS, _trials(recording, config))
    machine = str(recording.machine.get("model"))
    schemas = files.schemas(recording)
    for one in recording.records:
        of = f"{one.cell} ({label(one.library, one.variant)}, {one.measure} {one.trial})"
        pairs = cell.complaints(one, schemas[one.cell], machine, config.protocol)
        found += [Complaint(rule, of, text) for rule, text in pairs]
    return found


def _config(recording: Recording) -> Config | str:
    """What was asked for, or why that is not known."""
    from pydantic import ValidationError

    try:
        document = recording.config["config"]
        for sweep in document["sweep"]:
            sweep.setdefault("input_kind", "spikes")  # there was no other before schema 3
        return Config.model_validate(document)
    except (LookupError, TypeError, AttributeError):
        return "holds no config"
    except ValidationError as error:
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def _provenance(recording: Recording) -> Iterator[str]:
    if not recording.config.get("snnbench"):
        yield "the version of snnbench is not known"
    yield from (f"{fact} is not known" for fact in FACTS if fact not in recording.machine)
    hashes = [recording.machine.get("host"), *(gpu.get("uuid") for gpu in recording.machine.get("gpus", []))]
    if any(name is not None and not HASH.fullmatch(str(name)) for name in hashes):
        yield "a host or a card has its own name; record hashes"
    for name in recording.machine.get("environment", {}):
        if not any(fnmatchcase(name, pattern) for pattern in SETTINGS):
            yield f"the environment variable {name} should not be recorded"
    installed = json.loads((recording.folder / records.ENVIRONMENTS).read_text(encoding="utf-8"))
    for one in recording.records:
        if one.status == "measured":
            if one.environment not in installed:
                yield f"{records.ENVIRONMENTS} does not know what was installed for {label(one.library, one.variant)}"
            elif one.version is not None and one.version not in installed[one.environment].values():
                yield f"{label(one.library, one.variant)} {one.version} is not among what was installed for it"


def _trials(recording: Recording, config: Config) -> Iterator[str]:
    protocol = config.protocol
    planned = {("verify", trial) for trial in range(protocol.trials)}
    if protocol.phases:
        planned = {("time", trial) for trial in range(protocol.trials)}
        planned |= {("memory", trial) for trial in range(protocol.memory_trials)}
    there: dict[Work, set[tuple[str, int]]] = {}
    for one in recording.records:
        work = Work(Case(**one.case), one.library, one.variant)
        there.setdefault(work, set()).add((one.measure, one.trial))
    for work in _planned(there, recording, config):
        lacking = sorted(planned - there.pop(work, set()))
        if lacking:
            which = ", ".join(f"{measure} {trial}" for measure, trial in lacking)
            yield f"{label(work.library, work.variant)} at N={work.case.neurons}, {work.case.profile}: no {which}"
    for work in there:
        yield f"{label(work.library, work.variant)} at N={work.case.neurons}, {work.case.profile}: not in the config"
    if not _take_turns(recording.records, protocol):
        yield "the trials of each contender follow one another; they should take turns with those of the others"


def _planned(there: Iterable[Work], recording: Recording, config: Config) -> list[Work]:
    """Every contender that ran a case of a sweep should have run all cases of it that were selected."""
    conditions = [selection.parse(str(text)) for text in recording.config.get("only") or []]
    wanted: dict[Work, None] = {}
    for sweep in config.sweeps:
        cases = dict.fromkeys(sweep.cases())
        contenders = dict.fromkeys((work.library, work.variant) for work in there if work.case in cases)
        works = (Work(case, *contender) for case in cases for contender in contenders)
        wanted.update((work, None) for work in works if all(holds(work) for holds in conditions))
    return list(wanted)


def _take_turns(found: list[Record], protocol: Protocol) -> bool:
    """Whether something else was timed between trials of the same work, where there is anything else."""
    timed = [(one.library, one.variant, *one.case.items()) for one in found if one.measure == "time"]
    works, stretches = len(set(timed)), 1 + sum(one != before for before, one in pairwise(timed))
    return protocol.trials < 2 or works < 2 or stretches > works


def _guarded(rule: str, where: str, look: Iterator[str]) -> Iterator[Complaint]:
    """The complaints of a rule, each once; what is malformed is one, too."""
    said: set[str] = set()
    try:
        for text in look:
            if text not in said:
                said.add(text)
                yield Complaint(rule, where, text)
    except (OSError, LookupError, TypeError, ValueError, AttributeError) as error:
        yield Complaint(rule, where, f"malformed: {type(error).__name__}: {error}")
