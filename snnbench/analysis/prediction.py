"""Predictions: a number of a contender in a case that no recording has, from the recorded case of nearest sizes.

Each size that differs multiplies the recorded number by a step, on one of three grounds:

    fitted     size ratio ** exponent, where recorded cases of the contender differ in this size only
    assumed    size ratio ** 1, or another exponent that the caller names
    counted    the ratio of the workload's counts: for neurons, because a linear map has N^2 terms

Only sizes are scaled: a case of another dtype, profile or number of threads is other work. Times come from recordings
of this model of machine only. Memory may come from any machine, and the number of threads does not matter for it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import exp, log
from statistics import median

from snnbench.adapter.contender import Contender
from snnbench.analysis.exponent import exponent
from snnbench.analysis.families import FEWEST_VALUES, families, setting, size
from snnbench.analysis.metrics import metrics
from snnbench.analysis.results import Metric
from snnbench.cases.case import Case
from snnbench.recording.reading import Recording

FITTED, ASSUMED, COUNTED = GROUNDS = ("fitted", "assumed", "counted")
COUNTED_AXIS = "neurons"
MOST = 1e18
"""No prediction is larger: 30 years, or an exabyte. Recordings come from strangers."""
Counted = Callable[[Case, Case], float]
"""(recorded case, predicted case) -> the ratio of their counts of work or of numbers."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A number of a contender in a recorded case. `unit` is that of analysis/metrics.py."""

    contender: Contender
    case: Case
    metric: Metric
    unit: str
    value: float
    recording: str


@dataclass(frozen=True, slots=True)
class Step:
    """The growth along one size, by its letter; without an exponent it is counted."""

    letter: str
    ground: str
    exponent: float | None = None

    def __str__(self) -> str:
        return self.letter if self.exponent is None else f"{self.letter}^{self.exponent:.3g}"


@dataclass(frozen=True, slots=True)
class Prediction:
    """A number, the recording that it comes from, and the steps from there; without a step it was measured."""

    value: float
    recording: str
    steps: tuple[Step, ...] = ()

    @property
    def words(self) -> str:
        """`measured`, or the steps by ground: `N^1.75, B^1 and T^1 assumed`."""
        parts = []
        for ground in GROUNDS:
            steps = [str(step) for step in self.steps if step.ground == ground]
            if steps and ground == FITTED:
                parts += steps
            elif steps:
                parts.append(f"{' and '.join(steps)} {ground}")
        return ", ".join(parts) or "measured"


@dataclass(slots=True)
class Point:
    """The values of one recording in a case."""

    recording: str
    values: list[float] = field(default_factory=list)

    @property
    def value(self) -> float:
        """Their median."""
        return median(self.values)


Points = dict[Case, Point]


class Evidence:
    """Recorded numbers, from which others are predicted. Of several recordings of a case the last one counts."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._points: dict[tuple[Contender, Metric], dict[Case, Points]] = {}
        for sample in samples:
            case = _same(sample.case, sample.unit)
            points = self._points.setdefault((sample.contender, sample.metric), {}).setdefault(setting(case), {})
            if case not in points or points[case].recording != sample.recording:
                points[case] = Point(sample.recording)
            points[case].values.append(sample.value)

    def predict(
        self, contender: Contender, case: Case, metric: Metric, unit: str, counted: Counted | None, assumed: float = 1.0
    ) -> Prediction | None:
        """The number of a contender in a case; None if nothing of this work is recorded.

        Neurons without a fit grow as `counted` says, and other sizes by the exponent `assumed`.
        """
        wanted = _same(case, unit)
        points = self._points.get((contender, metric), {}).get(setting(wanted))
        if not points:
            return None
        current = min(points, key=lambda known: _distance(known, wanted))
        value, steps = points[current].value, []
        recording = points[current].recording
        for axis, (letter, _) in wanted.SIZES.items():
            if size(current, axis) == size(wanted, axis):
                continue
            grown = current.with_(**{axis: size(wanted, axis)})
            power = fitted(points, axis, size(wanted, axis))
            if power is None and counted and axis == COUNTED_AXIS:
                factor = counted(current, grown)
                steps.append(Step(letter, COUNTED))
            else:
                ground = ASSUMED if power is None else FITTED
                power = assumed if power is None else power
                factor = exp(min(log(MOST), power * log(size(grown, axis) / size(current, axis))))
                steps.append(Step(letter, ground, power))
            value, current = min(MOST, value * factor), grown
        return Prediction(value, recording, tuple(steps))

    def least(self, contender: Contender, metric: Metric) -> float | None:
        """The smallest recorded number of a contender in any case; None without any."""
        settings = self._points.get((contender, metric), {}).values()
        return min((point.value for points in settings for point in points.values()), default=None)


def fitted(points: Points, axis: str, wanted: int) -> float | None:
    """The exponent along an axis, from the largest recorded family; None if no two cases differ in it alone.

    Beyond the recorded sizes it is the exponent of the two largest sizes. No number falls as a size grows.
    """
    positive = [case for case, point in points.items() if point.value > 0]
    family = next(iter(families(positive, axis)), [])
    sizes, values = [size(case, axis) for case in family], [points[case].value for case in family]
    if len(family) < 2:
        return None
    if len(family) < FEWEST_VALUES:
        return max(0.0, log(values[1] / values[0]) / log(sizes[1] / sizes[0]))
    fit = exponent(sizes, values)
    return max(0.0, fit.last if wanted > sizes[-1] else fit.value)


def samples(recordings: Sequence[Recording], model: str) -> Iterator[Sample]:
    """The numbers of recordings. Those of other models of machine come first and have no time."""
    for recording in sorted(recordings, key=lambda recording: recording.model == model):
        for record in recording.records:
            if record.status != "measured" or record.side:
                continue
            for phase, metric, unit, value in metrics(record):
                if recording.model == model or unit == "bytes":
                    contender = record.library, record.variant
                    yield Sample(contender, record.case, (phase, metric), unit, value, recording.name)


def _same(case: Case, unit: str) -> Case:
    """The case, equal for cases in which this number is expected to be equal."""
    return case.with_(seed=0, **({"threads": 0} if unit == "bytes" else {}))


def _distance(known: Case, wanted: Case) -> float:
    return sum(abs(log(size(wanted, axis) / size(known, axis))) for axis in wanted.SIZES)
