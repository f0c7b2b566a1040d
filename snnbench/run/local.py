"""What commands that measure have in common: from a config to a recording, with progress."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import typer

from snnbench import __version__
from snnbench.adapter import contender
from snnbench.adapter.contender import Work, label
from snnbench.adapter.declaration import Adapter
from snnbench.analysis import abtest
from snnbench.analysis.abtest import Rule
from snnbench.digest import digest
from snnbench.environments import interpreters
from snnbench.environments.interpreters import Env
from snnbench.machine import description, gpus
from snnbench.machine.gpus import Card, chosen, require_alike, visible
from snnbench.plan import config as configs
from snnbench.plan import selection
from snnbench.plan import side as sides
from snnbench.plan.cell import Cell, cells
from snnbench.plan.config import Config
from snnbench.plan.shard import Shard, ShardError
from snnbench.plan.side import Side, SideError
from snnbench.recording import record
from snnbench.recording.record import Recording
from snnbench.recording.writer import append, choose
from snnbench.run.executor import Executor
from snnbench.run.progress import say, shown
from snnbench.run.runner import Run, Setup


def selected(loaded: Config, adapters: dict[str, Adapter], only: Sequence[str]) -> list[Work]:
    """The cells of a config for which every expression of `--only` holds. Raises BadParameter where none is left."""
    conditions = [selection.parse(expression) for expression in only]
    works = [work for work in configs.expand(loaded, adapters) if all(holds(work) for holds in conditions)]
    if not works:
        raise typer.BadParameter("no cell of this config is left", param_hint="--only")
    return works


def require_room(output: Path | None) -> None:
    """Refuse the folder of a recording that a fresh one would be added to."""
    if output and (output / record.RECORDS).exists():
        raise record.RecordingError(f"{output}: holds a recording, which --fresh would add to; name another folder")


@dataclass(frozen=True, slots=True)
class Continuation:
    """How a run goes on from an earlier one: kinds of outcome to try again, or nothing of it at all."""

    retry: tuple[str, ...] = ()
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class Test:
    """An A/B test: its sides by name, and how words are decided. It stops early unless it is one shard of several."""

    sides: Mapping[str, Side]
    rule: Rule
    stops_early: bool = True

    @property
    def texts(self) -> dict[str, list[str]]:
        """What the user changes, by side."""
        return {name: list(side.texts) for name, side in self.sides.items()}

    @property
    def asked(self) -> dict[str, Any]:
        """What config.json says of it, with which a comparison of the recording decides as the run did."""
        limits = {"time_floor": self.rule.thresholds.time_floor, "alpha": self.rule.thresholds.alpha}
        decides = limits | {"phases": [str(each) for each in self.rule.phases], "allowed": list(self.rule.allowed)}
        return {"sides": self.texts, "stops_early": self.stops_early, "decides": decides}

    def known(self, adapters: Mapping[str, Adapter]) -> dict[str, Adapter]:
        """These adapters, and those that only the sides have."""
        return {**{one.name: one for side in self.sides.values() for one in side.replacements()}, **adapters}

    def changed(self, works: Sequence[Work], adapters: Mapping[str, Adapter], cuda: bool) -> list[Work]:
        """The works whose contenders some side changes. Raises SideError."""
        of = dict.fromkeys((work.library, work.variant) for work in works)
        changed = sides.contenders(self.sides.values(), adapters, of, cuda)
        return [work for work in works if (work.library, work.variant) in changed]


def setups(
    works: Sequence[Work], adapters: dict[str, Adapter], env: Env, cuda: bool, test: Test | None
) -> dict[str, Setup]:
    """What the works run as, by side. Raises SideError, AdapterError, EnvironmentFailed."""
    if test:
        by_side = {name: _setup_of(name, side, works, adapters, env, cuda) for name, side in test.sides.items()}
        texts = [set(side.texts) for side in test.sides.values()]
        (_, *one), (_, *other) = _content(by_side)
        if one == other and texts[0] != texts[1]:
            raise SideError("both sides come to the same adapters, environments and variables: nothing to compare")
        return by_side
    return {"": Setup(adapters, interpreters.interpreters(works, adapters, env is Env.managed, cuda, say))}


def _content(by_side: Mapping[str, Setup]) -> list[Any]:
    """What runs on each side, by content: a pair must not be of two days' files."""
    return [
        [
            name,
            sorted((*one, setup.adapters[one[0]].digest, python.key) for one, python in setup.interpreters.items()),
            sorted(setup.variables.items()),
        ]
        for name, setup in by_side.items()
    ]


def _setup_of(
    name: str, side: Side, works: Sequence[Work], adapters: Mapping[str, Adapter], env: Env, cuda: bool
) -> Setup:
    if side.requirements and (env is Env.current or side.python):
        raise SideError(f"{side.title}: nothing is installed into a Python of your own; leave out --env and python=")
    own = side.adapters(adapters)
    for work in works:
        if work.library not in own:
            raise SideError(f"{name} has no adapter {work.library}: name its file, too, with --{name}")
        if work.variant not in own[work.library].variants:
            raise SideError(f"{own[work.library].path}: has no variant {work.variant!r}, which the config asks for")
    if side.python:
        interpreter = interpreters.unmanaged(side.python, "python")
        return Setup(own, {(work.library, work.variant): interpreter for work in works}, side.variables)
    return Setup(own, interpreters.interpreters(works, own, env is Env.managed, cuda, say), side.variables)


def _cards(works: Sequence[Work], devices: str | None) -> list[Card]:
    """The cards for these works, all of a kind. Raises UnknownCard."""
    if not any(work.case.device.startswith("cuda") for work in works) and devices is None:
        return []
    gpus = chosen(devices, visible()) if devices else visible()
    require_alike(gpus)
    return gpus


def record_sweep(
    loaded: Config,
    adapters: dict[str, Adapter],
    only: Sequence[str],
    env: Env,
    output: Path | None,
    shard: Shard | None = None,
    continuation: Continuation = Continuation(),
    devices: str | None = None,
    cuda: bool | None = None,
    test: Test | None = None,
) -> Recording:
    """Run what is missing of a config in the folder `output`, or in a dated one under results/, and read it.

    With `cuda` environments have what CUDA needs, and without not; None goes by this machine. With a `test` its sides
    take turns.
    """
    known = test.known(adapters) if test else adapters
    works = selected(loaded, known, only)
    cuda = gpus.has_cuda() if cuda is None else cuda
    works = test.changed(works, known, cuda) if test else works
    names = list(test.sides) if test else [""]
    planned = {"planned": len(cells(works, loaded.protocol, names))}
    if shard and not (works := shard.of(works)):
        raise ShardError(f"--shard {shard}: no case falls to it; there are fewer cases than shards")
    plan = cells(works, loaded.protocol, names)
    planned = {"planned": len(plan), "whole_planned": planned["planned"]} if shard else planned
    devices_used = _cards(works, devices)
    facts = description.facts()
    model = description.model(facts)
    by_side = setups(works, adapters, env, cuda, test)
    run = Run(by_side, loaded.protocol, model, description.memory_bytes(facts), say)
    slug = description.slug(facts)
    whole = digest([loaded.resolved(), list(only) or None, env.value, model, *(_content(by_side) if test else [])])
    identity = digest([whole, str(shard)]) if shard else whole
    name = f"{loaded.name}-{shard.index}of{shard.count}" if shard else loaded.name
    fresh, retry = continuation.fresh, continuation.retry
    folder = output or choose(Path("results"), name, identity, slug, date.today(), fresh, bool(retry))
    if fresh:
        require_room(output)
    about = {
        "snnbench": __version__,
        "config": loaded.resolved(),
        "only": list(only) or None,
        "baseline": label(*contender.find(loaded.baseline, known)[0]),
        "identity": identity,
        "machine": slug,
        **(test.asked if test else {}),
        **({"shard": str(shard), "whole": whole} if shard else {}),
    }
    with append(folder, about, {**facts, "model": model}) as writer:
        writer.plan(planned)
        interpreters = (interpreter for setup in by_side.values() for interpreter in setup.interpreters.values())
        writer.environments({one.key: one.versions for one in interpreters if one.key})
        done = writer.done(retry)
        left = [cell for cell in plan if run.key(cell) not in done]
        if left:
            writer.finish(False)
        if len(left) < len(plan):
            say(f"{folder}: continues; {len(plan) - len(left)} of {len(plan)} cells are there")
        try:
            for part in _parts(plan, test, folder, run) if test else [plan]:
                done = writer.done(retry)
                with shown([cell for cell in part if run.key(cell) not in done]) as progress:
                    Executor(run, writer, progress, retry).execute(part, devices_used)
        except KeyboardInterrupt:
            say(f"{folder}: what was measured is kept, and the same command continues")
            raise
        if test and test.stops_early:
            writer.plan({"planned": len(record.read(folder).records)})
        writer.finish()
    return record.read(folder)


def _parts(plan: Sequence[Cell], test: Test, folder: Path, run: Run) -> Iterator[list[Cell]]:
    """The cells up to each look at the answer, without further ones of works that have their words."""
    last = 0
    works = {(cell.case, cell.contender) for cell in plan}
    for look in abtest.Trials(run.protocol.trials, test.stops_early).looks(test.rule.thresholds.alpha):
        if last:
            recording = record.read(folder)
            left = abtest.undecided(recording, test.rule, last)
            works = {(work.case, (work.library, work.variant)) for work in left}
            if not works:
                return
            say(f"after {last} trials a side {len(works)} of {len({(c.case, c.contender) for c in plan})} are open")
        yield [
            cell
            for cell in plan
            if (cell.case, cell.contender) in works and (cell.trial < look.trials or cell.measure != "time")
        ]
        last = look.trials
