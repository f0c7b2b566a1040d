"""The section with every number: a row for each contender in each case, to sort and to filter, with a link to each."""

from snnbench.cases.case import Case
from snnbench.digest import digest
from snnbench.report import wording
from snnbench.report.findings import Findings
from snnbench.report.section import Section, Table
from snnbench.report.text.recording_tables import measurements

LIBRARY, WORK, CELL = "library", "work", "cell"


def section(findings: Findings) -> Section:
    """The tables of all cases in one, with the work and its sizes as columns."""
    title = "Every number"
    tables = {case: measurements(case, results, findings.baseline) for case, results in findings.results.items()}
    filled = {case: table for case, table in tables.items() if table.rows}
    if not findings.headline:
        return Section("cells", title, ["Left out: nothing was timed."])
    columns = list(dict.fromkeys(name for table in filled.values() for name in table.columns))
    axes = wording.axes(filled)
    sizes = [axis for axis in axes if len({getattr(case, axis, None) for case in filled}) > 1]
    rows, anchors = [], []
    names_of_cells = {(one.case, one.label): one.cell for one in reversed(findings.recording.records) if one.phases}
    for case, table in filled.items():
        for row in table.rows:
            values = dict(zip(table.columns, row, strict=True))
            known = [findings.name(case), *(str(getattr(case, axis, "-")) for axis in sizes)]
            rows.append([values[LIBRARY], *known, *(values.get(name, "-") for name in columns if name != LIBRARY)])
            rows[-1].append(names_of_cells.get((case, values[LIBRARY]), "-"))
            anchors.append(anchor(case, values[LIBRARY]))
    names = [LIBRARY, WORK, *(axes[axis][0] for axis in sizes), *(name for name in columns if name != LIBRARY), CELL]
    words = {LIBRARY, WORK, CELL, "version", "verdict"}
    numbers = [name for name in names if name not in words]
    sentences = [
        "A heading sorts by its column, the field filters by words, and a # is the link to its row.",
        "`snnbench show CELL` prints everything about the first trial of a row.",
    ]
    sentences += [f"A ratio is a time over that of {findings.baseline}."] if "ratio" in columns else []
    common = wording.common_sizes(filled) or next(iter(filled)).sizes()
    sentences += [f"All rows: {common}."] if common else []
    return Section("cells", title, [" ".join(sentences)], tables=[Table(names, rows, numbers=numbers, anchors=anchors)])


def anchor(case: Case, contender: str) -> str:
    """The name of a row, which stays the same in every page of the recording."""
    return f"cell-{digest([case.key, contender])}"
