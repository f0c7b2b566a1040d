"""The times of pipelines (kernels/ranks.py): measured ones, each beside the times that two models predict."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from snnbench import workloads
from snnbench.analysis.results import Result
from snnbench.cases.case import Case


@dataclass(frozen=True, slots=True)
class PipelineTimes:
    """Predicted times of a pass, in the unit of the given times: by the paper's model, and with the pipeline's fill."""

    paper: float
    filled: float


def pipeline_times(single: float, transfer: float, ranks: int, blocks: int) -> PipelineTimes:
    """Times of a pass over all steps on `ranks` devices, with the columns in `blocks`.

    `single` is the time Ts of one device over all steps, `transfer` the time Tc of one message with the state of all
    columns, both in one unit. With k ranks and p blocks:

        paper     (k - 1) Tc + Ts / k                            arXiv 2408.00280, Eq. 4
        filled    (Ts / k) (1 + (k - 1) / p) + (k - 1) Tc

    The paper's model leaves out the fill: rank r cannot start before rank r - 1 has finished its first block. With many
    blocks `filled` approaches `paper`; with one block it is no shorter than `single`. Only the k - 1 messages of a
    block on its way are waited for, and others travel during the work; so with p blocks their time is nearer Tc / p,
    and Tc is its upper bound. Both models assume segments of equal length and a time that is proportional to the
    columns. Raises ValueError for a negative time, and for ranks or blocks below 1.
    """
    if single < 0 or transfer < 0:
        raise ValueError(f"times of {single} and {transfer}: expected 0 or more")
    if ranks < 1 or blocks < 1:
        raise ValueError(f"{ranks} ranks and {blocks} blocks: expected 1 or more of each")
    own, messages = single / ranks, (ranks - 1) * transfer
    return PipelineTimes(messages + own, own * (1 + (ranks - 1) / blocks) + messages)


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
