"""The forecast of a config as plain data, as run/forecaster.py makes it, and the limits of this machine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from snnbench.adapter.contender import Work, label
from snnbench.analysis.prediction import Prediction
from snnbench.plan.config import Protocol
from snnbench.units import GIB

SKIPPED = ("unsupported", "unavailable", "unprovable")
TOO_LARGE = ("oom-host", "oom-device")


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of this machine: bytes on the host and on its smallest card, and the CPUs that a worker may use."""

    host_bytes: float
    device_bytes: float | None
    has_cuda: bool
    usable_cpus: int

    @classmethod
    def of(cls, protocol: Protocol, facts: Mapping[str, Any], available_bytes: int, has_cuda: bool) -> "Limits":
        """The limits under a protocol; `facts` are those of machine.json, `available_bytes` is free host memory."""
        memory, given = facts["memory"], protocol.memory_limit_gib
        worker = (memory["limit_bytes"] or memory["total_bytes"] or inf) if given is None else given * GIB
        cards = [card["memory_bytes"] for card in facts["gpus"] if card["memory_bytes"]]
        return cls(min(worker, available_bytes), min(cards, default=None), has_cuda, facts["cpu"]["usable_cpus"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """A contender in a case. `expected` is "ok", "unknown", or the kind of outcome that is to be expected.

    `memory_bytes` is a lower bound if `peak` is None. `seconds` is the time of its cells together; None if unknown.
    """

    work: Work
    cells: int
    expected: str
    reason: str = ""
    memory_bytes: float = 0.0
    peak: Prediction | None = None
    passes: Mapping[str, Prediction] = field(default_factory=dict)
    seconds: float | None = None

    @property
    def contender(self) -> str:
        """The contender's name."""
        return label(self.work.library, self.work.variant)


@dataclass(frozen=True, slots=True)
class Plan:
    """The forecasts of a config, in its order, and the recordings behind them, of this machine and of others."""

    name: str
    model: str
    limits: Limits
    phases: Sequence[str]
    forecasts: Sequence[Forecast]
    recordings: Sequence[str] = ()
    foreign: Sequence[str] = ()

    @property
    def cells(self) -> int:
        """The number of all cells."""
        return sum(one.cells for one in self.forecasts)

    @property
    def seconds(self) -> float:
        """The time of all cells whose time is known."""
        return sum(one.seconds or 0.0 for one in self.forecasts)

    @property
    def untimed_cells(self) -> int:
        """The number of cells without a known time."""
        return sum(one.cells for one in self.forecasts if one.seconds is None)

    def expecting(self, *kinds: str) -> list[Forecast]:
        """The forecasts that expect one of these outcomes."""
        return [one for one in self.forecasts if one.expected in kinds]
