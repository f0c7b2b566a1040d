"""Checks of recordings from other people against the rules of measurement, independent of the runner.

Nothing in a recording is run or imported. Facts that a recording cannot show, such as its author, are not checked.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from snnbench import measures
from snnbench.analysis import floors
from snnbench.checking import epochs, files, records, trials
from snnbench.machine.description import SETTINGS
from snnbench.plan.config import Config
from snnbench.recording import reading, upgrades
from snnbench.recording.reading import Recording
from snnbench.recording.record import Record

RULES = {
    "files": "lines are records of one schema, a cell is measured again only where others disturbed it or the machine "
    "drifted and never after it was incorrect, and the run is finished or closed",
    "provenance": "machine, versions, config and snnbench are known; hosts and cards are hashed, no secret is "
    "recorded; no file of a user replaced an adapter of snnbench itself, and each version is that of the environment",
    "trials": "every case and contender that was planned is there with all trials of the protocol, unless the run was "
    "closed, they took turns, all trials of a contender in a case ended alike, and memory is of the program "
    "that was timed",
    "outcome": "a cell is measured, skipped or failed in a way that there is, with a reason",
    "name": "a cell's name is the digest of its content",
    "proof": "every measured cell passed the exam and the spot checks of its size; "
    "a contender that deviates without a rule of its own has its errors recorded",
    "durations": "every raw duration is there, nothing was compiled among them, and no phase used more CPUs than its "
    "case has",
    "floor": "the floor follows from the peaks that were measured, no floor is far below those of the case's other "
    "processes, and no time lies below the floor",
    **{measures.title(name): half.rule for name, half in measures.harnesses().items() if half.rule},
    "learning": "an epoch over the same data has the same losses, bit by bit, however its samples are loaded",
    "flags": "every disturbance of a measurement is flagged",
}
"""Name of a rule -> the rule."""
FACTS = ("model", "host", "cpu", "memory", "gpus", "os", "kernel", "python", "environment")
HASH = re.compile(r"[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Complaint:
    """A violated rule; `where` is a file or a cell."""

    rule: str
    where: str
    text: str


def check(folder: Path) -> list[Complaint]:
    """All complaints about a recording. Raises RecordingError if it cannot be read."""
    recording = reading.read(folder)
    lines = files.lines(recording)
    complaints = [Complaint("files", where, text) for where, text in files.complaints(recording, lines)]
    config = _config(recording)
    if isinstance(config, str):
        return [*complaints, Complaint("provenance", reading.CONFIG, config)]
    complaints += _guarded("provenance", reading.MACHINE, _provenance(recording))
    complaints += _guarded("trials", reading.RECORDS, trials.complaints(recording, config))
    complaints += _guarded("learning", reading.RECORDS, epochs.learning(recording.records))
    machine = str(recording.named_by)
    schemas = {line["cell"]: line["schema"] for line in lines}  # the last of a cell counts
    for entry in [*recording.records, *recording.attempts]:
        pairs = records.complaints(entry, schemas[entry.cell], machine, config.protocol)
        complaints += [Complaint(rule, _cell(entry), text) for rule, text in pairs]
    return complaints + [Complaint("floor", _cell(entry), text) for entry, text in floors.complaints(recording.records)]


def _cell(entry: Record) -> str:
    again = f", attempt {entry.attempt}" if entry.attempt else ""
    return f"{entry.cell} ({entry.label}, {entry.measure} {entry.trial}{again})"


def _config(recording: Recording) -> Config | str:
    """The config of the run, or why it is unknown."""
    from pydantic import ValidationError

    try:
        document = recording.resolved
        upgrades.resolved(document)
        return Config.model_validate(document)
    except (LookupError, TypeError, AttributeError):
        return "holds no config"
    except ValidationError as error:
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def _provenance(recording: Recording) -> Iterator[str]:
    if names := recording.config.get("replaced"):
        yield f"files of the user replaced snnbench's own adapters: {', '.join(names)}"
    if not recording.version:
        yield "the version of snnbench is not known"
    yield from (f"{fact} is not known" for fact in FACTS if fact not in recording.machine)
    hashes = [recording.machine.get("host"), *(gpu.get("uuid") for gpu in recording.machine.get("gpus", []))]
    if any(name is not None and not HASH.fullmatch(str(name)) for name in hashes):
        yield "a host or a card has its own name; record hashes"
    varying = recording.machine.get("varying", {})
    elsewhere = [fact.removeprefix("environment.") for fact in varying if fact.startswith("environment.")]
    for name in [*recording.machine.get("environment", {}), *elsewhere]:
        if not any(fnmatchcase(name, pattern) for pattern in SETTINGS):
            yield f"the environment variable {name} should not be recorded"
    installed = json.loads((recording.folder / reading.ENVIRONMENTS).read_text(encoding="utf-8"))
    for entry in recording.records:
        if entry.status == "measured":
            if entry.environment not in installed:
                yield f"{reading.ENVIRONMENTS} lists no packages for {entry.label}"
            elif entry.version is not None and entry.version not in installed[entry.environment].values():
                yield f"{entry.label} {entry.version} is not among its installed packages"
            if (told := entry.settings.get("version", entry.version)) != entry.version:
                yield f"{entry.label} says that it is version {told}, and its environment has {entry.version}"


def _guarded(rule: str, where: str, found: Iterator[str]) -> Iterator[Complaint]:
    """The complaints of a rule, each once. Malformed content is a complaint, too."""
    texts: set[str] = set()
    try:
        for text in found:
            if text not in texts:
                texts.add(text)
                yield Complaint(rule, where, text)
    except (OSError, LookupError, TypeError, ValueError, AttributeError) as error:
        yield Complaint(rule, where, f"malformed: {type(error).__name__}: {error}")
