"""The neuron's share in a recording: its part of a phase, its rule and its metrics."""

from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any

from typing_extensions import TypedDict

from snnbench.measures import Harness, Metric
from snnbench.measures.fields import Elapsed, Size
from snnbench.worker.durations import summarise
from snnbench.worker.timing import FEWEST_REPETITIONS


class WithoutNeuronsDocument(TypedDict):
    """Repetitions of a phase without neurons, and beside each one a repetition of the whole phase."""

    passes: Size
    repetitions_ns: list[Elapsed]
    whole_passes: Size
    whole_ns: list[Elapsed]


def complaints(record: Any, schema: int) -> Iterator[str]:
    """Each pass without neurons has a whole pass beside it."""
    for phase, timing in record.phases.items():
        if pairs := timing.get("without_neurons"):
            counts = len(pairs["repetitions_ns"]), len(pairs["whole_ns"])
            if counts[0] != counts[1] or counts[0] < FEWEST_REPETITIONS:
                yield f"{phase}: {counts[0]} repetitions without neurons beside {counts[1]} with them"


def metrics(timing: Mapping[str, Any]) -> Iterator[Metric]:
    """The neuron's time and share: the medians over pairs, and the interquartile range of the shares."""
    if pairs := timing.get("without_neurons"):
        yield "neuron_time", "ns", median(whole_ns - without_ns for without_ns, whole_ns in _passes_of(pairs))
        shares = summarise(neuron_shares(pairs))
        yield "neuron_share", "ratio", median(shares.trials)
        yield "neuron_share_spread", "ratio", shares.high - shares.low


def neuron_shares(pairs: Mapping[str, Any]) -> list[float]:
    """The neuron's share of each pass that was timed beside a pass without neurons."""
    return [1 - without_ns / whole_ns for without_ns, whole_ns in _passes_of(pairs)]


def _passes_of(pairs: Mapping[str, Any]) -> list[tuple[float, float]]:
    """(time without neurons, time) of a pass, in each pair of repetitions."""
    return [
        (without_ns / pairs["passes"], whole_ns / pairs["whole_passes"])
        for without_ns, whole_ns in zip(pairs["repetitions_ns"], pairs["whole_ns"], strict=True)
    ]


HARNESS = Harness(
    is_asked_for=True,
    of_phase={"without_neurons": WithoutNeuronsDocument},
    rule="each pass without neurons was timed beside a whole pass",
    complaints=complaints,
    metrics=metrics,
)
