"""The worker of `snnbench nir`: one library's importer runs one NIR graph, and the output is compared.

    python -m snnbench.worker.importer adapters/norse.py

A request comes on standard input, and a reply goes to the descriptor in --reply-fd, as for other workers.
"""

import argparse
import importlib.metadata
import json
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from snnbench.adapter import loading, reading, refusal
from snnbench.cases.outcome import FailureKind, Outcome, failed, measured, skipped
from snnbench.worker.channel import die_with_parent, end, own_descriptor
from snnbench.worker.messages import BadRequest, Reply

REFUSALS = (AssertionError, NotImplementedError, ValueError)
"""The exceptions by which importers refuse a graph that their library cannot express, if a statement raises them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRequest:
    """A task: the graph in a file, the time step in seconds, and the input's steps T, samples B and seed."""

    module: ClassVar[str] = "snnbench.worker.importer"
    graph: str
    dt: float
    time_steps: int
    batch: int
    seed: int
    measure: str = "verify"

    def encode(self) -> str:
        """As one JSON document."""
        return json.dumps(asdict(self)) + "\n"


def decode(text: str) -> ImportRequest:
    """The request in `text`. Raises BadRequest."""
    try:
        return ImportRequest(**json.loads(text))
    except (TypeError, ValueError) as error:
        raise BadRequest(f"request: {error}") from error


def reply_to(request: ImportRequest, adapter: Path) -> Reply:
    """Run the importer and compare; every result and every error becomes a reply."""
    from snnbench.conformance import graph as graphs
    from snnbench.conformance.comparison import WrongShape, compare
    from snnbench.conformance.network import Network, inputs

    declared = reading.read(adapter)
    graph = graphs.read(Path(request.graph))
    given = inputs(graph, request.time_steps, request.batch, request.seed)
    try:
        module = loading.load(adapter)
    except Exception as error:  # an import runs third-party code, which may raise anything
        return _failed("import", error)
    try:
        run: Callable[[Any], Any] = module.from_nir(Path(request.graph), request.dt, request.batch)
    except refusal.Unsupported as error:
        return Reply(skipped("unsupported", str(error)))
    except Exception as error:
        return _declined(error) if _is_refusal(error) else _failed("crash", error)
    try:
        got = np.asarray(run(given.astype(np.float32)), np.float64)
    except refusal.Unsupported as error:
        return Reply(skipped("unsupported", str(error)))
    except Exception as error:
        return _failed("crash", error)
    settings = {"version": _version(declared.variants[declared.default].pins.distribution)}
    try:
        comparison = compare(Network(graph, given, request.dt), got)
    except WrongShape as error:
        return Reply(failed("incorrect", str(error)), settings=settings)
    return Reply(_outcome(comparison), settings=settings | {"comparison": comparison.as_dict()})


def _outcome(comparison: Any) -> Outcome:
    if not comparison.differing:
        return measured("exact")
    if comparison.cause:
        return measured("deviates", deviation=comparison.cause)
    return failed("incorrect", "no known reading of the graph has this output")


def _is_refusal(error: Exception) -> bool:
    """Whether a statement of the importer raised the error: a ValueError of NumPy, for example, is a fault."""
    statement = traceback.extract_tb(error.__traceback__)[-1].line or ""
    return isinstance(error, AssertionError) or (isinstance(error, REFUSALS) and statement.startswith("raise"))


def _declined(error: Exception) -> Reply:
    traceback.print_exc()
    return Reply(skipped("unsupported", _line(error)))


def _failed(kind: FailureKind, error: Exception) -> Reply:
    traceback.print_exc()
    return Reply(failed(kind, _line(error)))


def _line(error: BaseException) -> str:
    """An exception as one line: its class, the first line of its message, and the statement that raised it."""
    lines = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {lines[0].strip()}" if lines else type(error).__name__
    last = traceback.extract_tb(error.__traceback__)[-1]
    _, installed, file = last.filename.rpartition("site-packages/")
    return f"{text} ({file}:{last.lineno})" if installed else text


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def main() -> int:
    """Read a request, run the importer, reply. The exit status says only whether a reply was written."""
    parser = argparse.ArgumentParser(prog="python -m snnbench.worker.importer", description=__doc__.split("\n\n")[0])
    parser.add_argument("adapter", type=Path, help="the adapter file")
    parser.add_argument("--reply-fd", type=int, help="descriptor for the reply; standard output if left out")
    options = parser.parse_args()
    reply_fd = own_descriptor(options.reply_fd)
    try:
        request = decode(sys.stdin.read())
    except BadRequest as error:
        print(error, file=sys.stderr)
        return 2
    if options.reply_fd is not None:
        die_with_parent(options.reply_fd)
    with os.fdopen(reply_fd, "wb") as stream:
        stream.write(reply_to(request, options.adapter).encode())
    return 0


if __name__ == "__main__":
    end(main())
