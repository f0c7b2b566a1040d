"""Measurements of fake adapters in the test's own process: a worker would start an interpreter for each of them."""

from pathlib import Path

from pytest import MonkeyPatch

from snnbench import workloads
from snnbench.adapter import refusal
from snnbench.adapter.loading import load, own_rule
from snnbench.adapter.reading import read
from snnbench.backends import numpy as driver
from snnbench.backends import open_backend
from snnbench.cases.outcome import failed, skipped
from snnbench.worker.measurement import Measurement
from snnbench.worker.messages import Reply, Request
from tests import fakes


def reply_to(folder: Path, source: str, request: Request) -> Reply:
    """A worker's reply about the adapter with this text. A crash is raised; memory is measured in a worker."""
    if request.measure == "memory":
        return fakes.reply_of(fakes.ask(folder, source, request))
    path, reply = fakes.write(folder, source), Reply()
    with MonkeyPatch.context() as patch:
        patch.setattr(driver, "Session", driver.Session)  # some fakes put one of their own in its place
        return _reply_to(path, request, reply)


def _reply_to(path: Path, request: Request, reply: Reply) -> Reply:
    try:
        module, variant = load(path), read(path).variants[request.variant]
        backend = open_backend(variant.backend, request.case)
        build = workloads.of(request.case).builder(module)
        Measurement(request, backend, build, own_rule(module), variant).run(reply)
    except refusal.Unsupported as error:
        return Reply(skipped("unsupported", str(error)))
    except refusal.Unavailable as error:
        return Reply(skipped("unavailable", str(error)))
    except refusal.Incorrect as error:
        return Reply(failed("incorrect", str(error)))
    reply.settings |= backend.settings()
    return reply
