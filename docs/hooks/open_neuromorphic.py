"""The tables of docs/explanations/open-neuromorphic.md: rows of the chart, and the same libraries in a recording."""

from recordings import newest

from snnbench.analysis.results import results_by_case
from snnbench.recording.reading import Recording
from snnbench.report.numbers import counted
from snnbench.report.section import Table
from snnbench.report.site.published import Beside, beside, load, span
from snnbench.report.text import markdown
from snnbench.units import MIB, MS

NAME = "open-neuromorphic"


def rows(recording: Recording) -> list[Beside]:
    """The rows of the chart beside those of a recording, the fastest of the chart first."""
    each = beside(load(NAME), results_by_case(recording.records), "train")
    return sorted(each, key=lambda one: one.row.value)


def published_table(recording: Recording) -> str:
    """The rows of the chart."""
    lines = [
        (
            one.row.name,
            f"{one.row.forward_s:.4f}",
            f"{one.row.backward_s:.4f}",
            there(one),
            "-" if one.row.memory_bytes is None else f"{one.row.memory_bytes / MIB:.0f}",
            one.row.time_steps,
            one.row.note,
        )
        for one in rows(recording)
    ]
    columns = ("row of the chart", "forward s", "backward s", "ratio", "memory MiB", "time steps run", "other work")
    return markdown.table(Table(columns, lines, numbers=columns[1:5]))


def there(one: Beside) -> str:
    """The ratio in the chart."""
    return f"{one.group.ratio(one.row)[0]:.2f}"


def recorded_table(recording: Recording) -> str:
    """The same libraries in a recording, with a sentence on its size and its machine."""
    lines = [
        (
            one.row.name,
            f"`{one.contender}`",
            one.row.case.get("profile", "both"),
            span([ns / MS for ns in one.times_ns]),
            f"{one.ratios[0]:.2f}" if one.ratios else "-",
            there(one),
            one.word or "not run",
        )
        for one in rows(recording)
    ]
    case = max((record.case for record in recording.records), key=lambda case: case.neurons)
    trials = counted(recording.protocol["trials"], "trial")
    head = (
        f"The recording is `results/{recording.name}` ({recording.model or 'an unknown machine'}): {case.device}, "
        f"N = {case.neurons}, B = {case.batch}, T = {case.time_steps}, {trials}.\n\n"
    )
    columns = (
        *("row of the chart", "contender here", "profile", "train ms"),
        *("ratio here", "ratio in the chart", "verdict"),
    )
    return head + markdown.table(Table(columns, lines, numbers=columns[3:6]))


def open_neuromorphic() -> dict[str, str]:
    """Both tables of the page, with the newest recording."""
    recording = newest(NAME)
    return {"published": published_table(recording), "recorded": recorded_table(recording)}
