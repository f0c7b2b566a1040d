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
from snnbench.cases.outcome import Outcome, failed, measured, skipped
from snnbench.worker.fault import fault
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
        line = fault(error, declared.path)
        if unread := _unread(error, line):
            return Reply(skipped("unsupported", unread))
        traceback.print_exc()
        return Reply(skipped("unsupported", line) if _is_refusal(error) else failed("crash", line))
    try:
        got = np.asarray(run(given.astype(np.float32)), np.float64)
    except refusal.Unsupported as error:
        return Reply(skipped("unsupported", str(error)))
    except Exception as error:
        traceback.print_exc()
        return Reply(failed("crash", fault(error, declared.path)))
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
    return failed("incorrect", "no known interpretation of the graph has this output")


def _is_refusal(error: Exception) -> bool:
    """Whether a statement of the importer raised the error: a ValueError of NumPy, for example, is a fault."""
    statement = traceback.extract_tb(error.__traceback__)[-1].line or ""
    return isinstance(error, AssertionError) or (isinstance(error, REFUSALS) and statement.startswith("raise"))


def _unread(error: Exception, line: str) -> str:
    """Why the package `nir` that the library needs does not read the graph; "" if another package raised the error."""
    if "/site-packages/nir/" not in traceback.extract_tb(error.__traceback__)[-1].filename:
        return ""
    unknown = re.search(r"unexpected keyword argument '(\w+)'", str(error))
    what = f"reads no {unknown[1]}" if unknown else f"does not read this graph: {line}"
    return f"needs nir {_version('nir')}, which {what}"


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
