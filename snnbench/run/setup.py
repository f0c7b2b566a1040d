"""The constants of a run over all cells: contenders' adapters and environments, the protocol, the machine."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from snnbench.adapter.contender import Contender
from snnbench.adapter.declaration import Adapter, Variant
from snnbench.cases.case import Case
from snnbench.environments.interpreters import EnvironmentKey, Interpreter, Say, place_of
from snnbench.plan.cell import Cell
from snnbench.plan.config import Protocol

COMPILED_TIMES, JAX_TIMES = 40, 10
"""The effort to verify a variant that compiles, about 25 s, and another one of JAX; others take about 0.5 s."""


@dataclass(frozen=True, slots=True)
class Setup:
    """How contenders run: adapters by name, an interpreter for each place, additional environment variables."""

    adapters: Mapping[str, Adapter]
    interpreters: Mapping[EnvironmentKey, Interpreter]
    variables: Mapping[str, str] = field(default_factory=dict)

    def interpreter(self, contender: Contender, case: Case) -> Interpreter:
        """The interpreter of a contender's work on a case."""
        return self.interpreters[place_of(contender, case)]


@dataclass(frozen=True, slots=True)
class RunContext:
    """The constants of a run over all cells. `setups` are by side; the side is "" without an A/B test."""

    setups: Mapping[str, Setup]
    protocol: Protocol
    machine: str
    memory_bytes: int
    say: Say = lambda text: None

    def key(self, cell: Cell) -> str:
        """The cell's content-addressed name."""
        setup = self.setups[cell.side]
        adapter, environment = setup.adapters[cell.library].digest, setup.interpreter(cell.contender, cell.case).key
        return cell.key(adapter, environment, self.machine, self.protocol, setup.variables)

    def compiles(self, cell: Cell) -> bool:
        """Whether a compiler takes most of the time of a cell that is verified."""
        return self._variant(cell).compiles

    def effort(self, cell: Cell) -> float:
        """About how many times as long it takes to verify a cell as one for which nothing compiles."""
        if self.compiles(cell):
            return COMPILED_TIMES
        return JAX_TIMES if self._variant(cell).backend == "jax" else 1

    def _variant(self, cell: Cell) -> Variant:
        return self.setups[cell.side].adapters[cell.library].variants[cell.variant]
