"""A recording in a terminal: the answer first, then a table for each case, then the reasons."""

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from snnbench.analysis.results import Result, reasons
from snnbench.cases.case import Case
from snnbench.recording.reading import Recording
from snnbench.report import answer, findings
from snnbench.report.findings import Findings
from snnbench.report.section import Table
from snnbench.report.terminal.drawing import draw, note, paragraph
from snnbench.report.text import epoch_table, over_cases
from snnbench.report.text.recording_tables import distance_table, extents, measurements
from snnbench.report.text.table import captions
from snnbench.report.wording import model, remarks

FEWEST_IN_COMMON = 2
"""The fewest cases with a line on their common part."""


def show(console: Console, recording: Recording) -> None:
    """Print the answer of a recording, a table for each case, and the reasons of contenders without a time."""
    results = findings.find(recording)
    about = f": {model(recording)}. {answer.coverage(recording)}."
    about += f" {lines}." if (lines := remarks(recording)) else ""
    console.print(Text.assemble((recording.name, "bold"), about))
    _show_answer(console, results)
    common, own = captions(results.cases)
    alone = len(own) < FEWEST_IN_COMMON
    if results.cases and not alone:
        console.print()
        note(console, f"all cases: {common}")
    names = {case: common if alone else own[case] for case in results.cases}
    timed = [(names[case], table) for case in results.cases if (table := _measurements(results, case)).rows]
    baseline = recording.baseline
    legend = [f"ratio: time over that of {baseline}; x floor: time over the least time for its products and bytes"]
    draw(console, timed, legend if any("ratio" in table.columns for _, table in timed) else ())
    deviating = [(names[case], table) for case in names if (table := _distances(results, case)).rows]
    if deviating:
        console.print(Text("\nDistance of deviating contenders from the case's own neuron", style="bold"))
        draw(console, deviating)
    if fed := epoch_table.tables(results.results):
        draw(console, fed, [epoch_table.LEGEND])
        console.print()
        for sentence in epoch_table.sentences(results.results, recording.records):
            paragraph(console, sentence, indent=2)
    for title, table, about in over_cases.tables(results.results, results.headline):
        draw(console, [(title, table)], [about])
    _show_reasons(console, results.results.values())


def _show_answer(console: Console, results: Findings) -> None:
    console.print()
    for sentence in answer.summary(results):
        paragraph(console, sentence, indent=2)


def _show_reasons(console: Console, by_case: Iterable[list[Result]]) -> None:
    """The reason of each contender once, however many cases it is of; and how much of the answers was compared."""
    cases = list(by_case)
    results = [result for of_case in cases for result in of_case]
    deviations = {result.contender: result.deviation for result in results}
    every = [(contender, reason) for of_case in cases for contender, reason in reasons(of_case)]
    short = dict.fromkeys((contender, _short(deviations.get(contender), reason)) for contender, reason in every)
    if short:
        console.print()
    for contender, reason in short:
        paragraph(console, Text.assemble((f"{contender}: ", "bold"), reason), indent=2)
    compared = extents(results)
    for extent, names in compared.items():
        of = f" ({', '.join(dict.fromkeys(names))})" if len(compared) > 1 else ""
        note(console, f"checked: {extent}{of}")


def _measurements(results: Findings, case: Case) -> Table:
    return measurements(case, results.results[case], results.baseline)


def _distances(results: Findings, case: Case) -> Table:
    return distance_table(result for result in results.results[case] if result.verdict)


def _short(deviation: str | None, reason: str) -> str:
    """A reason without the numbers that differ from case to case, which the table of distances has."""
    return f"deviates: {deviation}" if deviation and reason.startswith("deviates: ") else reason
