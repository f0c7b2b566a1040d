"""A small case with a loader, and its measurement in the test's own process."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from snnbench.adapter.loading import load, own_rule
from snnbench.adapter.reading import read
from snnbench.worker.messages import Reply
from snnbench.workloads import loading, training
from tests.fakes import LIF, request

ROOT = Path(__file__).parents[1]
LOOP = (ROOT / "adapters" / "torch-loop.py").read_text(encoding="utf-8")
SHARED = {name: value for name, value in LIF.as_dict().items() if name not in ("workload", "neurons")}
SMALL = loading.Case(
    **SHARED | {"time_steps": 50, "batch": 4, "beta": 0.9},
    width=32,
    layers=2,
    data="generated-shd",
    samples=18,
    strategy="naive",
    workers=0,
)
LEARNING = training.Case(
    **{name: value for name, value in SMALL.as_dict().items() if name != "workload"},
    optimiser="adam",
    learning_rate=0.01,
)
PHASES = ("epoch", "compute", "loader")


def reply_to(
    folder: Path, case: loading.Case, source: str = LOOP, phases: tuple[str, ...] = PHASES, **changes: Any
) -> Reply:
    """The reply to a request to time epochs of the adapter with this text. Raises what the measurement raises."""
    import torch

    from snnbench.backends.torch import Backend
    from snnbench.worker.measurement import Measurement

    path = folder / "loop.py"
    path.write_text(source)
    module, variant = load(path), read(path).variants["unbind"]
    wanted = {"phases": phases, "repetitions": 1, "warmup_passes": 1} | changes
    asked_for = replace(request("time", case, **wanted), variant="unbind")
    torch.set_num_threads(case.threads)  # as the environment of a worker does
    reply = Reply({})
    Measurement(asked_for, Backend(case), loading.builder(module), own_rule(module), variant).run(reply)
    return reply
