"""The work for `snnbench nir` in a worker: one library's importer runs one NIR graph, and the output is compared."""

import importlib.metadata
import re
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from snnbench.adapter import refusal
from snnbench.adapter.loading import Loaded
from snnbench.cases.outcome import FailureKind, Outcome, failed, measured, skipped
from snnbench.worker.messages import ImportRequest, Reply

REFUSALS = (AssertionError, NotImplementedError, ValueError)
"""The exceptions by which importers refuse a graph that their library cannot express, if a statement raises them."""


def reply_to(request: ImportRequest, loaded: Loaded | Reply) -> Reply:
    """Run the importer and compare; every result and every error becomes a reply."""
    if isinstance(loaded, Reply):
        return loaded
    declared, module = loaded
    from snnbench.conformance import graph as graphs
    from snnbench.conformance.comparison import WrongShape, compare
    from snnbench.conformance.network import Input, Network, inputs

    graph = graphs.read(Path(request.graph))
    names = ("time_steps", "batch", "seed", "rate", "amplitude")
    given = inputs(graph, Input(**{name: getattr(request, name) for name in names}))
    try:
        run: Callable[[Any], Any] = module.from_nir(Path(request.graph), request.dt, request.batch)
    except refusal.Unsupported as error:
        return Reply(skipped("unsupported", str(error)))
    except Exception as error:
        if unread := _unread(error):
            return Reply(skipped("unsupported", unread))
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


def _unread(error: Exception) -> str:
    """Why the package `nir` that the library needs does not read the graph; "" if another package raised the error."""
    if "/site-packages/nir/" not in traceback.extract_tb(error.__traceback__)[-1].filename:
        return ""
    unknown = re.search(r"unexpected keyword argument '(\w+)'", str(error))
    what = f"reads no {unknown[1]}" if unknown else f"does not read this graph: {_line(error)}"
    return f"needs nir {_version('nir')}, which {what}"


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
