"""Requests: all that a user asks of a run, here or on a cluster."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snnbench.adapter.contender import Work
from snnbench.adapter.declaration import Adapter
from snnbench.analysis.abtest import Rule
from snnbench.cases.outcome import Outcome
from snnbench.environments import Env
from snnbench.plan import config, selection, side
from snnbench.plan.config import Config
from snnbench.plan.shard import Shard, ShardError
from snnbench.plan.side import Side
from snnbench.recording.writer import Reuse


@dataclass(frozen=True, slots=True)
class ABTest:
    """An A/B test: its sides by name, and how words are decided. A single shard of several does not stop early."""

    sides: Mapping[str, Side]
    rule: Rule
    stops_early: bool = True

    @property
    def texts(self) -> dict[str, list[str]]:
        """The user's changes, by side."""
        return {name: list(side.texts) for name, side in self.sides.items()}

    @property
    def header(self) -> dict[str, Any]:
        """Its entries in config.json, so that a later comparison decides as the run did."""
        limits = {"time_floor": self.rule.thresholds.time_floor, "alpha": self.rule.thresholds.alpha}
        decides = limits | {"phases": [str(each) for each in self.rule.phases], "allowed": list(self.rule.allowed)}
        return {"sides": self.texts, "stops_early": self.stops_early, "decides": decides}

    def known(self, adapters: Mapping[str, Adapter]) -> dict[str, Adapter]:
        """These adapters, and the sides' adapters with new names."""
        own = {adapter.name: adapter for side in self.sides.values() for adapter in side.replacements()}
        return {**own, **adapters}

    def changed(self, works: Sequence[Work], adapters: Mapping[str, Adapter], cuda: bool) -> list[Work]:
        """The works with a contender that at least one side changes. Raises SideError."""
        contenders = dict.fromkeys((work.library, work.variant) for work in works)
        changed = side.contenders(self.sides.values(), adapters, contenders, cuda)
        return [work for work in works if (work.library, work.variant) in changed]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """A run to be made, and its options.

    `only` are conditions on cells, and `budget_s` are the seconds in which cells are measured; `output` is a folder, or
    None for a dated one under results/; `retry` are kinds of outcome to try again, and `fresh` starts another
    recording. `cuda`: whether environments include the packages for CUDA; if it is None, this machine decides.
    """

    config: Config
    adapter_files: tuple[Path, ...] = ()
    only: tuple[str, ...] = ()
    budget_s: float | None = None
    env: Env = Env.managed
    output: Path | None = None
    shard: Shard | None = None
    retry: tuple[str, ...] = ()
    fresh: bool = False
    devices: str | None = None
    cuda: bool | None = None
    test: ABTest | None = None

    @property
    def reuse(self) -> Reuse:
        """Which earlier recordings of the same run it continues."""
        return "none" if self.fresh else "any" if self.retry else "unfinished"

    @property
    def sides(self) -> list[str]:
        """The names of the sides that take turns; [""] without an A/B test."""
        return list(self.test.sides) if self.test else [""]

    def retries(self, outcomes: Iterable[Outcome]) -> str:
        """How many cells failed, and the option that runs them again, as the end of a line; "" if none failed."""
        kinds = [str(outcome.kind) for outcome in outcomes if outcome.status == "failed"]
        option = "--fresh" if self.test else f"--retry {','.join(sorted(set(kinds)))}"
        return f"; {len(kinds)} failed: {option} runs them again" if kinds else ""

    def known(self, adapters: dict[str, Adapter]) -> dict[str, Adapter]:
        """These adapters, and the test's own ones with new names."""
        return self.test.known(adapters) if self.test else adapters

    def selected(self, adapters: dict[str, Adapter]) -> list[Work]:
        """The works of the config that meet every condition. Raises ConfigError, SelectionError."""
        conditions = [selection.parse(expression) for expression in self.only]
        all_works = config.expand(self.config, self.known(adapters))
        works = [work for work in all_works if all(holds(work) for holds in conditions)]
        if not works:
            raise selection.nothing_left(self.only, all_works)
        return works

    def works(self, adapters: dict[str, Adapter], cuda: bool) -> list[Work]:
        """The works to run: the selected ones; in an A/B test only works that a side changes. Raises SideError."""
        works = self.selected(adapters)
        return self.test.changed(works, self.known(adapters), cuda) if self.test else works

    def of_shard(self, works: list[Work]) -> list[Work]:
        """The works of the request's shard, or all if it has no shard. Raises ShardError."""
        if self.shard is None:
            return works
        if own := self.shard.of(works):
            return own
        raise ShardError(f"--shard {self.shard}: no case falls to it; there are fewer cases than shards")
