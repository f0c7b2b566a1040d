"""What commands that measure have in common: from a config to a recording, with progress."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import typer

from snnbench import __version__, contender, machine, record, runner, selection
from snnbench import config as configs
from snnbench.adapter import Adapter, label
from snnbench.cards import Card, chosen, require_alike, visible
from snnbench.case import digest
from snnbench.cell import cells
from snnbench.cli.options import Env
from snnbench.cli.progress import say, shown
from snnbench.config import Config, Work
from snnbench.executor import Executor
from snnbench.record import Recording
from snnbench.shard import Shard, ShardError
from snnbench.writer import append, choose


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


def _cards(works: Sequence[Work], devices: str | None) -> list[Card]:
    """The cards for these works, all of a kind. Raises UnknownCard."""
    if not any(work.case.device.startswith("cuda") for work in works) and devices is None:
        return []
    cards = chosen(devices, visible()) if devices else visible()
    require_alike(cards)
    return cards


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
) -> Recording:
    """Run what is missing of a config in the folder `output`, or in a dated one under results/, and read it.

    With `cuda` environments have what CUDA needs, and without not; None goes by this machine.
    """
    works = selected(loaded, adapters, only)
    planned = {"planned": len(cells(works, loaded.protocol))}
    if shard and not (works := shard.of(works)):
        raise ShardError(f"--shard {shard}: no case falls to it; there are fewer cases than shards")
    plan = cells(works, loaded.protocol)
    planned = {"planned": len(plan), "whole_planned": planned["planned"]} if shard else planned
    cards = _cards(works, devices)
    facts = machine.facts()
    model = machine.model(facts)
    interpreters = runner.interpreters(
        works, adapters, env is Env.managed, machine.has_cuda() if cuda is None else cuda, say
    )
    setup = runner.Run(adapters, interpreters, loaded.protocol, model, runner.memory_bytes(facts), say)
    slug = machine.slug(facts)
    whole = digest([loaded.resolved(), list(only) or None, env.value, model])
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
        "baseline": label(*contender.find(loaded.baseline, adapters)[0]),
        "identity": identity,
        "machine": slug,
        **({"shard": str(shard), "whole": whole} if shard else {}),
    }
    with append(folder, about, {**facts, "model": model}) as writer:
        writer.plan(planned)
        writer.environments({i.key: i.versions for i in interpreters.values() if i.key})
        done = writer.done(retry)
        left = [cell for cell in plan if setup.key(cell) not in done]
        if left:
            writer.finish(False)
        if len(left) < len(plan):
            say(f"{folder}: continues; {len(plan) - len(left)} of {len(plan)} cells are there")
        try:
            with shown(left) as progress:
                Executor(setup, writer, progress, retry).execute(plan, cards)
        except KeyboardInterrupt:
            say(f"{folder}: what was measured is kept, and the same command continues")
            raise
        writer.finish()
    return record.read(folder)
