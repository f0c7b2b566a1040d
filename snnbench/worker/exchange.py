"""The work of cells of import and export: a library's importer or exporter of NIR graphs, and the graph's equations.

An importer's network is held to the graph. An exporter's graph, read back, is held to the network that was exported:
the library's own network of a chain of linear layers and neurons, which computes the same as the graph of the case.
"""

import importlib.metadata
import re
import traceback
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from snnbench import workloads
from snnbench.adapter import refusal
from snnbench.adapter.loading import Loaded
from snnbench.cases.outcome import Outcome, failed, measured, skipped
from snnbench.conformance import network
from snnbench.conformance.comparison import WrongShape, compare
from snnbench.conformance.graph import NEURONS, Graph, GraphError
from snnbench.conformance.network import Network
from snnbench.worker.fault import fault
from snnbench.worker.messages import Reply, Request

REFUSALS = (AssertionError, NotImplementedError, ValueError)
"""The exceptions by which a library refuses a graph that it cannot express, if a statement raises them."""
Run = Callable[[Any], Any]
"""A network, as a function from spikes [T, B, ...] to the output [T, B, ...]."""


def reply_to(request: Request, loaded: Loaded | Reply) -> Reply:
    """Exchange the graph and compare; every result and every error becomes a reply."""
    if isinstance(loaded, Reply):
        return loaded
    declared, module = loaded
    exchanged = _imported if request.measure == "import" else _exported
    try:
        run, wanted = exchanged(module, request.case)
    except refusal.Unsupported as error:
        return Reply(skipped("unsupported", str(error)))
    except GraphError as error:
        return Reply(failed("incorrect", f"what it wrote is not read: {error}"))
    except Exception as error:
        line = fault(error, declared.path)
        if unread := _unread(error, line):
            return Reply(skipped("unsupported", unread))
        traceback.print_exc()
        return Reply(skipped("unsupported", line) if _is_refusal(error) else failed("crash", line))
    try:
        got = np.asarray(run(wanted.given.astype(np.float32)), np.float64)
    except refusal.Unsupported as error:
        return Reply(skipped("unsupported", str(error)))
    except Exception as error:
        traceback.print_exc()
        return Reply(failed("crash", fault(error, declared.path)))
    try:
        comparison = compare(wanted, got)
    except WrongShape as error:
        return Reply(failed("incorrect", str(error)))
    if not comparison.differing and (reason := wanted.hindrance):  # of a graph that an exporter wrote
        return Reply(skipped("unprovable", reason))
    outcome = _outcome(comparison, _replaced(network.of(request.case).graph, wanted.graph))
    return Reply(outcome, settings={"comparison": comparison.as_dict()})


def _imported(module: Any, case: Any) -> tuple[Run, Network]:
    """The network of the library's importer, and the graph that it read."""
    wanted = network.of(case)
    return module.from_nir(case.whole.file, case.dt, wanted.given.shape[1]), wanted


def _exported(module: Any, case: Any) -> tuple[Run, Network]:
    """The library's own network of a case, and the graph that its exporter wrote. Raises GraphError, Unsupported."""
    problem: Any = workloads.of(case).Problem(case)
    layers = problem.chain()
    with TemporaryDirectory() as folder:
        path = Path(folder, "exported.nir")
        run = module.to_nir(layers, case.dt, path)
        return run, network.of(case, path)


def _outcome(comparison: Any, replaced: str) -> Outcome:
    if not comparison.differing:
        return measured("exact")
    if comparison.cause:
        return measured("deviates", deviation=comparison.cause)
    return failed("incorrect", f"no known interpretation of the graph has this output{replaced}")


def _replaced(asked: Graph, written: Graph) -> str:
    """Which kinds of neurons the written graph has in place of those asked for; empty if they are the same."""
    kinds = [[node.kind for node in graph.nodes if node.kind in NEURONS] for graph in (asked, written)]
    pairs = dict.fromkeys((new, old) for old, new in zip(*kinds, strict=False) if new != old)
    return "".join(f"; it has {new} in place of {old}" for new, old in pairs)


def _is_refusal(error: Exception) -> bool:
    """Whether a statement of the library raised the error: a ValueError of NumPy, for example, is a fault."""
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
