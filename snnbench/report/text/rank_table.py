"""The output of `rank`: a report, CSV and JSON."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from snnbench import measures
from snnbench.analysis.rank import Entry, Mean, Ranked, Ranking
from snnbench.report.numbers import gathered
from snnbench.report.section import Report, Section, Table
from snnbench.report.text.table import captions, interval, rounded, to_csv
from snnbench.report.wording import title
from snnbench.units import quantities, quantity

METRICS = {"time": measures.Ranked("ns", "times", "slower", "faster"), **measures.ranked()}
"""The metrics that are ranked: their unit, their name for several, and the words of a test."""

LEGEND = (
    "rank: {one_rank} of that rank; ratio: {metric} over that of {baseline}",
    "interval: of the ratio; word: the verdict of the test against {baseline}",
)
CSV_COLUMNS = (
    *("case", "title", "phase", "rank", "contender", "{0}", "low_{1}", "high_{1}", "trials_{1}"),
    *("ratio", "low", "high", "p", "q", "word", "reason"),
)
"""{0} is the metric with its unit, {1} the unit."""


def report(ranked: Ranked) -> Report:
    """A table for each case and phase, the contenders without a rank, and means of ratios over several cases."""
    common, own = captions({ranking.case: None for ranking in ranked.rankings})
    names = {"baseline": ranked.baseline, "metric": ranked.metric, "one_rank": one_rank(ranked.metric)}
    apart, headings, tables = [], [], []
    for ranking in ranked.rankings:
        heading = ", ".join(part for part in (ranking.phase, own[ranking.case]) if part)
        headings.append(heading)
        apart += [(heading, f"{name}: not ranked: {reason}") for name, reason in ranking.apart]
        if ranking.entries:
            tables.append(replace(ranking_table(ranking, ranked.baseline, ranked.metric), caption=heading))
    means = [mean for mean in ranked.means if mean.known > 1]
    lacking = [f"{_heading(mean)}: no contender has all cases" for mean in means if not mean.ratios]
    lines = [f"all cases: {common}", ranked.lacking, *(f"allowed: {fact}" for fact in ranked.allowed)]
    return Report(
        ranked.recording,
        f"{METRICS[ranked.metric].plural} over those of {ranked.baseline}",
        [line for line in lines if line],
        [
            Section("ranks", "", tables=tables, closing=[line.format(**names) for line in LEGEND] if tables else ()),
            Section("apart", "", remarks=gathered(apart, headings)),
            Section("means", "", tables=[_mean_table(mean) for mean in means if mean.ratios], remarks=lacking),
        ],
    )


def csv(ranked: Ranked) -> str:
    """A row for each contender in each case and phase, ranked or not."""
    rows = []
    for ranking in ranked.rankings:
        shared = {"case": ranking.case.key, "title": title(ranking.case), "phase": ranking.phase}
        for entry in ranking.entries:
            row = _of_entry(entry, ranked.metric)
            trials = f"trials_{METRICS[ranked.metric].unit}"
            rows.append(shared | row | {trials: " ".join(map(str, row[trials]))})
        rows += [shared | {"contender": name, "reason": reason} for name, reason in ranking.apart]
    unit = METRICS[ranked.metric].unit
    return to_csv(rows, [column.format(f"{ranked.metric}_{unit}", unit) for column in CSV_COLUMNS])


def to_json(ranked: Ranked) -> str:
    """Everything, under the names of this package's own fields."""
    rankings = [
        {
            "case": {"key": one.case.key} | one.case.as_dict(),
            "phase": one.phase,
            "places": [_of_entry(entry, ranked.metric) for entry in one.entries],
            "apart": [{"contender": name, "reason": reason} for name, reason in one.apart],
        }
        for one in ranked.rankings
    ]
    means = [
        {"of": list(one.of), "phase": one.phase, "cases": one.cases, "known": one.known, "lacking": one.lacking}
        | {"ratios": {name: rounded(ratio) for name, ratio in one.ratios.items()}}
        for one in ranked.means
    ]
    document: dict[str, Any] = {"recording": ranked.recording, "baseline": ranked.baseline, "allowed": ranked.allowed}
    document |= {"lacking": ranked.lacking} if ranked.lacking else {}
    document |= {"rankings": rankings, "means": means}
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


FORMATS: dict[str, Callable[[Ranked], str]] = {"csv": csv, "json": to_json}


def _heading(mean: Mean) -> str:
    """What a mean is of, the number of its cases, and the contenders that lack cases."""
    absent = ", ".join(f"{name} lacks {count}" for name, count in mean.lacking.items())
    cases = f"{mean.cases} of {mean.known} cases" + (f" ({absent})" if absent else "")
    return f"geometric mean of ratios: {mean.phase}, {', '.join(mean.of)}, {cases}"


def _mean_table(mean: Mean) -> Table:
    rows = [(name, f"{ratio:.3f}") for name, ratio in sorted(mean.ratios.items(), key=lambda item: item[1])]
    return Table(("library", "ratio"), rows, caption=_heading(mean), bars="ratio")


def one_rank(metric: str) -> str:
    """What contenders of one rank have in common."""
    compared = "is slower than another" if metric == "time" else "takes more than another"
    return f"no contender in a rank {compared}"


def ranking_table(ranking: Ranking, baseline: str, metric: str = "time") -> Table:
    """A row for each timed contender of one case and phase."""
    rows = []
    for entry in ranking.entries:
        difference = entry.comparison.difference if entry.comparison else None
        ratio = "1" if entry.contender == baseline else "-"
        if difference and difference.ratio is not None:
            ratio = f"{difference.ratio:.3f}"
        within = interval(difference.low, difference.high) if difference else "-"
        rows.append(
            (
                "-" if entry.rank is None else str(entry.rank),
                entry.contender,
                quantity(entry.side.summary.median, METRICS[metric].unit),
                ratio,
                within,
                _word(entry, metric),
                quantities(entry.side.summary.trials, METRICS[metric].unit),
                _reason(entry),
            )
        )
    columns = ("rank", "library", metric, "ratio", "interval", "word", "trials", "reason")
    leaving = ("trials", "reason", "interval", "word")
    return Table(columns, rows, numbers=("rank", metric, "ratio"), leaving=leaving, bars="ratio")


def _word(entry: Entry, metric: str) -> str:
    word = entry.comparison.word if entry.comparison else "baseline"
    return {"slower": METRICS[metric].slower, "faster": METRICS[metric].faster}.get(word, word)


def _reason(entry: Entry) -> str:
    return "; ".join(part for part in (entry.comparison.reason if entry.comparison else "", entry.reason) if part)


def _of_entry(entry: Entry, metric: str) -> dict[str, Any]:
    difference = entry.comparison.difference if entry.comparison else None
    low, high = entry.interval or (None, None)
    unit = METRICS[metric].unit
    return {
        "rank": entry.rank,
        "contender": entry.contender,
        f"{metric}_{unit}": entry.side.summary.median,
        f"low_{unit}": rounded(low),
        f"high_{unit}": rounded(high),
        f"trials_{unit}": list(entry.side.summary.trials),
        "ratio": rounded(difference.ratio) if difference else (None if entry.comparison else 1.0),
        **{name: rounded(getattr(difference, name, None)) for name in ("low", "high", "p")},
        "q": rounded(entry.comparison.q) if entry.comparison else None,
        "word": _word(entry, metric),
        "reason": _reason(entry),
    }
