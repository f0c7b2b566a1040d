"""How a library's times grow with each size, over the newest recordings that sweep it: a sentence, and charts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import NamedTuple

from snnbench.analysis.case_words import kind
from snnbench.analysis.exponent import Exponent
from snnbench.cases.case import Case
from snnbench.recording.reading import Recording
from snnbench.report import wording
from snnbench.report.charts import lines
from snnbench.report.numbers import counted
from snnbench.report.overview import Overview, find
from snnbench.report.page import scaling
from snnbench.report.section import Chart, Section
from snnbench.report.site.catalogue import narrowed

TITLE = "How its times grow"
CHARTS = 8
"""The most charts of growth on a page."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """The library's part of a recording that sweeps a size of it, and the section of its exponents."""

    overview: Overview
    section: Section


class Fitted(NamedTuple):
    """An exponent of the headline phase: of a contender in cases that differ in one size."""

    fit: Exponent
    contender: str
    cases: Sequence[Case]
    phase: str

    @property
    def name(self) -> str:
        """`spikingjelly/auto, train, reset to zero, CPU`."""
        return f"{self.contender}, {self.phase}, {kind(self.cases[0])}"


def sweeps(recordings: Sequence[Recording], library: str) -> list[Sweep]:
    """The library's part of every recording that sweeps a size of it over enough values."""
    swept_parts = []
    for recording in recordings:
        records = [record for record in recording.records if record.library == library]
        settings = wording.settings({record.case: None for record in records})
        swept = [wording.swept(cases, axis) for cases in settings.values() for axis in wording.axes(cases)]
        if not recording.sides and any(swept):
            overview = find(narrowed(recording, records))
            swept_parts.append(Sweep(overview, scaling.section(overview)))
    return swept_parts


def section(known: Sequence[Sweep]) -> Section:
    """A sentence on each size, and charts of the sweeps."""
    answers = list(_answers(known))
    if not answers:
        return Section("growth", TITLE, ["No recording sweeps a size of this library over three values or more."])
    about = (
        "An exponent of 1 means that twice the size takes twice the time. That between the two largest sizes says most "
        "of sizes beyond."
    )
    charts = (
        replace(chart, name=f"growth-{number}-{chart.name}", title=f"{chart.title}, {sweep.overview.recording.name}")
        for number, sweep in enumerate(known, start=1)
        for chart in chain(_lines(sweep.overview), sweep.section.charts)
    )
    remarks = dict.fromkeys(remark for sweep in known for remark in sweep.section.remarks)
    return Section("growth", TITLE, [about], answers, list(remarks), charts=list(islice(charts, CHARTS)))


def exponents(known: Sequence[Sweep]) -> Section:
    """Every exponent of these sweeps, of which there is at least one."""
    tables = [
        replace(table, caption=f"{sweep.overview.recording.name}. {table.caption}")
        for sweep in known
        for table in sweep.section.tables
    ]
    return Section(
        "exponents", "Every exponent", known[0].section.sentences, tables=tables, brief="exponents of every sweep"
    )


def _answers(known: Sequence[Sweep]) -> Iterator[tuple[str, str]]:
    """For each size the least and the largest exponent."""
    overviews = [sweep.overview for sweep in known]
    for axis in dict.fromkeys(axis for overview in overviews for axis in wording.axes(overview.cases)):
        fitted = [
            Fitted(fit, contender, cases, overview.headline)
            for overview in overviews
            for cases in _families(overview, axis)
            for contender, fit in scaling.fits(overview, cases, axis, overview.headline).items()
        ]
        if not fitted:
            continue
        sizes = [wording.size(case, axis) for each in fitted for case in (each.cases[0], each.cases[-1])]
        letter, words = fitted[0].cases[0].SIZES[axis]
        lasts = [each.fit.last for each in fitted]
        extremes = [choose(fitted, key=lambda each: each.fit.value) for choose in (min, max)]
        ends = " to ".join(dict.fromkeys(f"{each.fit.value:.2f} ({each.name})" for each in extremes))
        last = " to ".join(dict.fromkeys(f"{end:.2f}" for end in (min(lasts), max(lasts))))
        yield (
            f"{words} {letter}, {min(sizes)} to {max(sizes)}",
            f"The exponent is {ends}, and {last} between the two largest sizes; {counted(len(fitted), 'sweep')}. The "
            f"work itself has the exponent {fitted[0].cases[0].growth(axis)}.",
        )


def _families(overview: Overview, axis: str) -> list[list[Case]]:
    families = (wording.swept(cases, axis) for cases in overview.settings.values())
    return [cases for cases in families if overview.headline and overview.timed(cases)]


def _lines(overview: Overview) -> Iterator[Chart]:
    """A chart of times against the main size for each setting that sweeps it."""
    for number, cases in enumerate(overview.settings.values(), start=1):
        axis = wording.main_axis(cases[0])
        if overview.headline and overview.timed(family := wording.swept(cases, axis)):
            yield lines.against(overview, family, axis, overview.headline, f"time-{number}")
