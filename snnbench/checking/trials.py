"""The rule of trials: all cells of the config are there, with all trials of the protocol; contenders took turns.

All trials of a contender in a case ended alike, too.

A recording does not hold the adapters, so that its patterns cannot be resolved to contenders. The rule requires a
sweep's cases, the contenders that it names without a pattern, and as many cells as the run had planned. A recording
that was closed says itself how many cells are missing, and why, so that only its other cells are checked.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise

from snnbench.adapter.contender import Work, label
from snnbench.analysis import endings, memory_program, race
from snnbench.analysis.looks import looks
from snnbench.cases.case import Case
from snnbench.plan import selection
from snnbench.plan.cell import Cell
from snnbench.plan.config import Config, Protocol, Sweep
from snnbench.recording.reading import Recording
from snnbench.recording.record import Record

Trial = tuple[str, int, str]
"""(measure, trial, side)."""


def complaints(recording: Recording, config: Config) -> Iterator[str]:
    """All complaints about the trials of a recording."""
    protocol, count = config.protocol, len(recording.records)
    planned = recording.planned
    if planned is not None and (count > planned or (count < planned and not recording.closed)):
        yield f"{count} cells, where {planned} were planned"
    by_work: dict[Work, list[Record]] = {}
    for record in recording.records:
        by_work.setdefault(_work(record), []).append(record)
    there = {work: {(one.measure, one.trial, one.side) for one in each} for work, each in by_work.items()}
    broken = _broken(recording)
    if "shard" not in recording.config and not recording.closed:
        yield from _missing(list(there), recording, config)
    for work in _planned(list(there), recording, config):
        recorded = there.pop(work, set())
        lacking = sorted(_asked(protocol, recording, recorded) - recorded)
        if lacking and not recording.closed and work not in broken:
            yield f"{_named(work)}: no {', '.join(' '.join(map(str, trial)).strip() for trial in lacking)}"
    yield from (f"{_named(work)}: not in the config" for work in there)
    for work, its_records in by_work.items():
        yield from (f"{_named(work)}: {text}" for _, text in memory_program.complaints(its_records))
        if counts := endings.differing(its_records):
            yield f"{_named(work)}: {endings.words(counts)}"
    if recording.is_race and not recording.closed:
        due = race.due([work for work in by_work if work not in broken], recording.records, protocol)
        yield from (f"{_named(_work(cell))}: no {cell.measure} {cell.trial}, which the race needs" for cell in due)
    whole = [one for one in recording.records if _work(one) not in broken]
    if not recording.is_race and not _take_turns(whole, protocol):
        yield "the trials of each contender follow one another; they should take turns with those of the others"


def _broken(recording: Recording) -> set[Work]:
    """The works that an A/B test measured no further, because one of their sides crashed."""
    crashed = {_work(one) for one in recording.records if one.outcome.kind in ("import", "crash")}
    return crashed if recording.config.get("stops_early") else set()


def _asked(protocol: Protocol, recording: Recording, recorded: set[Trial]) -> set[Trial]:
    """The trials that a work should have, given its recorded ones. An A/B test may have stopped at an early look."""
    sides = list(recording.sides) or [""]
    if recording.is_race:
        return {("time", 0, "")}
    count = protocol.trials
    if recording.config.get("stops_early"):
        most = max((trial + 1 for measure, trial, _ in recorded if measure == "time"), default=0)
        count = min((look.trials for look in looks(count, 1.0) if look.trials >= most), default=count)
    measures = {"time": count, "memory": protocol.memory_trials} if protocol.phases else {"verify": count}
    return {(name, trial, side) for name, most in measures.items() for trial in range(most) for side in sides}


def _missing(there: list[Work], recording: Recording, config: Config) -> Iterator[str]:
    """Complaints about cases without any record and contenders without a record, if they are known to be selected.

    An A/B test selects the contenders that a side changes.
    """
    expressions = [str(text) for text in recording.config.get("only") or []]
    if not all(map(selection.of_cases, expressions)):
        return  # --only depends on contenders, so that the selected cases are unknown; `planned` still counts cells
    conditions = [selection.parse(text) for text in expressions]
    ran = {work.case for work in there}
    for sweep in config.sweeps:
        works = (Work(case, "", "") for case in dict.fromkeys(sweep.cases()))
        cases = [work.case for work in works if all(holds(work) for holds in conditions)]
        if lacking := [case for case in cases if case not in ran]:
            first = lacking[0]
            yield (
                f"sweep {sweep.name!r}: nothing of {len(lacking)} of {len(cases)} cases, "
                f"the first at {first.sizes()}, {first.kind}"
            )
        wanted = set(cases)
        names = {name for one in there if one.case in wanted for name in (one.library, label(one.library, one.variant))}
        if cases and not recording.sides:
            yield from (f"sweep {sweep.name!r}: nothing of {name}" for name in _plain(sweep) if name not in names)


def _plain(sweep: Sweep) -> list[str]:
    """The contenders that a sweep names without a pattern; [] if it excludes any."""
    if any(pattern.startswith("!") for pattern in sweep.libraries):
        return []
    return [pattern for pattern in sweep.libraries if "*" not in pattern]


def _planned(there: list[Work], recording: Recording, config: Config) -> Iterable[Work]:
    """The works that should be recorded: a contender that ran one case of a sweep runs all its selected cases."""
    conditions = [selection.parse(str(text)) for text in recording.config.get("only") or []]
    wanted: dict[Work, None] = {}
    for sweep in config.sweeps:
        cases = dict.fromkeys(sweep.cases())
        contenders = dict.fromkeys((work.library, work.variant) for work in there if work.case in cases)
        works = (Work(case, *contender) for case in cases for contender in contenders)
        wanted.update((work, None) for work in works if all(holds(work) for holds in conditions))
    return wanted


def _take_turns(records: list[Record], protocol: Protocol) -> bool:
    """Whether, in every case with several contenders, other work was timed between trials of the same work."""
    by_case: dict[Case, list[tuple[str, ...]]] = {}
    for record in records:
        if record.measure == "time":
            by_case.setdefault(record.case, []).append((record.library, record.variant, record.side))
    return protocol.trials < 2 or all(map(_alternate, by_case.values()))


def _alternate(contenders: list[tuple[str, ...]]) -> bool:
    works, stretches = len(set(contenders)), 1 + sum(one != before for before, one in pairwise(contenders))
    return works < 2 or stretches > works


def _work(record: Record | Cell) -> Work:
    return Work(record.case, record.library, record.variant)


def _named(work: Work) -> str:
    return f"{label(work.library, work.variant)} at {work.case.sizes()}, {work.case.kind}"
