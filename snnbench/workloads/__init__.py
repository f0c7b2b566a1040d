"""Workloads: each module says all that is particular to one kind of work. To add one, see docs/tutorials.

A workload's module has its cases (axes and sizes), its problem (inputs, weights, cotangents), its exams, the part of an
adapter that it runs, and its floor. No other package names a workload: `of(case)` is the module of a case.
"""

from collections.abc import Callable, Collection, Mapping
from types import ModuleType
from typing import Any, Protocol, cast

from snnbench.cases.case import Case
from snnbench.cases.problem import Array, Problem
from snnbench.suggestions import unknown
from snnbench.workloads import layers, lif, lif_devices, linear_lif, loading, network, nir, training

Build = Callable[[Any, Any, str], Any]


class Workload(Protocol):
    """The parts of a workload's module. A module may lack those that have a value here."""

    NAME: str
    PARAMETERS: tuple[str, ...]

    @property
    def Case(self) -> type[Case]:  # it is a class
        """The dataclass of its cases; the annotations of its fields are the axes of a config."""

    @property
    def Problem(self) -> Callable[..., Problem]:  # it is a class
        """The arrays of a case."""

    def exams(self, case: Any, drive: float | None = None) -> list[Any]:
        """The problems of the exam that comes before every measurement, the simplest first.

        With a `drive` they are for the neuron of another rule, with currents that much larger.
        """

    def builder(self, adapter: ModuleType) -> Build:
        """The function (case, weights, variant) of an adapter that builds the network. Raises Unsupported."""

    def products(self, case: Any, phase: str) -> Mapping[str, int]:
        """The number of each product, by the names of Backend.peaks, in a pass of a phase."""

    def product_flops(self, case: Any, name: str) -> int:
        """FLOPs of one product of this name."""

    def least_values(self, case: Any, phase: str) -> int:
        """Numbers that a pass of a phase must at least read and write, with any fusion or recomputation."""

    def static_values(self, case: Any) -> int:
        """Numbers that exist before a pass: weights and input."""

    def operands(self, case: Any, rows: int) -> Mapping[str, tuple[Array, Array, Array]]:
        """So many random rows of the input, the cotangent and the weight of the products behind the floor.

        Products of several shapes are told apart by what stands before their names.
        """

    def differentiated(self, case: Any) -> Collection[str]:
        """The parameters with a gradient in a case: PARAMETERS, unless a workload says otherwise."""

    PACKAGES: tuple[str, ...] = ()
    """Requirements of a worker beside those of its library."""
    OVERRIDES: tuple[str, ...] = ()
    """Overrides of what these require."""
    IMPLIED_BY: str = ""
    """The axis by which a sweep that names no workload is one of this."""

    @staticmethod
    def pipeline_blocks(case: Any, split: str) -> int | None:
        """The blocks of a pipeline if the processes of a case form one under this split, else None.

        Models of its time are drawn beside the measured times.
        """
        return None

    @staticmethod
    def product_rows(case: Any, prefix: str) -> int:
        """The rows of products whose names begin so: those of all steps."""
        rows: int = case.time_steps * case.batch
        return rows

    @staticmethod
    def spared(case: Any, phase: str, rates: Mapping[str, float]) -> Mapping[str, float]:
        """How many of each of `products` zeros spare a program that looks for them, in the input and in spikes.

        `rates` has the shares of spikes of layers by number, or of sites by name; one that it lacks may be all spikes.
        """
        return {}

    @staticmethod
    def is_of_step(case: Any, name: str) -> bool:
        """Whether a product is that of one time step."""
        return False

    @staticmethod
    def convolutions(case: Any) -> Mapping[str, Any]:
        """A convolution of each kind in a case, with the shape of the image that enters; empty if it has none.

        `products` counts them, as "KIND.value", "KIND.kernel-gradient" and "KIND.image-gradient".
        """
        return {}

    @staticmethod
    def prepare(case: Any, each: Callable[[int, int], None]) -> None:
        """Make what a case needs on the disk of this machine; `each` gets the progress."""
        return


def _whole(module: ModuleType) -> Workload:
    """The workload of a module, which gets the values and the static methods of Workload that it lacks."""
    for name, part in vars(Workload).items():
        if not name.startswith("_") and isinstance(part, (staticmethod, tuple, str)) and not hasattr(module, name):
            setattr(module, name, getattr(Workload, name))
    if not hasattr(module, "differentiated"):
        module.differentiated = lambda case: module.PARAMETERS  # type: ignore[attr-defined]
    return cast(Workload, module)


MODULES = (linear_lif, layers, lif, lif_devices, network, nir, loading, training)
"""Every workload; the first is that of a config that names none."""
WORKLOADS: dict[str, Workload] = {module.NAME: _whole(module) for module in MODULES}
DEFAULT = next(iter(WORKLOADS))
PHASES = tuple(dict.fromkeys(phase for workload in WORKLOADS.values() for phase in workload.Case.PHASES))
"""The phases of all workloads, the most interesting ones first."""


def of(case: Case) -> Workload:
    """The workload of a case."""
    return WORKLOADS[case.workload]


def packages(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The PACKAGES and OVERRIDES of a workload of this name."""
    return WORKLOADS[name].PACKAGES, WORKLOADS[name].OVERRIDES


def has_graphs(name: str) -> bool:
    """Whether the cases of a workload have NIR graphs, which a library's importer can read."""
    return WORKLOADS[name].Case.nir_graph is not Case.nir_graph


def decode(fields: Mapping[str, Any]) -> Case:
    """The case with these fields. Raises TypeError for an unknown workload and for other fields."""
    name = fields.get("workload", DEFAULT)
    if name not in WORKLOADS:
        raise TypeError(unknown("workload", str(name), WORKLOADS))
    return WORKLOADS[name].Case(**fields)
