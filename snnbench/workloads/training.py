"""The workload `training`: epochs of `loading` with an optimiser, so that the network learns.

Each timed epoch goes on with the parameters of the one before. After each batch the optimiser, PyTorch's own, changes
the parameters, and the gradients are cleared. Loss and accuracy are those of the training samples, as each was seen.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from snnbench.cases.case import Positive
from snnbench.workloads import loading

NAME = "training"
PARAMETERS, PACKAGES, OVERRIDES = loading.PARAMETERS, loading.PACKAGES, loading.OVERRIDES
OptimiserName = Literal["adam", "sgd"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case(loading.Case):
    """Epochs with an optimiser of this `learning_rate`."""

    PREFIX: ClassVar[str] = "training "

    workload: Literal["training"] = "training"  # type: ignore[assignment]
    optimiser: OptimiserName
    learning_rate: Positive

    @property
    def steps(self) -> tuple[str, float]:
        """The optimiser and its learning rate."""
        return self.optimiser, self.learning_rate


Problem = loading.Problem
exams, builder, prepare = loading.exams, loading.builder, loading.prepare
products, product_flops = loading.products, loading.product_flops
least_values, static_values, operands = loading.least_values, loading.static_values, loading.operands
