"""What a document published on a question, beside the same work in a recording.

configs/published/NAME.toml has the numbers of the document that the config NAME answers, as groups of rows. All rows of
a group are divided by its first one. A row names its contenders here and fields of its case. The first of these
contenders that was timed stands beside it.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import altair as alt

from snnbench.adapter.discovery import data_folder
from snnbench.analysis import case_words
from snnbench.analysis.results import Result, headline
from snnbench.cases.case import Case
from snnbench.recording.reading import Recording
from snnbench.report import wording
from snnbench.report.charts import style
from snnbench.report.page.citation import measured
from snnbench.report.section import Chart, Section, Table
from snnbench.report.site.catalogue import SAME
from snnbench.units import MS, number

PUBLISHED, HERE = "published", "here"
Span = tuple[float, float]
"""The least and the largest of some numbers."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a document: its seconds, or the range of its ratio to the first row of its group.

    `time_steps` says how many it ran, and `note` what else is different; `contenders` and `case` are its work here.
    """

    name: str
    contenders: Sequence[str]
    seconds: float | None = None
    ratio: Sequence[float] = ()
    forward_s: float | None = None
    backward_s: float | None = None
    memory_bytes: float | None = None
    time_steps: str = ""
    note: str = ""
    case: Mapping[str, Any] = field(default_factory=dict)

    @property
    def value(self) -> float | None:
        """Its seconds, those of forward and backward together if it has both."""
        if self.forward_s is not None and self.backward_s is not None:
            return self.forward_s + self.backward_s
        return self.seconds


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of one piece of work, in cases with these fields."""

    name: str
    row: Sequence[Row]
    case: Mapping[str, Any] = field(default_factory=dict)

    def ratio(self, row: Row) -> Span:
        """The published ratio of a row to the first one."""
        if row.ratio:
            return min(row.ratio), max(row.ratio)
        share = (row.value or 0.0) / (self.row[0].value or 1.0)
        return share, share


@dataclass(frozen=True, slots=True)
class Published:
    """The numbers of a document."""

    title: str
    about: str
    source: str
    group: Sequence[Group]


@dataclass(frozen=True, slots=True)
class Beside:
    """A published row, and the same work here: its ratios to the first row and its times [ns], where it was timed.

    They are those of the largest case, or of all cases if a range was published. `word` is the verdict, or why it was
    not timed, if a recording has the reason; `case` is the largest.
    """

    group: Group
    row: Row
    contender: str
    word: str
    ratios: Sequence[float]
    times_ns: Sequence[float]
    case: Case | None = None

    @property
    def name(self) -> str:
        """The row's name with that of its group."""
        return ", ".join(filter(None, (self.group.name, self.row.name)))


Results = Mapping[Case, Mapping[str, Result]]


def load(config: str) -> Published | None:
    """What was published on the question of a config; None if nothing was."""
    files = {path.stem: path for path in (data_folder("configs") / "published").glob("*.toml")}
    return _read(files[config]) if config in files else None


def _read(path: Path) -> Published:
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    groups = [Group(**{**each, "row": [Row(**row) for row in each["row"]]}) for each in document.pop("group")]
    return Published(**document, group=groups)


def beside(published: Published, results: Mapping[Case, Sequence[Result]], phase: str) -> Iterator[Beside]:
    """Every published row with its work in these results."""
    by_name = {case: {one.contender: one for one in each} for case, each in results.items()}
    for group in published.group:
        for row in group.row:
            yield _beside(group, row, by_name, phase)


def _beside(group: Group, row: Row, results: Results, phase: str) -> Beside:
    cases = [case for case in results if _has(case, {**group.case, **row.case})]
    first, reason = group.row[0], ""
    for contender in row.contenders:
        timed = {case: one for case in cases if (one := _timed(results[case], [contender], phase))}
        if not timed:
            reasons = (results[case][contender].reasons for case in cases if contender in results[case])
            reason = reason or next((each[0] for each in reasons if each), "")
            continue
        if not row.ratio:
            largest = max(map(_work, timed))
            timed = {case: one for case, one in timed.items() if _work(case) == largest}
        pairs = [
            (one, _timed(results.get(_with(case, first.case), {}), first.contenders, phase))
            for case, one in timed.items()
        ]
        ratios = [_ns(one, phase) / _ns(base, phase) for one, base in pairs if base]
        verdict = next(iter(timed.values())).verdict
        times_ns = [_ns(one, phase) for one in timed.values()]
        return Beside(group, row, contender, verdict, ratios, times_ns, max(timed, key=_work))
    return Beside(group, row, row.contenders[0], reason, (), ())


def _has(case: Case, fields: Mapping[str, Any]) -> bool:
    return all(getattr(case, name, None) == value for name, value in fields.items())


def _with(case: Case, fields: Mapping[str, Any]) -> Case:
    """The case with these fields, as far as it has them itself."""
    return case.with_(**{name: value for name, value in fields.items() if name in case.names()})


def _work(case: Case) -> int:
    return case.neurons * case.batch * case.time_steps


def _timed(of_case: Mapping[str, Result], contenders: Sequence[str], phase: str) -> Result | None:
    """The result of the first of these contenders that was timed."""
    known = (of_case[name] for name in contenders if name in of_case)
    return next((one for one in known if (phase, "time") in one.summaries and not one.failure), None)


def _ns(result: Result, phase: str) -> float:
    return float(result.summaries[phase, "time"].median)


def sections(
    published: Published, recording: Recording, results: Mapping[Case, Sequence[Result]], name: str
) -> list[Section]:
    """The document's rows beside those of a recording, as a chart and as a table; `name` is the first anchor."""
    (phase,) = headline(recording.records) or ("",)
    rows = list(beside(published, results, phase))
    notes = [
        "; ".join(filter(None, (row.row.time_steps and f"{row.row.time_steps} time steps", row.row.note)))
        for row in rows
    ]
    case = next((row.case for row in rows if row.case), None)
    work = f"{case_words.kind(case)}, {case_words.sizes(case)}, on " if case else ""
    where = f"{work}{wording.model(recording)}, {measured(recording)}"
    columns = ["row of the document", "s", "ratio", "here", f"{phase} ms here", "ratio here", "verdict"]
    columns += ["what is different"] if any(notes) else []
    lines = [
        [
            row.name,
            "-" if row.row.value is None else f"{row.row.value:.3g}",
            span(row.group.ratio(row.row)),
            row.contender,
            span([ns / MS for ns in row.times_ns]),
            span(row.ratios),
            row.word or "not run",
            *([note or "-"] if any(notes) else []),
        ]
        for row, note in zip(rows, notes, strict=True)
    ]
    numbers = (columns[1], columns[2], columns[4], columns[5])
    table = Table(columns, lines, numbers=numbers, leaving=["s", "what is different", "verdict", columns[4]])
    about = " ".join(published.about.split())
    sentences = [f"{about} Source: {published.source}. Here: {where}."]
    shown = [row for row in rows if row.ratios and row.word in SAME] or rows
    return [
        Section(name, f"As published: {published.title}", sentences, charts=[_chart(shown, name)]),
        Section(f"{name}-rows", "Its rows, and the same rows here", tables=[table]),
    ]


def span(values: Sequence[float]) -> str:
    """The least and the largest number, or one if they are written alike; "-" for none."""
    ends = dict.fromkeys(number(each) for each in (min(values), max(values))) if values else {}
    return " to ".join(ends) or "-"


def _chart(rows: Sequence[Beside], name: str) -> Chart:
    """The ratios of each row, published and here."""
    points = [
        {"row": row.name, "library": where, "low": min(ends), "high": max(ends), "shown": span(ends)}
        for row in rows
        for where, ends in ((PUBLISHED, row.group.ratio(row.row)), (HERE, row.ratios if row.word in SAME else ()))
        if ends
    ]
    order = [row.name for row in rows]
    title = "Ratios as published, and here"
    return Chart(
        name=f"{name}-ratios",
        title=title,
        words=f"{title}, to the first row of each group: {len(order)} rows.",
        specification=style.specification(_draw(points, order), style.ROW * len(order) + 14),
        table=Table(
            ["row", "where", "ratio"], [[str(one[key]) for key in ("row", "library", "shown")] for one in points], 2
        ),
    )


def _draw(points: list[dict[str, Any]], order: list[str]) -> Any:
    scale = style.logarithmic([point[end] for point in points for end in ("low", "high")])
    axis = alt.Axis(title=None, labelPadding=6, ticks=False, domain=False)
    y = alt.Y("row:N", sort=None, scale=alt.Scale(domain=order), axis=axis)
    both = [PUBLISHED, HERE]
    colour, shape = style.color(both, both), style.shape(both, both)
    tips = style.tooltip(row="row:N", where="library:N", ratio="shown:N")
    low = alt.X("low:Q", scale=scale, axis=alt.Axis(title="ratio, above 1 is slower", format="~g", tickCount=5))
    high = alt.X("high:Q", scale=scale)
    drawn = alt.Chart(style.data(points))
    return style.layered(
        drawn.mark_rule(strokeWidth=2).encode(low, alt.X2("high:Q"), y, colour),
        *(
            drawn.mark_point(size=70, filled=True, opacity=1).encode(x, y, colour, shape, tooltip=tips)
            for x in (low, high)
        ),
    )
