"""Merging: it joins the recordings of a run's shards, in any order and repeatedly.

The recordings must agree; each difference is refused by name. If several recordings hold a cell, a measured record
counts before a failed one, and a later failure before an earlier one. A failure that disproves the work is never
dropped for a time: across two recordings it is a contradiction, and within one recording it stays. All attempts of a
disturbed cell are kept, each by the same rules.
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from snnbench.exits import Exit, UserError
from snnbench.plan.shard import parse
from snnbench.recording import merged_machine, reading
from snnbench.recording import record as records
from snnbench.recording.facts import flat
from snnbench.recording.reading import Recording
from snnbench.recording.record import Record
from snnbench.recording.writer import append

OF_A_SHARD = ("identity", "finished", "closed", "shard", "shards", "unfinished", "whole", "planned", "whole_planned")
"""Keys of config.json about shards: they may differ between the parts of a run."""


Attempt = tuple[str, int]
"""(cell, attempt)."""


class Disagreement(UserError):
    """Recordings that are not of one run; the message has a line for each difference."""

    code = Exit.INCOMPARABLE


def merge(recordings: Sequence[Recording], folder: Path) -> Recording:
    """Write all cells of `recordings` to a recording in `folder`. Raises Disagreement, RecordingError.

    `folder` may hold an earlier merge of some of them; it then takes part. Any other recording there is refused.
    """
    target = os.path.realpath(folder)
    if any("shard" in part.config and os.path.realpath(part.folder) == target for part in recordings):
        raise Disagreement(f"{folder}: is one of the recordings to merge; name another folder")
    others = [part for part in recordings if os.path.realpath(part.folder) != target]
    parts = _agreeing([*others, *_earlier(folder)])
    begun = _config(parts) | {"shards": [], "finished": False}  # until the records are there
    with append(folder, begun, merged_machine.joined(part.machine for part in parts)) as writer:
        parts = _agreeing([*others, *_earlier(folder)])  # read again: another merge may have ended meanwhile
        writer.environments(_environments(parts))
        entries = [*_disproofs(parts), *cells(parts)]
        writer.replace(entries, _config(parts), merged_machine.joined(part.machine for part in parts))
    return reading.read(folder)


def _earlier(folder: Path) -> list[Recording]:
    """The merge in a folder, if there is one. Raises Disagreement if the folder holds another recording."""
    path = folder / reading.RECORDS
    config = reading.document(folder / reading.CONFIG)
    if "shards" in config and path.is_file():
        return [reading.read(folder)]
    if config or (path.is_file() and path.stat().st_size):
        raise Disagreement(f"{folder}: holds a recording that is not a merge; name another folder")
    return []


def _agreeing(parts: list[Recording]) -> list[Recording]:
    if lines := [*_differing(parts), *_contradicting(parts)]:
        raise Disagreement("\n".join(lines))
    return parts


def cells(parts: Sequence[Recording]) -> list[Record]:
    """Every attempt of every cell of all parts once, in the order of their starts."""
    best: dict[Attempt, Record] = {}
    for entry in (entry for part in parts for entry in _all(part)):
        best[_attempt(entry)] = max(best.get(_attempt(entry), entry), entry, key=_weight)
    return sorted(best.values(), key=_when)


def _all(part: Recording) -> list[Record]:
    """All attempts, without the drift flag: the whole recording may flag other cells than its parts did."""
    return [reading.flagged(one, drifted=False) for one in (*part.records, *part.attempts, *part.exchanges)]


def _attempt(entry: Record) -> Attempt:
    return entry.cell, entry.attempt


def _disproofs(parts: Sequence[Recording]) -> list[Record]:
    """The failures in DISPROVED of cells that were measured later, each once."""
    return sorted({_text(one): one for part in parts for one in part.disproved}.values(), key=_when)


def missing(config: Mapping[str, Any]) -> list[str]:
    """The shards that a merged recording still lacks."""
    there = [parse(str(text)) for text in config.get("shards", [])]
    count = there[0].count if there else 0
    return [f"{index}/{count}" for index in range(1, count + 1) if index not in {one.index for one in there}]


def _weight(entry: Record) -> tuple[bool, bool, str, str]:
    """The priority between records of a cell, by content: independent of the order of the parts."""
    conclusive = not records.repeated(entry.outcome)
    return entry.status == "measured", conclusive, entry.started, _text(entry)


def _when(entry: Record) -> tuple[str, int, int, str]:
    """Sort key by start. Records of the same second are sorted by attempt and trial."""
    return entry.started, entry.attempt, entry.trial, entry.cell


def _text(entry: Record) -> str:
    return _sorted(entry.as_dict())


def _sorted(document: Any) -> str:
    return json.dumps(document, sort_keys=True)


def _differing(parts: Sequence[Recording]) -> list[str]:
    """Lines on facts that differ between the parts, so that they are not of one run."""
    first, lines = parts[0], []
    old = dict(flat(first.resolved, "config"))
    for part in parts[1:]:
        new = dict(flat(part.resolved, "config"))
        facts = [
            ("machine", first.model, part.model),
            ("snnbench", first.version, part.version),
            ("--only", first.config.get("only"), part.config.get("only")),
            *((name, old.get(name), new.get(name)) for name in dict.fromkeys((*old, *new))),
        ]
        if not any(one != two for _, one, two in facts):
            facts.append(("run", _whole(first), _whole(part)))
        lines += [
            f"{name}: {one!r} in {first.folder}, {two!r} in {part.folder}" for name, one, two in facts if one != two
        ]
    return lines + _adapters(parts)


def _adapters(parts: Sequence[Recording]) -> list[str]:
    """Lines on contenders with another adapter file or environment in some part."""
    lines: list[str] = []
    known: dict[tuple[str, str], tuple[str, Path]] = {}
    for part in parts:
        for entry in part.records:
            name = entry.label
            for what, value in (("adapter", entry.adapter), ("environment", entry.environment)):
                seen, where = known.setdefault((name, what), (value, part.folder))
                if seen != value:
                    lines.append(f"{what} of {name}: {seen} in {where}, {value} in {part.folder}")
    return list(dict.fromkeys(lines))


def _contradicting(parts: Sequence[Recording]) -> list[str]:
    """Lines on cells that were measured differently in two parts, or measured in one part and disproved in another."""
    measured: dict[Attempt, tuple[Record, Path]] = {}
    disproved = {
        _attempt(entry): (entry, part.folder) for part in parts for entry in _all(part) if entry.outcome.disproved
    }
    lines = []
    for part in parts:
        for entry in _all(part):
            if entry.status == "measured":
                other, where = measured.setdefault(_attempt(entry), (entry, part.folder))
                if other != entry:
                    lines.append(f"cell {entry.cell} was measured in {where} and, otherwise, in {part.folder}")
                if _attempt(entry) in disproved:
                    failed, where = disproved[_attempt(entry)]
                    name = f"{entry.cell} ({entry.label})"
                    lines.append(f"cell {name} is {failed.outcome.kind} in {where} and measured in {part.folder}")
    return lines


def _config(parts: Sequence[Recording]) -> dict[str, Any]:
    """The config.json of the whole run: finished if all shards are there and finished."""
    shards: set[str] = set()
    for part in parts:
        shards |= {str(part.config["shard"])} if "shard" in part.config else set(part.config.get("shards", []))
    # Facts that may differ and are not compared must not depend on the order of the parts.
    whole = min(({n: v for n, v in part.config.items() if n not in OF_A_SHARD} for part in parts), key=_sorted)
    whole |= {"identity": _whole(parts[0]), "shards": sorted(shards, key=lambda text: parse(text).index)}
    planned = [part.config.get("whole_planned", part.planned or 0) for part in parts]
    whole |= {"planned": max(planned)} if any(planned) else {}
    themselves = {part.config["shard"] for part in parts if "shard" in part.config}
    if unfinished := _unfinished(parts, themselves):
        whole |= {"unfinished": sorted(unfinished, key=lambda text: parse(text).index)}
    counting = [part for part in parts if _counts(part.config, themselves)] or parts
    finished = all(part.finished for part in counting)
    return whole | {"finished": finished and not unfinished and not missing(whole)}


def _unfinished(parts: Sequence[Recording], themselves: set[str]) -> set[str]:
    """The shards that were unfinished when merged, now or earlier, except those given again."""
    unfinished = {part.config["shard"] for part in parts if "shard" in part.config and not part.finished}
    return unfinished.union(*(set(part.config.get("unfinished", [])) - themselves for part in parts))


def _counts(config: Mapping[str, Any], themselves: set[str]) -> bool:
    """Whether the `finished` of a part counts.

    That of an earlier merge does not if it lacks shards, lists unfinished shards, or has all its shards given again.
    """
    if "shards" not in config:
        return True
    return not (missing(config) or config.get("unfinished") or themselves >= set(config["shards"]))


def _whole(part: Recording) -> object:
    return part.config.get("whole") or part.config.get("identity")


def _environments(parts: Sequence[Recording]) -> dict[str, Any]:
    every = sorted((item for part in parts for item in part.environments.items()), key=_sorted)
    return dict(reversed(every))
