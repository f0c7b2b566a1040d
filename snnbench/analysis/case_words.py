"""A case in words: `reset by subtraction, CPU: 1000 neurons, batch 64, 200 steps`."""

from snnbench.analysis.families import written
from snnbench.cases.case import Case

RESETS = {
    "subtract": "reset by subtraction",
    "zero": "reset to zero",
    "subtract-detached": "reset by subtraction without a gradient",
    "zero-attached": "reset to zero with a gradient",
    "none": "no reset",
}
"""The profiles of a neuron in words. The first two are the usual ones."""
DEVICES = {"cpu": "CPU", "cuda": "GPU"}


def size_in_words(case: Case, axis: str) -> str:
    """`batch 64`, `1000 neurons`."""
    words = case.SIZES[axis][1].removeprefix("time ")
    return f"batch {written(case, axis)}" if axis == "batch" else f"{written(case, axis)} {words}"


def kind(case: Case) -> str:
    """`reset by subtraction, CPU`, after the workload unless it is the usual one."""
    return f"{neuron(case)}, {DEVICES.get(case.device, case.device)}"


def neuron(case: Case) -> str:
    """`reset by subtraction`, after the workload unless it is the usual one."""
    workload = case.kind.removesuffix(case.profile).rstrip(", ")
    return ", ".join(filter(None, (workload, RESETS[case.profile])))


def sizes(case: Case, leaving_out: str = "") -> str:
    """`1000 neurons, batch 64, 200 steps`, without an axis that a chart shows and sizes of 1 that need no name."""
    return ", ".join(
        size_in_words(case, axis) for axis in case.SIZES if axis != leaving_out and not is_hidden(case, axis)
    )


def is_hidden(case: Case, axis: str) -> bool:
    """Whether a size is 1 and needs no name."""
    return axis in case.HIDDEN_ONES and written(case, axis) == "1"
