"""What probes are called, and what they say: fixed work that each timing process does beside its own."""

from collections.abc import Mapping
from math import log
from typing import Any

INTERPRETER, CALLS, COPY, PRODUCT, LAUNCH = "interpreter", "calls", "copy", "product", "launch"
ALWAYS = (INTERPRETER, CALLS, COPY, PRODUCT)
"""The probes of every process; LAUNCH is for a GPU alone."""
WORDS = {
    INTERPRETER: "Python loops",
    CALLS: "calls of a framework",
    COPY: "copies",
    PRODUCT: "matrix products",
    LAUNCH: "launches",
}
"""What each stands for."""
LOOKS = 2
"""Before the first phase and after the last."""


def levels(probes: Mapping[str, Any]) -> dict[str, float]:
    """The logarithm of the nanoseconds of each probe of a record.

    The fastest repetition of a look counts, for others may disturb some, and the mean of the looks.
    """
    return {
        name: sum(log(min(look)) for look in probe["looks_ns"]) / len(probe["looks_ns"])
        for name, probe in probes.items()
    }
