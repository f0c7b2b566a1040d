"""The table of pipelines: measured times beside those that the two models predict."""

from collections.abc import Mapping, Sequence

from snnbench.analysis.pipelines import pipelines
from snnbench.analysis.results import Result
from snnbench.cases.case import Case
from snnbench.report.pipelines import MODELS, times_ms
from snnbench.report.section import Table
from snnbench.report.text.table import captions
from snnbench.units import MS, number

TITLE = "Pipelines of devices beside two models"


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
