"""Measured times of pipelines, each beside the times that the two models predict from one device."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from snnbench import workloads
from snnbench.analysis.pipeline_model import PipelineTimes, pipeline_times
from snnbench.analysis.results import Result
from snnbench.cases.case import Case


@dataclass(frozen=True, slots=True)
class Pipeline:
    """One contender in one case: its measured time, None if it has none, and the models' times, all in ns."""

    case: Case
    contender: str
    measured: float | None
    predicted: PipelineTimes


def pipelines(results: Mapping[Case, Sequence[Result]], cases: Iterable[Case], phase: str) -> list[Pipeline]:
    """Every contender and case of these in which the contender's processes form a pipeline.

    Ts of the models is the time of the same contender on one device, where the first axis of the case is 1. Without it,
    or if the contender deviates there, no time is predicted. A recording does not hold the time Tc of a message, so Tc
    is 0: both predictions are lower bounds of their models.
    """
    predicted = []
    for case in cases:
        if not case.is_divided:
            continue
        alone = case.with_(**{next(iter(case.SIZES)): 1})
        measured = {result.contender: _time(result, phase) for result in results[case]}
        for result in results.get(alone, ()):
            blocks, single = workloads.of(case).pipeline_blocks(case, result.split), _time(result, phase)
            if blocks is not None and single is not None and result.contender in measured:
                times = pipeline_times(single, 0.0, case.processes, blocks)
                predicted.append(Pipeline(case, result.contender, measured[result.contender], times))
    return predicted


def _time(result: Result, phase: str) -> float | None:
    """The median of a phase in ns; None if it was not timed or is the time of other work."""
    summary = result.summaries.get((phase, "time"))
    return summary.median if summary and result.verdict != "deviates" else None
