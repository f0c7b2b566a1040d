"""A case: one fully specified piece of work. Equal cases are equal work.

Each workload has a frozen dataclass of its own for its cases (snnbench/workloads/). Here is their base, with the fields
that all have: time steps and batch, the device, the number format, the seed, and the leaky integrate-and-fire neuron
with its input current x:

    u[t] = beta * v[t-1] + x[t]
    s[t] = 1 if u[t] >= threshold else 0
    v[t] = u[t] - threshold * s[t]          reset = "subtract"
    v[t] = u[t] * (1 - s[t])                reset = "zero"
    v[t] = u[t]                             reset = "none"
    ds/du = surrogate(u - threshold; slope)    backward only

The annotations of a case's fields are the only list of a workload's axes: configs, records and selections read them.
"""

from dataclasses import dataclass, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from snnbench.cases.nodes import most_on_a_node
from snnbench.digest import digest

Dtype = Literal["float32", "float64", "bfloat16", "float16"]
Precision = Literal["ieee", "tf32"]
Reset = Literal["subtract", "zero", "none"]
Surrogate = Literal["fast_sigmoid", "sigmoid", "atan", "triangle", "rectangle", "one_sided", "exponential"]
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


@dataclass(frozen=True, slots=True)
class Bounds:
    """The range of a field's values in a config: `low` to `high`; `low` itself is excluded if `above`."""

    low: float
    high: float
    above: bool = False


@dataclass(frozen=True, slots=True)
class Joined:
    """A field's value is `fewest` to `most` numbers within `bounds`, joined by hyphens.

    All but the first may end in `mark`.
    """

    bounds: Bounds
    fewest: int
    most: int
    mark: str


@dataclass(frozen=True, slots=True)
class Words:
    """A field's value is some of these words, each once, in their order and joined by hyphens; or "none"."""

    known: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class File:
    """A field's value is the text of a graph, in place of which a config may name its file, which `ends` so."""

    ends: str


# Bounded, far above any possible run, because recordings hold the configs of strangers.
Count = Annotated[int, Bounds(1, 10**9)]
CountOrNone = Annotated[int, Bounds(0, 10**9)]
Positive = Annotated[float, Bounds(0, 1e9, above=True)]
Fraction = Annotated[float, Bounds(0, 1)]
Rate = Annotated[float, Bounds(0, 1, above=True)]
WIDEST = 10**6
RECURRENT = "R"
"""The mark of a recurrent layer."""
Widths = Annotated[str, Joined(Bounds(1, WIDEST), 2, 100, RECURRENT)]
"""The width of the input and of each layer, such as 784-1000-10; 700-256R-20 has a recurrent layer."""
CONSTANTS = ("beta", "threshold")
"""The constants of a neuron that can be trained."""
Trained = Annotated[Literal["none", "beta", "threshold", "beta-threshold"], Words(CONSTANTS)]
Each = Literal["layer", "neuron"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The fields that the cases of every workload have. `threads` is the number of CPUs a worker may use.

    The work is `sites` equal layers of neurons, one after another. Each answers with spikes [T, B, N]: T is
    `time_steps`, B is `batch` and N is `neurons`, a field or a property of each workload's case. A network with layers
    of different sizes counts as one layer.

    `SIZES` are a workload's axes of size: field -> (letter, words). The first is the axis that reports draw times
    against. `HIDDEN_ONES` are sizes that a name leaves out if they are 1. `PREFIX` stands before the profile in names.
    `SAMPLES` is the plural of what a sample is; with it, tables show how many a contender processes in a second.
    `IN_KIND` are the fields that `kind` tells apart besides the profile, so that a name does not list them again.
    `QUIETEST` are the fewest spikes per step that prove anything. Where weights are given, neurons are `DRIVEN_BY`
    these fields.
    `PHASES` are the phases that can be timed, the most interesting first: contenders are ordered by it.
    `LATER` are fields that recordings may lack. At its default such a field is left out, so that a case keeps its key.
    """

    SIZES: ClassVar[dict[str, tuple[str, str]]] = {}
    HIDDEN_ONES: ClassVar[tuple[str, ...]] = ()
    PREFIX: ClassVar[str] = ""
    SAMPLES: ClassVar[str] = ""
    IN_KIND: ClassVar[tuple[str, ...]] = ()
    QUIETEST: ClassVar[float] = 0.01
    DRIVEN_BY: ClassVar[tuple[str, ...]] = ()
    PHASES: ClassVar[tuple[str, ...]] = ("train", "forward", "backward", "inference")
    LATER: ClassVar[tuple[str, ...]] = ()

    workload: str
    batch: Count
    time_steps: Count
    device: str
    dtype: Dtype
    precision: Precision
    threads: Count
    beta: Fraction
    threshold: Positive
    reset: Reset
    detach_reset: bool
    surrogate: Surrogate
    slope: Positive
    seed: CountOrNone

    alpha = 0.0
    """The share of its current that a neuron keeps per step: a field of some workloads. Without one it keeps none."""
    trained = "none"
    trained_each = "layer"
    """Which constants of a neuron are trained, and what has a number of its own: fields of some workloads."""
    chunk_steps = 0
    carried_gradient = True
    """The steps of a chunk, and whether the gradient goes back into the chunk before: fields of some workloads."""

    has_own_decays = False
    """Whether `beta` is an array, with a decay for each neuron."""

    if TYPE_CHECKING:  # a field of some workloads, a constant of others

        @property
        def neurons(self) -> int:
            """The neurons of a layer, or of the whole network if its layers differ."""

        @property
        def input_gradient(self) -> bool:
            """Whether the gradient of the input is computed, too."""

    @property
    def profile(self) -> str:
        """The name of this (reset, detach_reset) pair."""
        return next(name for name, pair in PROFILES.items() if pair == (self.reset, self.detach_reset))

    @property
    def kind(self) -> str:
        """The workload, unless it is the usual one, and the profile."""
        return f"{self.PREFIX}{self.profile}"

    @property
    def nir_graph(self) -> str:
        """The NIR graph and the time step that a library's importer gets; empty if the case has no graph."""
        return ""

    @property
    def lacks(self) -> str:
        """Why the case is no work that can be done, in words; empty if it is."""
        return ""

    @property
    def product_format(self) -> str:
        """The format in which matrix products see their operands."""
        return "tf32" if self.precision == "tf32" and self.dtype == "float32" else self.dtype

    @property
    def is_exact_format(self) -> bool:
        """Whether products and state have the digits of float32 or more."""
        return self.product_format in ("float32", "float64")

    @property
    def input_words(self) -> str:
        """The input in words, for a title; empty if a workload has one kind of input only."""
        return ""

    @property
    def sites(self) -> int:
        """The number of layers of neurons."""
        return 1

    @property
    def is_recurrent(self) -> bool:
        """Whether a layer gets its own spikes back, a step later."""
        return False

    @property
    def trained_constants(self) -> tuple[str, ...]:
        """The constants of a neuron whose gradient is computed, too."""
        return tuple(name for name in CONSTANTS if name in self.trained.split("-"))

    @property
    def cuts_gradient(self) -> bool:
        """Whether no gradient goes from a chunk back into the one before: truncated backpropagation through time."""
        return not self.carried_gradient

    @property
    def processes(self) -> int:
        """The number of processes that do the work, each on a device of its own."""
        return 1

    @property
    def is_divided(self) -> bool:
        """Whether an adapter divides the work among processes."""
        return False

    @property
    def is_fed(self) -> bool:
        """Whether a pass is an epoch, to which a loader feeds batches while it is timed."""
        return False

    @property
    def samples_in_pass(self) -> int:
        """The number of samples that a timed pass processes."""
        return self.batch

    def cpus(self, nodes: int = 1) -> int:
        """CPUs of the processes on each of so many nodes, at most."""
        return self.threads * most_on_a_node(self.processes, nodes)

    @property
    def loaders(self) -> int:
        """Processes of a loader. They share the CPUs of the case where the system can pin processes."""
        return 0

    @property
    def fan_in(self) -> int:
        """The number of terms of a current, at most."""
        return 0

    @property
    def fan_out(self) -> int:
        """The number of terms of an entry of the input's gradient: the neurons that each input reaches."""
        return 0

    @property
    def entering(self) -> int:
        """The width of the input."""
        return self.neurons

    @property
    def summed(self) -> int:
        """The most terms of an entry of a parameter's gradient: those of all steps and samples."""
        return self.time_steps * self.batch

    @property
    def shape(self) -> tuple[int, int, int]:
        """[T, B, N] of the answer."""
        return self.time_steps, self.batch, self.neurons

    @property
    def input_shape(self) -> tuple[int, int, int]:
        """[T, B, N] of the input."""
        return self.time_steps, self.batch, self.entering

    def narrowed(self, neurons: int) -> Self:
        """The same work with so many neurons in a layer at most."""
        return self.with_(neurons=min(neurons, self.neurons)) if "neurons" in self.names() else self

    @property
    def updates(self) -> int:
        """Neuron updates in one pass."""
        return self.time_steps * self.batch * self.neurons * self.sites

    @property
    def is_judged_by_layer(self) -> bool:
        """Whether each layer is proved by itself: an answer of the whole stack cannot be predicted."""
        return False

    @property
    def key(self) -> str:
        """A short digest of the fields: the same on every machine, different for any other work."""
        return digest(self.as_dict())

    def growth(self, axis: str) -> int:
        """The exponent of a size with which the work grows."""
        return 1

    def sizes(self, leaving_out: str = "") -> str:
        """`N=256, B=16, T=100`, without an axis that a chart shows, and without sizes of 1 that need no name."""
        named = [
            f"{letter}={getattr(self, axis)}"
            for axis, (letter, _) in self.SIZES.items()
            if axis != leaving_out and not (axis in self.HIDDEN_ONES and getattr(self, axis) == 1)
        ]
        return ", ".join(named)

    def as_dict(self) -> dict[str, Any]:
        """The fields, in the order of `names`."""
        later = {each.name: each.default for each in fields(self) if each.name in self.LATER}
        given = {name: getattr(self, name) for name in self.names()}
        return {name: value for name, value in given.items() if name not in later or value != later[name]}

    def row(self) -> dict[str, Any]:
        """The fields as a table has them."""
        return self.as_dict()

    def with_(self, **changes: Any) -> Self:
        """The same work with some fields changed."""
        return replace(self, **changes)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of the fields: the workload, the sizes in their order, all others, and the seed."""
        return _names(cls)  # type: ignore[arg-type]  # a class has a hash


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphCase(Case):
    """A case of a network of operations, on data."""

    @property
    def input_gradient(self) -> bool:
        """False: the input is data."""
        return False

    @property
    def is_judged_by_layer(self) -> bool:
        """True: a spike that rounding moves changes all sites after its own."""
        return True


@cache
def _names(case: Any) -> tuple[str, ...]:
    names = [field.name for field in fields(case) if field.name not in ("workload", "seed")]
    sizes = [name for name in case.SIZES if name in names]
    return ("workload", *sizes, *(name for name in names if name not in sizes), "seed")
