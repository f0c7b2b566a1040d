"""Names and levels of probes: fixed work that each timing process does in addition to its own."""

from collections.abc import Mapping
from math import log
from typing import Any

INTERPRETER, CALLS, COPY, PRODUCT, LAUNCH = "interpreter", "calls", "copy", "product", "launch"
ALWAYS = (INTERPRETER, CALLS, COPY, PRODUCT)
"""The probes of every process; LAUNCH runs on a GPU only."""
WORDS = {
    INTERPRETER: "Python loops",
    CALLS: "calls of a framework",
    COPY: "copies",
    PRODUCT: "matrix products",
    LAUNCH: "launches",
}
"""The work that each probe stands for."""
LOOKS = 2
"""The looks of a process: before the first phase and after the last."""


def levels(probes: Mapping[str, Any]) -> dict[str, float]:
    """The logarithm of the nanoseconds of each probe of a record.

    It is the mean over the looks of the fastest repetition, because other processes may disturb some repetitions.
    """
    return {
        name: sum(log(min(look)) for look in probe["looks_ns"]) / len(probe["looks_ns"])
        for name, probe in probes.items()
    }
