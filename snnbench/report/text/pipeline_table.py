"""The table of pipelines: measured times beside those that the two models predict."""

from collections.abc import Iterator, Mapping, Sequence

from snnbench.analysis.pipelines import PipelineTimes, pipelines
from snnbench.analysis.results import Result
from snnbench.cases.case import Case
from snnbench.report.overview import Overview
from snnbench.report.section import Section, Table
from snnbench.report.text.table import captions
from snnbench.units import MS, number

LOWER_BOUNDS = (
    "The paper's model (arXiv 2408.00280) divides the time of one device, as measured in this recording, by the number "
    "of devices. The other adds the time in which the pipeline fills, with the default number of blocks. Both leave "
    "out the time of messages, which was not measured, so they are lower bounds."
)
"""What both models are; the equations are in analysis/pipelines.py."""


MODELS = ("paper's model", "with the fill")
"""The names of the models."""


def times_ms(times: PipelineTimes) -> tuple[float, float]:
    """The times in ms, for times in ns, in the order of MODELS."""
    return times.paper / MS, times.filled / MS


TITLE = "Pipelines of devices beside two models"


def sections(overview: Overview) -> Iterator[Section]:
    """The table, if there is a pipeline of two devices or more."""
    if (predicted := predictions(overview.results, overview.headline)).rows:
        yield Section("pipelines", TITLE, tables=[predicted], closing=[LOWER_BOUNDS])


def predictions(results: Mapping[Case, Sequence[Result]], phase: str) -> Table:
    """A row for each pipeline of two devices or more."""
    _, own = captions(results)
    rows = []
    for pipeline in pipelines(results, results, phase):
        if pipeline.case.processes > 1:
            measured = "-" if pipeline.measured is None else number(pipeline.measured / MS)
            predicted = [number(ms) for ms in times_ms(pipeline.predicted)]
            rows.append([own[pipeline.case], pipeline.contender, measured, *predicted])
    models = [f"{model}, ms" for model in MODELS]
    return Table(["case", "library", f"{phase} ms", *models], rows, texts=2, leaving=models[:1])
