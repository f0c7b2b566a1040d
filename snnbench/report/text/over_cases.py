"""The tables over several cases of a recording, which every report shows after those of single cases."""

from collections.abc import Iterator, Mapping, Sequence

from snnbench import measures
from snnbench.analysis.results import Result
from snnbench.cases.case import Case
from snnbench.report.measure import Titled
from snnbench.report.text import crossover_table, pipeline_table
from snnbench.report.text.pipeline_table import LOWER_BOUNDS


def tables(results: Mapping[Case, Sequence[Result]], phase: str) -> Iterator[Titled]:
    """Each table that has rows, with its title and legend."""
    titled = [
        (pipeline_table.TITLE, pipeline_table.predictions(results, phase), LOWER_BOUNDS),
        (crossover_table.TITLE, crossover_table.table(results, phase), crossover_table.LEGEND),
        *(each for shown in measures.reports().values() for each in shown.tables(results, phase)),
    ]
    yield from (each for each in titled if each[1].rows)
