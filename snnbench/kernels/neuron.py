"""The equations of the neuron that every kernel computes, and its parameters.

    u[t] = beta * v[t-1] + x[t]
    s[t] = 1 if u[t] >= threshold else 0
    v[t] = u[t] - threshold * s[t]     reset "subtract"
    v[t] = u[t] * (1 - s[t])           reset "zero"

backward, from the last step to the first, with sg = surrogate(u - threshold), gs = dL/ds and gv = dL/dv[t]:

    gu = (gs - threshold * gv) * sg + gv           subtract
    gu = (gs - u * gv) * sg + gv * (1 - s)         zero; detach_reset drops the second term of the bracket
    dL/dx[t] = gu,  dL/dv[t-1] = beta * gu
"""

from dataclasses import dataclass
from typing import Literal

from snnbench.cases.surrogate import FORMULAS

Reset = Literal["subtract", "zero"]


@dataclass(frozen=True, slots=True)
class Neuron:
    """Parameters of a leaky integrate-and-fire neuron. Raises ValueError for an unknown word or a threshold of 0."""

    beta: float
    threshold: float
    reset: Reset = "subtract"
    detach_reset: bool = False
    surrogate: str = "fast_sigmoid"
    slope: float = 1.0

    def __post_init__(self) -> None:
        if self.reset not in ("subtract", "zero"):
            raise ValueError(f"reset {self.reset!r}: expected 'subtract' or 'zero'")
        if self.surrogate not in FORMULAS:
            raise ValueError(f"surrogate {self.surrogate!r}: expected one of {', '.join(FORMULAS)}")
        if isinstance(self.threshold, float) and self.threshold == 0.0:
            raise ValueError(
                "threshold 0: expected another number; a potential of -0.0 reaches it with the sign of a silent neuron"
            )
