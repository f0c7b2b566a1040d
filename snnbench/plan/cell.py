"""Cells: a cell is a case, its contender, a trial and a measure. One process runs one cell."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType

from snnbench.adapter.contender import Contender, Work, label
from snnbench.adapter.declaration import Adapter
from snnbench.cases.case import Case
from snnbench.digest import digest
from snnbench.plan.config import Protocol
from snnbench.proof import provable
from snnbench.units import GIB
from snnbench.worker.messages import EXCHANGES, Measure, Request


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell. `trial` counts from 0 for each measure. `side` is "base" or "new" in an A/B test.

    `phases` are timed in place of all phases of the protocol, in a race.
    """

    case: Case
    library: str
    variant: str
    trial: int
    measure: Measure
    side: str = ""
    phases: tuple[str, ...] = ()

    @property
    def contender(self) -> Contender:
        """The contender that runs it."""
        return self.library, self.variant

    @property
    def label(self) -> str:
        """The contender's name."""
        return label(self.library, self.variant)

    def key(
        self,
        adapter: str,
        environment: str,
        machine: str,
        protocol: Protocol,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> str:
        """The content-addressed name: cells with equal keys are the same measurement, on one machine model.

        `adapter` is the digest of the adapter, `environment` the key of the environment. `variables` are environment
        variables in addition to those of every worker.
        """
        fields = asdict(self)
        fields["case"] = {name: fields["case"][name] for name in fields["case"] if name in self.case.as_dict()}
        del fields["phases"]  # the number of a trial tells them apart within a race
        if not self.side:
            del fields["side"]  # keeps the keys of recordings older than sides
        further = [dict(variables)] if variables else []
        return digest([fields, adapter, environment, machine, protocol.digest, *further])

    def refusal(self, adapter: Adapter) -> str:
        """Why its adapter's file excludes it; empty if it does not."""
        return "" if self.measure in EXCHANGES else adapter.variants[self.variant].refusal(self.case)

    def hindrance(self) -> str:
        """Why its case proves nothing about any library; empty if it can."""
        if self.measure in EXCHANGES:
            from snnbench.conformance import network  # it reads graphs with a package that takes long to load

            return network.hindrance(self.case)
        return provable.hindrance(self.case)

    def request(self, protocol: Protocol, cpus: Sequence[int], memory_bytes: int) -> Request:
        """The request to its worker."""
        limit = protocol.memory_limit_gib
        return Request(
            measure=self.measure,
            case=self.case,
            variant=self.variant,
            phases=self.phases or protocol.phases,
            warmup_passes=protocol.warmup_passes,
            repetitions=protocol.repetitions,
            min_repetition_ns=round(protocol.min_repetition_ms * 1e6),
            max_phase_ns=round(protocol.max_phase_seconds * 1e9),
            check_ns=round(protocol.check_seconds * 1e9),
            further=protocol.further,
            patience_s=protocol.timeout_seconds,
            memory_limit_bytes=(memory_bytes or None) if limit is None else round(limit * GIB),  # 0: unknown
            cpus=tuple(cpus),
        )


def cells(works: Sequence[Work], protocol: Protocol, sides: Sequence[str] = ("",)) -> list[Cell]:
    """Every cell of a run in running order: trials are blocks, and contenders are shuffled within a block.

    So a machine that becomes slower during a run slows every contender, not only the last one. Memory comes after the
    first block of times, so that early results have both. The sides of a trial follow each other, in the order of
    `turns`.
    """
    blocks: list[tuple[Measure, int]]
    if protocol.phases:
        times: list[tuple[Measure, int]] = [("time", trial) for trial in range(protocol.trials)]
        blocks = [times[0], *(("memory", trial) for trial in range(protocol.memory_trials)), *times[1:]]
    else:
        blocks = [("verify", trial) for trial in range(protocol.trials)]
    planned = []
    for measure, trial in blocks:
        block = list(works)
        random.Random(f"{protocol.seed} {measure} {trial}").shuffle(block)
        planned += [
            Cell(work.case, work.library, work.variant, trial, measure, side)
            for work in block
            for side in turns(sides, f"{protocol.seed} {measure} {work.case.key} {work.library}/{work.variant}", trial)
        ]
    return planned


def exchange_cells(works: Sequence[Work], adapters: Mapping[str, Adapter]) -> list[Cell]:
    """A cell for each NIR graph and time step of the works, and each importer and exporter of their libraries.

    Its contender and its input are those of the library's first work on the graph that is not refused, or of the first.
    """

    def declines(work: Work) -> bool:
        return bool(adapters[work.library].variants[work.variant].refusal(work.case))

    first: dict[tuple[str, str], Work] = {}
    for work in sorted(works, key=declines):
        if work.case.nir_graph:
            first.setdefault((work.library, work.case.nir_graph), work)
    planned = [
        Cell(work.case, work.library, work.variant, 0, measure)
        for measure in EXCHANGES
        for work in first.values()
        if measure in adapters[work.library].exchanges
    ]
    for cell in planned:
        cell.hindrance()  # reads the graph here: h5py has one lock, which a thread of the executor may wait for forever
    return planned


def turns(sides: Sequence[str], seed: str, trial: int) -> Sequence[str]:
    """The order of the sides in a trial: drawn for each even trial, and reversed in the trial after it.

    So both sides come first equally often, and a drift cannot follow the order.
    """
    order = random.Random(f"{seed} {trial // 2}").sample(sides, len(sides))
    return order[::-1] if trial % 2 else order
