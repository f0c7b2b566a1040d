"""Faults of fake adapters: sources to alter, the complaint about each, and the worker's reply to a fake."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from snnbench.worker.messages import EXCHANGES, Measure, Reply
from tests import examination
from tests.fakes import CASE, altered, request

MEASURES: tuple[Measure, ...] = tuple(each for each in get_args(Measure) if each not in EXCHANGES)

CACHED = """
seen = {{}}

def forward(x):
    if {key} not in seen:
        seen[{key}] = (*right.forward(x), x)  # x is kept, so that its identity stays its own
    return seen[{key}][:2]

return Network(forward, right.backward)
"""

STALE = """
first = []

def backward(kept, cotangent):
    if not first or kept[0].size <= {small}:
        first[:] = [right.backward(kept, cotangent)]
    return first[0]

return Network(right.forward, backward)
"""

CARRIED = """
earlier = []

def forward(x):
    spikes = right.forward(np.concatenate([*earlier, x]))[0][-len(x):]
    if x.size > {small}:
        earlier[:] = [x]
    return spikes, right.forward(x)[1]

return Network(forward, right.backward)
"""

UNROLLED = """
def swapped(array):
    return array.transpose(1, 0, 2)

def forward(x):
    spikes, kept = right.forward(swapped(x))
    return {spikes}, kept

def backward(kept, cotangent):
    weights, biases, entering = right.backward(kept, swapped(cotangent))
    return weights, biases, swapped(entering)

return Network(forward, backward)
"""


@dataclass(frozen=True)
class Fault:
    """A fake adapter, the complaint about it, and the kinds of measurement that find it."""

    source: str
    complaint: str
    measures: tuple[Measure, ...] = ("time",)
    case: dict[str, Any] = field(default_factory=dict)


def spikes_fault(expression: str, complaint: str, measures: tuple[Measure, ...] = ("time",)) -> Fault:
    """The right `spikes` (and potentials `u`), changed by this expression."""
    body = f"""
def forward(x):
    spikes, kept = right.forward(x)
    u = kept[1][-1].potential
    return {expression}, kept

return Network(forward, right.backward)
"""
    return Fault(altered(body), complaint, measures)


def gradient_fault(expression: str, complaint: str, measures: tuple[Measure, ...] = ("time",)) -> Fault:
    """The right gradients `w`, `b` and `i` (of weights, biases and input), changed by this expression."""
    body = f"""
def backward(kept, cotangent):
    w, b, i = right.backward(kept, cotangent)
    return {expression}

return Network(right.forward, backward)
"""
    return Fault(altered(body), complaint, measures)


def reply_to(folder: Path, source: str, measure: Measure, **case: Any) -> Reply:
    """The reply to a request to measure the adapter with this text."""
    return examination.reply_to(folder, source, request(measure, CASE.with_(**case)))
