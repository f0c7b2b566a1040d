"""A worker of the simulated card: the real worker, which sleeps as long as each part of its work takes.

Its protocol and its relay are those of snnbench/worker/__main__.py. The parts are in a file of the home folder, which
benchmarks/simulated_card.py writes from simulated_card.toml. The times and bytes of the reply are made up.
"""

import json
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil

from snnbench.adapter import reading
from snnbench.adapter.contender import label
from snnbench.adapter.loading import Loaded
from snnbench.cases.outcome import measured
from snnbench.files import home
from snnbench.worker import __main__ as worker
from snnbench.worker.messages import Reply, Request
from snnbench.worker.relay import Relay

PARTS = "parts.json"
"""The file of the parts, in the home folder."""
IMPORT = "import"
TIMING = {"first_call_ns": 10**6, "warmup_ns": [10**6], "passes": 1, "repetitions_ns": [10**6] * 3}
MEMORY = {"phase": "train", "static_bytes": 1 << 20, "device": {"peak_bytes": 1 << 20}}


def parts_of(request: Request, contender: str) -> list[dict[str, Any]]:
    """The parts of a cell, in order."""
    return [
        part
        for part in json.loads((home() / PARTS).read_text())
        if part.get("of", request.measure) == request.measure and contender in part.get("contenders", [contender])
    ]


def sleep(part: dict[str, Any], request: Request, contender: str) -> None:
    """Take as long as a part, or no time if another worker kept what it compiles."""
    if "once" in part:
        words = {"contender": contender, "workload": request.case.workload, "neurons": request.case.neurons}
        try:
            (home() / f"{part['name']} {part['once'].format(**words)}".replace("/", "-")).touch(exist_ok=False)
        except FileExistsError:
            return
    seconds = part["seconds"]
    time.sleep(seconds[str(request.case.neurons)] if isinstance(seconds, dict) else seconds)


def load(path: Path, request: Request) -> Loaded:
    """Take as long as the imports, of which this process's own are a part."""
    declared = reading.read(path)
    parts = parts_of(request, label(declared.name, request.variant))
    imports_s = sum(part["seconds"] for part in parts if part["name"] == IMPORT)
    time.sleep(max(0.0, psutil.Process().create_time() + imports_s - time.time()))
    return Loaded(declared, ModuleType(path.stem))


def reply(request: Request, loaded: Loaded, instructions: Any, turns: Any, relay: Relay | None, *_: Any) -> Reply:
    """Take as long as the measurement, wait for the turn where the real worker does, and reply."""
    contender = label(loaded.declared.name, request.variant)
    parts = [part for part in parts_of(request, contender) if part["name"] != IMPORT]
    early = [part for part in parts if part.get("early")]
    if relay and not relay.uses_card:
        relay.wait(request)
    for part in early:
        sleep(part, request, contender)
    if relay and relay.uses_card:
        relay.wait(request)
    for part in parts[len(early) :]:
        sleep(part, request, contender)
    if request.measure == "memory":
        return Reply(measured("exact"), memory=MEMORY)
    return Reply(measured("exact"), phases=dict.fromkeys(request.phases, TIMING))


if __name__ == "__main__":
    worker._load, worker._reply, worker._confine = load, reply, lambda request: None  # type: ignore[assignment]
    sys.exit(worker.main())
