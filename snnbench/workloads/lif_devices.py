"""The workload `lif_devices`: the neurons of `lif`, divided among several devices.

It is figure 6 of the temporal fusion paper (Li et al. 2024). Each device belongs to a process, a *rank*. It holds its
part of the currents [T, B, N] before the clock starts: a share of the time steps, of the samples or of the neurons. A
pass ends when all ranks have ended theirs. Its floor is that of `lif` divided by the number of devices. On a CPU each
device is a process with `threads` CPUs of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar, Literal

from snnbench.adapter.refusal import Unsupported
from snnbench.cases.blocks import default_blocks
from snnbench.cases.case import Count
from snnbench.cases.problem import EXAM_BETA, EXAM_SHAPE, EXAM_THRESHOLD
from snnbench.workloads import lif

NAME = "lif_devices"
PARAMETERS = lif.PARAMETERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Case(lif.Case):
    """A layer of neurons on currents, divided among `devices`."""

    SIZES: ClassVar[dict[str, tuple[str, str]]] = {"devices": ("k", "devices"), **lif.Case.SIZES}

    workload: Literal["lif_devices"] = "lif_devices"  # type: ignore[assignment]
    devices: Count

    @property
    def processes(self) -> int:
        """A process for each device."""
        return self.devices

    @property
    def is_divided(self) -> bool:
        """True, also on one device, to which the others are compared."""
        return True


Problem = lif.Problem


def exams(case: Case, drive: float | None = None) -> list[lif.Problem]:
    """The exam of `lif`, with at least a step, a sample and a neuron for each device."""
    shape = {name: max(size, case.devices + offset) for offset, (name, size) in enumerate(EXAM_SHAPE.items())}
    dtype = case.dtype if case.dtype in ("float32", "float64") else "float32"
    small = case.with_(**shape, dtype=dtype)
    if drive is not None:
        return [Problem(small, drive=drive)]
    return [Problem(small.with_(beta=EXAM_BETA, threshold=EXAM_THRESHOLD), exact=True)]


def builder(adapter: ModuleType) -> Callable[[Any, Any, str], Any]:
    """The adapter's `parts` for a rank. Raises Unsupported if the adapter has none."""
    if not hasattr(adapter, "parts"):
        raise Unsupported("this adapter has no function parts(case, variant), so it runs on one device")
    return lambda case, weights, variant: adapter.parts(case, variant)


products, product_flops, static_values, operands = lif.products, lif.product_flops, lif.static_values, lif.operands


def least_values(case: Case, phase: str) -> int:
    """Numbers that a device must at least read and write in a pass of a phase."""
    return lif.least_values(case, phase) // case.devices


def pipeline_blocks(case: Case, split: str) -> int | None:
    """The default blocks of the pipeline along time; None for the other splits, whose ranks do not wait for others."""
    return default_blocks(case.devices, case.batch * case.neurons) if split == "temporal" else None
