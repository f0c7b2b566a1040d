"""A case: one fully specified piece of work. Equal cases are equal work.

The network is `layers` times a linear map followed by a leaky integrate-and-fire neuron, all `neurons` wide, run over
`time_steps` steps on `batch` samples:

    u[t] = beta * v[t-1] + x[t]
    s[t] = 1 if u[t] >= threshold else 0
    v[t] = u[t] - threshold * s[t]          reset = "subtract"
    v[t] = u[t] * (1 - s[t])                reset = "zero"
    v[t] = u[t]                             reset = "none"
    ds/du = surrogate(u - threshold; slope)    backward only
"""

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from snnbench.digest import digest

Dtype = Literal["float32", "float64", "bfloat16", "float16"]
Precision = Literal["ieee", "tf32"]
Reset = Literal["subtract", "zero", "none"]
Surrogate = Literal["fast_sigmoid", "sigmoid", "atan", "triangle", "rectangle", "one_sided", "exponential"]
InputKind = Literal["spikes", "gaussian"]
HALVES = ("bfloat16", "float16")

PROFILES: dict[str, tuple[Reset, bool]] = {
    "subtract": ("subtract", False),
    "zero": ("zero", True),
    "subtract-detached": ("subtract", True),
    "zero-attached": ("zero", False),
    "none": ("none", True),
}
"""Profile name -> (reset, detach_reset). The first two are the standard ones: no pair is native to every library.

Without a reset no gradient goes through one, so there is one such profile. Only its neurons can be computed in parallel
over time, so they are compared among themselves only.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One piece of work. `threads` is the number of CPUs a worker may use.

    The input is 0 or 1 with `input_rate` spikes per step (`input_kind` "spikes"), or numbers from the standard normal
    distribution at a share `input_rate` of all places, and 0 elsewhere ("gaussian").
    """

    workload: Literal["linear_lif"] = "linear_lif"
    neurons: int
    batch: int
    time_steps: int
    layers: int
    device: str
    dtype: Dtype
    precision: Precision
    threads: int
    beta: float
    threshold: float
    reset: Reset
    detach_reset: bool
    surrogate: Surrogate
    slope: float
    input_kind: InputKind = "spikes"
    input_rate: float
    input_gradient: bool
    seed: int

    @property
    def profile(self) -> str:
        """The name of this (reset, detach_reset) pair."""
        return next(name for name, pair in PROFILES.items() if pair == (self.reset, self.detach_reset))

    @property
    def updates(self) -> int:
        """Neuron updates in one pass: T * B * N * L."""
        return self.time_steps * self.batch * self.neurons * self.layers

    @property
    def is_judged_by_layer(self) -> bool:
        """Whether it has several layers in 16 bits: rounding moves too many hidden spikes to predict an answer."""
        return self.layers > 1 and self.dtype in HALVES

    @property
    def key(self) -> str:
        """A short digest of the fields: the same on every machine, different for any other work."""
        return digest(asdict(self))

    def with_(self, **changes: Any) -> "Case":
        """The same work with some fields changed."""
        return replace(self, **changes)
