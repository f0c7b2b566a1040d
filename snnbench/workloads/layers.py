"""The workload `layers`: that of `linear_lif` with layers of different widths, such as 784-1000-10 or 700-256R-20.

Its floor has the products of each layer, measured in their own shapes. The spikes of a recurrent layer go through its
weights R step by step, and so does their gradient, so there are 2 (T - 1) products of [B, N] and [N, N] in a row. The
gradient of R is one product of [N, T B] and [T B, N].
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from snnbench.cases.case import RECURRENT, Each, Fraction, Trained, Widths
from snnbench.cases.problem import EXAM_SHAPE
from snnbench.workloads import linear_lif
from snnbench.workloads.linear_lif import Problem, Stack

NAME = "layers"
IMPLIED_BY = "widths"
PARAMETERS = linear_lif.PARAMETERS
EXAM_WIDTHS = (41, EXAM_SHAPE["neurons"], 29)
"""Those of the exam, of different lengths, so that swapped axes cannot pass."""
EXAM_ALPHA = 0.5
"""The exam's alpha. A potential stays a multiple of 2^-11 less threshold fractions, and below 16, so 24 bits hold it.

It is the exam's beta, too: only the spot check, at full size, tells the two decays apart.
"""
builder, exams, operands = linear_lif.builder, linear_lif.exams, linear_lif.operands
products, product_flops, product_rows = linear_lif.products, linear_lif.product_flops, linear_lif.product_rows
is_of_step, spared = linear_lif.is_of_step, linear_lif.spared
least_values, static_values = linear_lif.least_values, linear_lif.static_values

__all__ = ["Problem"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case(Stack):
    """A stack of layers; `widths` are those of the input and of each layer, of which recurrent ones are marked.

    The neurons have a synaptic current, which keeps the share `alpha` of itself per step; with 0 they have none.
    `trained` constants have a gradient, too: one number a layer, or one a neuron (`trained_each`).
    """

    SIZES: ClassVar[dict[str, tuple[str, str]]] = {
        "batch": ("B", "batch size"),
        "time_steps": ("T", "time steps"),
        "widths": ("N", "neurons"),
    }

    LATER: ClassVar[tuple[str, ...]] = ("alpha", "trained", "trained_each")

    workload: Literal["layers"] = "layers"
    widths: Widths
    alpha: Fraction = 0.0
    trained: Trained = "none"
    trained_each: Each = "layer"

    @property
    def layer_widths(self) -> tuple[int, ...]:
        """The width of the input, and of each layer."""
        return tuple(int(width.removesuffix(RECURRENT)) for width in self.widths.split("-"))

    @property
    def recurrent_layers(self) -> tuple[bool, ...]:
        """Whether each layer is recurrent."""
        return tuple(width.endswith(RECURRENT) for width in self.widths.split("-")[1:])

    @property
    def is_recurrent(self) -> bool:
        """Whether a layer is recurrent."""
        return any(self.recurrent_layers)

    @property
    def is_judged_by_layer(self) -> bool:
        """Whether it is deep, or a hidden spike that rounding moves reaches its own layer or a trained constant."""
        reaches_all = self.is_recurrent or bool(self.trained_constants)
        return super(Case, self).is_judged_by_layer or (self.sites > 1 and reaches_all)

    @property
    def summed(self) -> int:
        """A constant that is one number of a layer is a sum over its neurons, too."""
        neurons = max(self.layer_widths[1:]) if self.trained_constants and self.trained_each == "layer" else 1
        return super(Case, self).summed * neurons

    @property
    def neurons(self) -> int:
        """The neurons of the last layer, whose spikes are the answer."""
        return self.layer_widths[-1]

    def cut(self, start: int, count: int) -> Self:
        """The case of so many layers from the one of number `start` on."""
        return self._with_widths(self.layer_widths[start:], self.recurrent_layers[start : start + count])

    def of_exam(self, layers: int) -> Self:
        """The case in the shape of the exam, with so many layers."""
        sizes = {name: size for name, size in EXAM_SHAPE.items() if name != "neurons"}
        alpha = EXAM_ALPHA if self.alpha else 0.0
        marks = self.recurrent_layers[:layers]
        if self.is_recurrent and not any(marks):
            marks = (True, *marks[1:])
        return self._with_widths(EXAM_WIDTHS, marks).with_(**sizes, alpha=alpha)

    def narrowed(self, neurons: int) -> Self:
        """The same work with so many neurons in a layer at most."""
        return self._with_widths(tuple(min(neurons, width) for width in self.layer_widths), self.recurrent_layers)

    def _with_widths(self, widths: Sequence[int], recurrent: Sequence[bool]) -> Self:
        """The case of so many layers as `recurrent` has, with the first of these widths."""
        marked = [f"{width}{RECURRENT * mark}" for width, mark in zip(widths[1:], recurrent, strict=False)]
        return self.with_(widths="-".join([str(widths[0]), *marked]))
