"""Runs of importers: each library's importer of NIR graphs, in an environment of its own, verified as cells."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from snnbench.adapter.declaration import Adapter
from snnbench.adapter.discovery import discover
from snnbench.cases.case import Case, Dtype, Precision, Reset, Surrogate
from snnbench.conformance import graph as graphs
from snnbench.conformance import network
from snnbench.environments import Env, store
from snnbench.environments.interpreters import Interpreter, place_of, unmanaged
from snnbench.environments.uv_program import EnvironmentFailed
from snnbench.plan.cell import Cell
from snnbench.plan.config import Protocol
from snnbench.recording.conformance import Conformance, Row, write
from snnbench.recording.reading import IMPORTERS, Recording
from snnbench.recording.record import Record
from snnbench.run.local import execute
from snnbench.run.request import RunRequest
from snnbench.run.setup import RunContext, Setup
from snnbench.run.store import InMemory
from snnbench.worker.messages import ImportRequest
from snnbench.workloads import nir

SAMPLES = 4
"""Samples of a recording's case that importers run, at most: they are not timed."""
PACKAGES = ("nir", "nirtorch", "torch", "jax", "numpy")
"""Packages that importers work with, besides the library itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """A request: every graph at every time step (in seconds) in every library's importer, on one seed's input."""

    files: Sequence[Path]
    steps_s: Sequence[float]
    adapters: Sequence[Adapter]
    given: network.Input
    timeout_s: float
    managed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphCase(Case):
    """A NIR graph at one time step, in seconds. It has its own neurons: the fields of a neuron stand for nothing."""

    SIZES: ClassVar[dict[str, tuple[str, str]]] = {"time_steps": ("T", "time steps"), "batch": ("B", "samples")}

    graph: str
    dt: float
    rate: float | None = None
    amplitude: float = 1.0
    workload: str = "nir"
    device: str = "cpu"
    dtype: Dtype = "float32"
    precision: Precision = "ieee"
    threads: int = 1
    beta: float = 0.0
    threshold: float = 1.0
    reset: Reset = "none"
    detach_reset: bool = True
    surrogate: Surrogate = "fast_sigmoid"
    slope: float = 1.0

    @property
    def kind(self) -> str:
        """The graph and the time step."""
        return f"{Path(self.graph).stem} dt={self.dt:g}"

    @property
    def updates(self) -> int:
        """Time steps of all samples."""
        return self.time_steps * self.batch


@dataclass(frozen=True, slots=True)
class ImportCell(Cell):
    """A graph in a library's importer."""

    case: GraphCase

    def refusal(self, adapter: Adapter) -> str:
        """Why the library has no importer; empty if it has one."""
        return "" if adapter.imports_nir else adapter.no_nir or "its adapter has no function from_nir"

    def request(self, protocol: Protocol, cpus: Sequence[int], memory_bytes: int) -> ImportRequest:
        """The request to its worker."""
        case = self.case
        return ImportRequest(graph=case.graph, dt=case.dt, **asdict(_input(case)))

    def hindrance(self) -> str:
        """Why the graph proves nothing on this input; empty if it does."""
        return _hindrance(self.case)


def examine(request: Examination, say: Callable[[str], None]) -> Conformance:
    """Run all importers. Raises GraphError for a file that cannot be checked."""
    by_name = {file.stem: file for file in request.files}
    for file in by_name.values():
        graph = graphs.read(file)
        for dt in request.steps_s:
            try:
                network.check(graph, dt)
            except graphs.GraphError as error:
                raise graphs.GraphError(f"{file}: {error}") from error
    adapters = sorted(request.adapters, key=lambda adapter: adapter.name)
    cells = [
        ImportCell(_case(request, file, dt), adapter.name, adapter.default, 0, "verify")
        for file in by_name.values()
        for dt in sorted(request.steps_s)
        for adapter in adapters
    ]
    for cell in cells:
        cell.hindrance()  # reads the graph here: h5py has one lock, which a thread of the executor may wait for forever
    setup = Setup(
        {adapter.name: adapter for adapter in adapters},
        {
            place_of((adapter.name, adapter.default), cells[0].case): _interpreter(adapter, request.managed, say)
            for adapter in adapters
        },
    )
    kept = InMemory()
    execute(cells, RunContext({"": setup}, _protocol(request.timeout_s), "", 0, say), kept)
    records = {(record.case, record.library): record for record in kept.records}
    return Conformance(
        rows=[_row(cell, records[cell.case, cell.library], setup) for cell in cells],
        graphs={name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in by_name.items()},
        **asdict(request.given),
    )


def beside(request: RunRequest, recording: Recording, say: Callable[[str], None]) -> None:
    """Add to a recording of NIR graphs what its libraries' own importers make of them, unless it is there."""
    cases = list(dict.fromkeys(each.case for each in recording.records if isinstance(each.case, nir.Case)))
    if not cases or (recording.folder / IMPORTERS).exists():
        return
    files, steps = [], list(dict.fromkeys(case.dt for case in cases))
    for whole in dict.fromkeys(case.whole for case in cases):
        try:
            for dt in steps:
                network.check(graphs.read(whole.file), dt)
            files.append(whole.file)
        except graphs.GraphError as error:
            say(f"importers on {whole.name}: {str(error).removeprefix(f'{whole.file}: ')}")
    known, measured = discover(request.adapter_files), {each.library for each in recording.records}
    adapters = [known[name] for name in sorted(measured) if name in known and known[name].imports_nir]
    if files and adapters:
        first = cases[0]
        given = network.Input(
            time_steps=first.time_steps,
            batch=min(SAMPLES, first.batch),
            seed=first.seed,
            rate=first.input_rate,
            amplitude=first.amplitude,
        )
        examination = Examination(
            files=files,
            steps_s=steps,
            adapters=adapters,
            given=given,
            timeout_s=request.config.protocol.timeout_seconds,
            managed=request.env is Env.managed,
        )
        write(recording.folder / IMPORTERS, examine(examination, say))


def _case(request: Examination, file: Path, dt: float) -> GraphCase:
    return GraphCase(graph=str(file.absolute()), dt=dt, **asdict(request.given))


def _input(case: GraphCase) -> network.Input:
    return network.Input(**{each.name: getattr(case, each.name) for each in fields(network.Input)})


@cache
def _hindrance(case: GraphCase) -> str:
    graph = graphs.read(Path(case.graph))
    return network.hindrance(network.Network(graph, network.inputs(graph, _input(case)), case.dt))


def _row(cell: ImportCell, record: Record, setup: Setup) -> Row:
    adapter, versions = setup.adapters[cell.library], setup.interpreter(cell.contender, cell.case).versions
    pins = adapter.variants[cell.variant].pins
    comparison: dict[str, Any] = record.settings.get("comparison", {})
    return Row(
        graph=Path(cell.case.graph).stem,
        dt=cell.case.dt,
        library=cell.library,
        version=versions.get(pins.distribution, pins.version),
        outcome=record.outcome,
        comparison=comparison,
        packages={name: versions[name] for name in PACKAGES if name in versions},
    )


def _protocol(timeout_s: float) -> Protocol:
    """One verification of each cell."""
    return Protocol(
        phases=(),
        trials=1,
        memory_trials=0,
        warmup_passes=1,
        repetitions=1,
        min_repetition_ms=1.0,
        max_phase_seconds=1.0,
        timeout_seconds=timeout_s,
        seed=0,
    )


def _interpreter(adapter: Adapter, managed: bool, say: Callable[[str], None]) -> Interpreter:
    """The Python of an adapter's default variant, with the packages of its importer."""
    try:
        if not adapter.imports_nir:
            return Interpreter(Path(), "", {})
        if not managed:
            return unmanaged(store.current(), "current")
        environment = store.sync(store.plan(adapter, adapter.default, cuda=False, further=adapter.nir), say)
        return Interpreter(environment.python, environment.key, store.versions(environment.python))
    except EnvironmentFailed as error:
        return Interpreter(Path(), "", {}, str(error))
