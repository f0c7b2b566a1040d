"""A run on this machine: from a request to a recording."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from snnbench import __version__, files
from snnbench.adapter import contender
from snnbench.adapter.contender import Work
from snnbench.adapter.declaration import Adapter
from snnbench.adapter.discovery import discover, replaced
from snnbench.analysis import abtest, case_words, race
from snnbench.digest import digest
from snnbench.machine import description, gpus
from snnbench.machine.gpus import Card
from snnbench.plan.cell import Cell, cells, exchange_cells
from snnbench.plan.config import Protocol, baseline_of
from snnbench.recording import reading, record
from snnbench.recording.reading import Recording
from snnbench.recording.writer import Writer, append, choose, writing
from snnbench.run.estimate import format_duration
from snnbench.run.executor import Budget, Executor
from snnbench.run.preparation import content, prepare
from snnbench.run.progress import say, shown
from snnbench.run.request import ABTest, RunRequest
from snnbench.run.setup import RunContext, Setup
from snnbench.run.store import InFolder, InMemory

RESULTS = Path("results")
"""The folder of dated recordings."""


def run(request: RunRequest) -> Recording:
    """Measure the missing cells of a request on this machine; returns the recording."""
    adapters = discover(request.adapter_files)
    cuda = gpus.has_cuda() if request.cuda is None else request.cuda
    all_works = request.works(adapters, cuda)
    works = request.of_shard(all_works)
    protocol = request.config.protocol
    plan = race.due(works, (), protocol) if protocol.is_race else cells(works, protocol, request.sides)
    cards = cards_for(works, request.devices)
    require_place(request)
    machine = description.facts()
    setups = prepare(request, works, adapters, cuda)
    same = RunContext(setups, protocol, machine["model"], description.memory_bytes(machine), say)
    header = header_of(request, setups, machine, request.known(adapters))
    with append(folder_for(request, header), header, machine) as writer:
        writer.plan(counts(request, plan, all_works))
        writer.environments(versions(setups))
        _begin(request, plan, same, writer)
        stops_early = bool(request.test and request.test.stops_early)
        budget = Budget(request.budget_s) if request.budget_s else None
        missing: list[Cell] = []
        try:
            for part in (
                _rounds(works, writer, protocol, request.retry)
                if protocol.is_race
                else parts(plan, request.test, writer.folder, same)
            ):
                with shown(_left(part, same, writer.done(request.retry)), same.effort) as progress:
                    Executor(same, InFolder(writer), progress, request.retry, stops_early, budget).execute(part, cards)
                missing = _left(part, same, writer.done())
                if budget and budget.is_over():
                    break
            if not missing and not request.test:
                _exchange(exchange_cells(works, adapters), same, writer)
        except KeyboardInterrupt:
            say(f"{writer.folder}: all records are kept, and the same command continues")
            raise
        recording = reading.read(writer.folder)
        again = sum(record.repeated(one.outcome) for one in recording.records)
        if protocol.is_race:
            missing = race.due(works, recording.records, protocol)
            writer.plan({"planned": len(recording.records) - again + len(missing)})
        elif stops_early:
            writer.plan({"planned": len(recording.records)})
        is_cut = bool(budget and budget.is_over() and missing)
        writer.finish(not again and not is_cut)
        if budget and is_cut:
            writer.close(f"the budget of {format_duration(budget.seconds)} is over")
            say(f"{writer.folder}: the budget is over; the same command goes on")
    if again:
        say(f"{writer.folder}: the state of the machine broke {again} of its cells; the same command runs them again")
    return reading.read(writer.folder)


def _rounds(works: Sequence[Work], writer: Writer, protocol: Protocol, retry: Collection[str]) -> Iterator[list[Cell]]:
    """The rounds of a race. Each cell is in one of them, also one that ended with a kind in `retry` before."""
    ran: set[tuple[Any, ...]] = set()
    while True:
        records = reading.read(writer.folder).records
        counting = [one for one in records if race.name(one) in ran or not record.repeated(one.outcome, retry)]
        cells_due = [cell for cell in race.due(works, counting, protocol) if race.name(cell) not in ran]
        if not cells_due:
            return
        for case, present in race.standings(records, race.headline(protocol)).items() if ran else ():
            say(f"so far, {case_words.kind(case)}: {case_words.sizes(case)}: {_standing(present)}")
        done = sum(not record.repeated(one.outcome) for one in counting)
        writer.plan({"planned": done + len(cells_due)})
        yield cells_due
        ran |= set(map(race.name, cells_due))


def _standing(present: race.Standing) -> str:
    """A race so far, in a line."""
    if present.unknown:
        return f"{present.leader} is in front; {', '.join(present.unknown)} may still be as fast, and go on"
    return f"{present.leader} leads" + (f", level with {', '.join(present.level)}" if present.level else "")


def _left(part: Sequence[Cell], same: RunContext, done: Collection[str]) -> list[Cell]:
    """The cells of a part that have no outcome yet."""
    return [cell for cell in part if same.key(cell) not in done]


def cards_for(works: Sequence[Work], devices: str | None) -> list[Card]:
    """The cards for these works, all of one model; `devices` is the user's choice. Raises UnknownCard."""
    if not any(work.case.device.startswith("cuda") for work in works) and devices is None:
        return []
    cards = gpus.chosen(devices, gpus.visible()) if devices else gpus.visible()
    gpus.require_alike(cards)
    return cards


def header_of(
    request: RunRequest, setups: Mapping[str, Setup], machine: Mapping[str, Any], adapters: dict[str, Adapter]
) -> dict[str, Any]:
    """The entries of config.json. Runs of the same `identity` continue each other; shards of the same `whole` merge."""
    config, only, shard = request.config.resolved(), list(request.only) or None, request.shard
    sides = content(setups) if request.test else []
    replacing = sorted(replaced(request.adapter_files))
    whole = digest([config, only, request.env.value, machine["model"], *sides, *replacing])
    return {
        "snnbench": __version__,
        **({"revision": revision} if (revision := description.revision()) else {}),
        "config": config,
        "only": only,
        "baseline": contender.label(*baseline_of(request.config, adapters)),
        "identity": digest([whole, str(shard)]) if shard else whole,
        "machine": description.slug(machine),
        **({"replaced": replacing} if replacing else {}),
        **(request.test.header if request.test else {}),
        **({"shard": str(shard), "whole": whole} if shard else {}),
    }


def folder_for(request: RunRequest, header: Mapping[str, Any]) -> Path:
    """The folder that the user names, or the dated one of this run. Raises RecordingError."""
    if request.output:
        if request.fresh:
            require_room(request.output)
        return request.output
    name, shard = request.config.name, request.shard
    name = f"{name}-{shard.index}of{shard.count}" if shard else name
    return choose(RESULTS, name, header["identity"], header["machine"], date.today(), request.reuse)


def require_place(request: RunRequest) -> None:
    """Raise RecordingError, before environments are made, if the folder of a run cannot be written."""
    place = request.output or RESULTS
    with writing(place):
        files.try_folder(place)


def require_room(output: Path) -> None:
    """Raise RecordingError if the folder holds a recording already: a fresh run would add to it."""
    if (output / reading.RECORDS).exists():
        raise record.RecordingError(f"{output}: holds a recording, which --fresh would add to; name another folder")


def counts(request: RunRequest, plan: Sequence[Cell], all_works: Sequence[Work]) -> dict[str, int]:
    """The number of planned cells; for a shard, also that of all shards."""
    if request.shard is None:
        return {"planned": len(plan)}
    return {"planned": len(plan), "whole_planned": len(cells(all_works, request.config.protocol, request.sides))}


def versions(setups: Mapping[str, Setup]) -> dict[str, dict[str, str]]:
    """Installed versions of each environment, by its key."""
    interpreters = [interpreter for setup in setups.values() for interpreter in setup.interpreters.values()]
    return {interpreter.key: interpreter.versions for interpreter in interpreters if interpreter.key}


def _begin(request: RunRequest, plan: Sequence[Cell], same: RunContext, writer: Writer) -> None:
    """Say what the recording has of the plan, and what has changed since it began."""
    done = writer.done(request.retry)
    left = _left(plan, same, done)
    if left or same.protocol.is_race:
        writer.finish(False)
    if len(left) < len(plan):
        there = f"{len(plan) - len(left)} of {len(plan)} cells are there"
        say(f"{writer.folder}: continues; {there}{request.retries(done.values())}")
    disturbed = any(attempt <= same.protocol.remeasure for attempt in writer.attempts().next.values())
    if (left or disturbed) and (differing := writer.resume()):
        say(f"{writer.folder}: changed since it began: {', '.join(differing)}; {reading.MACHINE} has the values")


def _exchange(plan: Sequence[Cell], same: RunContext, writer: Writer) -> None:
    """Verify the importers and exporters of libraries on the NIR graphs of a run."""
    if left := _left(plan, same, writer.done()):
        with shown(left, same.effort) as progress:
            Executor(same, InFolder(writer), progress).execute(left)


def execute(plan: Sequence[Cell], run: RunContext, kept: InMemory) -> None:
    """Run cells for a command that prints their records and makes no recording."""
    with shown(plan, run.effort) as progress:
        Executor(run, kept, progress).execute(plan)


def parts(plan: Sequence[Cell], test: ABTest | None, folder: Path, same: RunContext) -> Iterator[Sequence[Cell]]:
    """The parts of a plan to run in turn: the whole plan, or for an A/B test the undecided works up to each look."""
    if test is None:
        yield plan
        return
    trials = 0
    works = {(cell.case, cell.contender) for cell in plan}
    for look in abtest.Trials(same.protocol.trials, test.stops_early).looks(test.rule.thresholds.alpha):
        if trials:
            undecided = abtest.undecided(reading.read(folder), test.rule, trials)
            works = {(work.case, (work.library, work.variant)) for work in undecided}
            if not works:
                return
            total = len({(cell.case, cell.contender) for cell in plan})
            say(f"after {trials} trials a side {len(works)} of {total} are open")
        yield [
            cell
            for cell in plan
            if (cell.case, cell.contender) in works and (cell.trial < look.trials or cell.measure != "time")
        ]
        trials = look.trials
