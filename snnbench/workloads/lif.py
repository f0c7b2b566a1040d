"""The workload `lif`: leaky integrate-and-fire neurons alone, on input currents, with the gradient of the currents.

It is the single layer of figure 5 of the temporal fusion paper (Li et al. 2024). Currents [T, B, N] are numbers from
the normal distribution with mean 0 and the standard deviation CURRENT_SCALE * threshold. There is no product, so the
floor counts bytes only, with M = T * B * N and a `size` of bytes for each number:

    phase               reads at the least              writes at the least
    inference, forward  currents M                      spikes M
    backward            currents M, cotangent M         gradient M
    train               currents M, cotangent M         spikes M, gradient M

    least bytes = size * (values read + values written)
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from types import ModuleType
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from snnbench.adapter.loading import neuron_of
from snnbench.adapter.refusal import Unsupported
from snnbench.cases import case, problem
from snnbench.cases.case import Count
from snnbench.cases.operations import Operation
from snnbench.cases.problem import EXAM_BETA, EXAM_SHAPE, EXAM_THRESHOLD, Array, gaussian, generator

NAME = "lif"
PARAMETERS: tuple[str, ...] = ()
"""No parameters."""
CURRENT_SCALE = 0.9
"""Standard deviation of a current, in thresholds: with a reset, 0.08 to 0.13 spikes per step at beta = 0.2 and 0.9."""
EXAM_SIXTEENTHS = (-20, 36)
"""Range of the exam's currents, in sixteenths: |x| <= 2.25, so |u| <= 4.5."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case(case.Case):
    """A layer of neurons on currents."""

    SIZES: ClassVar[dict[str, tuple[str, str]]] = {
        "time_steps": ("T", "time steps"),
        "neurons": ("N", "neurons"),
        "batch": ("B", "batch size"),
    }
    PREFIX: ClassVar[str] = "lif "

    workload: Literal["lif"] = "lif"
    neurons: Count

    @property
    def product_format(self) -> str:
        """The format of the numbers: there is no product."""
        return self.dtype

    @property
    def input_gradient(self) -> bool:
        """True: it is the only gradient."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Site(Case):
    """The neurons at a site of a graph, whose decay may differ from neuron to neuron: then `beta` is an array [N].

    A current is a sum of so many `terms`. `recurrent` neurons get their own spikes of the step before, too.
    """

    QUIETEST: ClassVar[float] = 0.001
    """Networks of users are more silent than cases made for a proof."""

    alpha: float = 0.0
    recurrent: bool = False
    terms: int = 0

    @property
    def has_own_decays(self) -> bool:  # type: ignore[override]  # a constant of other cases
        """Whether `beta` is an array."""
        return not isinstance(self.beta, float)

    @property
    def is_recurrent(self) -> bool:
        """Whether they get their own spikes."""
        return self.recurrent

    @property
    def fan_in(self) -> int:
        """The number of terms of a current."""
        return self.terms


@dataclass(frozen=True, slots=True)
class Problem(problem.Problem):
    """The currents and cotangents of a case."""

    case: Case

    def _input(self, which: int) -> Array:
        shape = self.case.shape
        if self.exact:
            sixteenths = generator(self.case, "exam", which).integers(*EXAM_SIXTEENTHS, size=shape)
            return np.divide(sixteenths, 16, dtype=np.float32)
        currents = gaussian(self.case, "current", which, shape)
        currents *= np.float32(CURRENT_SCALE * self.case.threshold * self.drive)
        return currents


def at_site(whole: case.Case, operation: Operation, current: NDArray[Any], cotangent: NDArray[Any]) -> Problem:
    """The problem of the neurons at one site of a network; content 0 is their current and cotangent, [T, B, N]."""
    shared = {name: getattr(whole, name) for name in Case.names() if name not in ("workload", "neurons")}
    return alone(Case(neurons=prod(operation.shape), **shared), current, cotangent)


def alone(case: Case, current: NDArray[Any], cotangent: NDArray[Any]) -> Problem:
    """The problem of neurons by themselves; content 0 is their current and the cotangent of their spikes, [T, B, N]."""
    problem = Problem(case)
    problem.put(0, current, cotangent)
    return problem


def exams(case: Case, drive: float | None = None) -> list[Problem]:
    """The exam of this case's neuron: exact, or with currents `drive` times as large for a neuron of another rule."""
    dtype = case.dtype if case.dtype in ("float32", "float64") else "float32"
    small = case.with_(**EXAM_SHAPE, dtype=dtype)
    if drive is not None:
        return [Problem(small, drive=drive)]
    return [Problem(small.with_(beta=EXAM_BETA, threshold=EXAM_THRESHOLD), exact=True)]


def builder(adapter: ModuleType) -> Callable[[Any, Any, str], Any]:
    """The adapter's `neuron` by itself, or its `build` without weights. Raises Unsupported if it has neither."""
    if hasattr(adapter, "neuron"):
        return lambda case, weights, variant: neuron_of(adapter, case, variant).alone(case.neurons)
    if not hasattr(adapter, "build"):
        raise Unsupported("this adapter has no function neuron(case, variant), so its neuron cannot run alone")
    build: Callable[[Any, Any, str], Any] = adapter.build
    return lambda case, weights, variant: build(case, [], variant)


def products(case: Case, phase: str) -> dict[str, int]:
    """No product."""
    return {}


def product_flops(case: Case, name: str) -> int:
    """No product."""
    return 0


def least_values(case: Case, phase: str) -> int:
    """Numbers that a pass of a phase must at least read and write."""
    arrays = {"inference": 2, "forward": 2, "backward": 3, "train": 4}[phase]
    return arrays * case.time_steps * case.batch * case.neurons


def static_values(case: Case) -> int:
    """Numbers in the currents, which exist before a pass."""
    return case.time_steps * case.batch * case.neurons


def operands(case: Case, rows: int) -> dict[str, tuple[Array, Array, Array]]:
    """The operands of an empty product."""
    number = np.ones((1, 1), np.float32)
    return {"": (number, number, number)}
