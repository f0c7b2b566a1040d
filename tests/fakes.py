"""Fake adapters: source texts that behave, lie, stall or die; each is the correct one with one change.

They use the NumPy backend, so that a worker starts in a fraction of a second.
"""

import json
import re
import sys
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

from snnbench.cases.case import PROFILES
from snnbench.cases.problem import EXAM_SHAPE
from snnbench.run.process import Ending, environment, further, run
from snnbench.worker.messages import Measure, Reply, Request
from snnbench.workloads import lif, lif_devices
from snnbench.workloads.linear_lif import Case

PHASES = ("inference", "forward", "backward", "train")
EXAM_VALUES = 8 * 5 * 37
"""Values in the input of the exam: a fake that behaves up to this size passes it."""
MEASURED = f"case.neurons != {EXAM_SHAPE['neurons']}"
"""The condition, in the `build` of a fake, that this is not a network for the exam."""
CASE = Case(
    neurons=48,
    batch=7,
    time_steps=20,
    layers=1,
    device="cpu",
    dtype="float32",
    precision="ieee",
    threads=1,
    beta=0.91,
    threshold=1.0,
    reset="subtract",
    detach_reset=False,
    surrogate="fast_sigmoid",
    slope=1.0,
    input_rate=0.2,
    input_gradient=True,
    seed=7,
)
LIF = lif.Case(
    **{name: value for name, value in CASE.as_dict().items() if name in lif.Case.names() and name != "workload"}
)
"""The neurons of CASE alone, on currents."""
CUT = {"chunk_steps": 5, "carried_gradient": False}
"""Changes that let the sequence of CASE come in four chunks, with the gradient cut between them."""
DIVIDED = lif_devices.Case(**{name: value for name, value in LIF.as_dict().items() if name != "workload"}, devices=1)
"""The same, to be divided among devices; here on one."""

CORRECT = '''
"""A fake library that does all that is asked of it."""

import numpy as np

from dataclasses import replace
from snnbench.backends.numpy import Network
from snnbench.cases import reference

BACKEND = "numpy"


def network(case, weights):
    """The neuron in the dtype of what comes in."""

    def forward(x):
        traces = reference.network_forward(weights, x, case)
        return traces[-1].spikes, (x, traces)

    def backward(kept, cotangent):
        x, traces = kept
        got = reference.network_backward(weights, x, traces, cotangent, case)
        return got.weights, got.biases, got.input, *([got.constants] if got.constants else [])

    return Network(forward, backward)


def build(case, weights, variant):
    return network(case, weights)
'''

OWN = """
from snnbench.backends import numpy as driver


class Session(driver.Session):
{methods}


driver.Session = Session
"""
"""Appended to CORRECT: it runs every phase in a method of the harness, put in place of the harness's own."""


def altered(fault: str) -> str:
    """The correct fake, with its own `build`: `right` is the correct network."""
    body = f"right = network(case, weights)\n{dedent(fault)}"
    return f"{CORRECT}\n\ndef build(case, weights, variant):\n{indent(body, '    ')}\n"


def cast(case: str = "case", weights: str = "weights") -> str:
    """The correct fake, built for another case or other weights."""
    return altered(f"return network({case}, {weights})")


def overridden(methods: str) -> str:
    """The correct fake, with some methods of its session overridden."""
    return CORRECT + OWN.format(methods=indent(dedent(methods), "    "))


def profile(name: str) -> dict[str, Any]:
    """The case's fields that make a profile."""
    return dict(zip(("reset", "detach_reset"), PROFILES[name], strict=True))


def write(folder: Path, source: str, name: str = "fake") -> Path:
    """Write an adapter file with this text."""
    path = folder / f"{name}.py"
    path.write_text(source)
    return path


def request(measure: Measure, case: Case = CASE, **changes: Any) -> Request:
    """A short measurement of every phase."""
    brief: dict[str, Any] = {"phases": PHASES, "warmup_passes": 1, "repetitions": 3, "min_repetition_ns": 1}
    return Request(measure=measure, case=case, variant="default", **(brief | changes))


def ask(folder: Path, source: str, request: Request, timeout_s: float = 30.0) -> Ending:
    """Run a worker for this request on the adapter with this text."""
    env = environment(request.case.threads, folder, further(request.measure, folder))
    return run(Path(sys.executable), write(folder, source), request, env, timeout_s)


def reply_of(ending: Ending) -> Reply:
    """The reply; its absence is a failure."""
    assert ending.reply is not None, f"status {ending.status}, timed out {ending.timed_out}: {ending.log}"
    return ending.reply


QUANTITY = re.compile(
    r"(_|\b)(ns|us|ms|s|seconds|time|duration|bytes|(foreign|own|timed)_cpus)$|call|warmup|repetitions"
)


def quantities(value: Any, path: str = "") -> list[str]:
    """Paths of the keys in a JSON document that hold a time or an amount of memory."""
    if isinstance(value, dict):
        here = [f"{path}/{key}" for key in value if QUANTITY.search(key)]
        return here + [found for key, item in value.items() for found in quantities(item, f"{path}/{key}")]
    if isinstance(value, list):
        return [found for number, item in enumerate(value) for found in quantities(item, f"{path}/{number}")]
    return []


def document(reply: Reply) -> dict[str, Any]:
    """The reply as it is on the wire."""
    whole: dict[str, Any] = json.loads(reply.encode())
    return whole
