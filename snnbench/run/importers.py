"""Runs of importers: each library's importer of NIR graphs, in an environment of its own, in one process a graph."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from snnbench.adapter.declaration import Adapter
from snnbench.cases.outcome import Outcome, failed, skipped
from snnbench.conformance import graph as graphs
from snnbench.conformance import network
from snnbench.environments import store
from snnbench.environments.interpreters import Interpreter, unmanaged
from snnbench.environments.uv_program import EnvironmentFailed
from snnbench.files import home
from snnbench.recording.conformance import Conformance, Row
from snnbench.run import process
from snnbench.run.endings import outcome_of
from snnbench.worker.importer import ImportRequest

PACKAGES = ("nir", "nirtorch", "torch", "jax", "numpy")
"""Packages that importers work with, besides the library itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """A request: every graph at every time step (in seconds) in every library's importer, on one seed's input."""

    files: Sequence[Path]
    steps_s: Sequence[float]
    adapters: Sequence[Adapter]
    time_steps: int
    batch: int
    seed: int
    timeout_s: float
    managed: bool


def examine(request: Examination, say: Callable[[str], None]) -> Conformance:
    """Run all importers, one after the other. Raises GraphError for a file that cannot be checked."""
    by_name = {file.stem: file for file in request.files}
    for file in by_name.values():
        graph = graphs.read(file)
        for dt in request.steps_s:
            try:
                network.check(graph, dt)
            except graphs.GraphError as error:
                raise graphs.GraphError(f"{file}: {error}") from error
    rows = sorted(_rows(request, say), key=lambda row: (list(by_name).index(row.graph), row.dt, row.library))
    return Conformance(
        rows=rows,
        graphs={name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in by_name.items()},
        time_steps=request.time_steps,
        batch=request.batch,
        seed=request.seed,
    )


def _rows(request: Examination, say: Callable[[str], None]) -> Iterator[Row]:
    cells = [(file, dt) for file in request.files for dt in request.steps_s]
    for adapter in request.adapters:
        interpreter = _interpreter(adapter, request.managed, say) if adapter.imports_nir else None
        for file, dt in cells:
            say(f"{file.stem}, dt {dt:g} s: {adapter.name}")
            question = ImportRequest(
                graph=str(file.absolute()),
                dt=dt,
                time_steps=request.time_steps,
                batch=request.batch,
                seed=request.seed,
            )
            yield _row(adapter, interpreter, question, request.timeout_s)


def _row(adapter: Adapter, interpreter: Interpreter | None, question: ImportRequest, timeout_s: float) -> Row:
    pins = adapter.variants[adapter.default].pins
    versions = interpreter.versions if interpreter else {}
    outcome, comparison = _outcome(adapter, interpreter, question, timeout_s)
    return Row(
        graph=Path(question.graph).stem,
        dt=question.dt,
        library=adapter.name,
        version=versions.get(pins.distribution, pins.version),
        outcome=outcome,
        comparison=comparison,
        packages={name: versions[name] for name in PACKAGES if name in versions},
    )


def _outcome(
    adapter: Adapter, interpreter: Interpreter | None, question: ImportRequest, timeout_s: float
) -> tuple[Outcome, Mapping[str, object]]:
    if interpreter is None:
        return skipped("unsupported", adapter.no_nir or "its adapter has no function from_nir"), {}
    if interpreter.problem:
        return failed("environment", interpreter.problem), {}
    environment = process.environment(1, home(), current=interpreter.python == store.current())
    try:
        ending = process.run(interpreter.python, adapter.path, question, environment, timeout_s)
    except process.CannotWait as error:
        return skipped("unavailable", str(error)), {}
    except OSError as error:
        return failed("environment", f"the worker cannot be started: {error}"), {}
    outcome = outcome_of(ending, timeout_s)
    return outcome, ending.reply.settings.get("comparison", {}) if ending.reply else {}


def _interpreter(adapter: Adapter, managed: bool, say: Callable[[str], None]) -> Interpreter:
    """The Python of an adapter's default variant, with the packages of its importer."""
    try:
        if not managed:
            return unmanaged(store.current(), "current")
        environment = store.sync(store.plan(adapter, adapter.default, cuda=False, further=adapter.nir), say)
        return Interpreter(environment.python, environment.key, store.versions(environment.python))
    except EnvironmentFailed as error:
        return Interpreter(Path(), "", {}, str(error))
