"""The output of `rank`: tables in Markdown, CSV and JSON."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from snnbench import measures
from snnbench.analysis.rank import Entry, Mean, Ranked, Ranking
from snnbench.report.section import Table
from snnbench.report.text import table as tables
from snnbench.report.text.table import captions, interval, rounded, to_csv
from snnbench.report.wording import title
from snnbench.units import quantities, quantity

METRICS = {"time": measures.Ranked("ns", "times", "slower", "faster"), **measures.ranked()}
"""The metrics that are ranked: their unit, their name for several, and the words of a test."""

CSV_COLUMNS = (
    *("case", "title", "phase", "rank", "contender", "{0}", "low_{1}", "high_{1}", "trials_{1}"),
    *("ratio", "low", "high", "p", "q", "word", "reason"),
)
"""{0} is the metric with its unit, {1} the unit."""


def markdown(ranked: Ranked) -> str:
    """The rankings in Markdown."""
    return "\n".join(_lines(ranked))


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


FORMATS: dict[str, Callable[[Ranked], str]] = {"table": markdown, "markdown": markdown, "csv": csv, "json": to_json}


def _lines(ranked: Ranked) -> Iterator[str]:
    common, own = captions({ranking.case: None for ranking in ranked.rankings})
    plural = METRICS[ranked.metric].plural
    yield f"{ranked.recording}: {plural} over those of {ranked.baseline}; {one_rank(ranked.metric)}"
    yield f"\nall cases: {common}"
    facts = [*([ranked.lacking] if ranked.lacking else []), *(f"allowed: {fact}" for fact in ranked.allowed)]
    yield from (f"\n{fact}" for fact in facts)
    for ranking in ranked.rankings:
        heading = ", ".join(part for part in (ranking.phase, own[ranking.case]) if part)
        yield f"\n### {heading or 'not timed'}\n"
        if ranking.entries:
            yield tables.markdown(ranking_table(ranking, ranked.baseline, ranked.metric))
        yield from ([""] if ranking.entries and ranking.apart else [])
        yield from (f"- not ranked: {name}: {reason}" for name, reason in ranking.apart)
    for mean in ranked.means:
        yield f"\n### geometric mean of ratios: {mean.phase}, {', '.join(mean.of)}: {_of(mean)}"
        if mean.ratios:
            yield ""
            rows = [(name, f"{ratio:.3f}") for name, ratio in sorted(mean.ratios.items(), key=lambda item: item[1])]
            yield tables.markdown(Table(("library", "ratio"), rows))
    yield ""


def _of(mean: Mean) -> str:
    """The number of cases of a mean, and the contenders that lack cases."""
    absent = ", ".join(f"{name} lacks {count}" for name, count in mean.lacking.items())
    return f"n = {mean.cases} of {mean.known} cases" + (f" ({absent})" if absent else "")


def one_rank(metric: str) -> str:
    """What contenders of one rank have in common."""
    compared = "is slower than another" if metric == "time" else "takes more than another"
    return f"no contender in a rank {compared}"


def ranking_table(ranking: Ranking, baseline: str, metric: str = "time") -> Table:
    """A row for each timed contender of one case and phase."""
    rows = []
    for entry in ranking.entries:
        difference = entry.cell.difference if entry.cell else None
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
    word = entry.cell.word if entry.cell else "baseline"
    return {"slower": METRICS[metric].slower, "faster": METRICS[metric].faster}.get(word, word)


def _reason(entry: Entry) -> str:
    return "; ".join(part for part in (entry.cell.reason if entry.cell else "", entry.reason) if part)


def _of_entry(entry: Entry, metric: str) -> dict[str, Any]:
    difference = entry.cell.difference if entry.cell else None
    low, high = entry.interval or (None, None)
    unit = METRICS[metric].unit
    return {
        "rank": entry.rank,
        "contender": entry.contender,
        f"{metric}_{unit}": entry.side.summary.median,
        f"low_{unit}": rounded(low),
        f"high_{unit}": rounded(high),
        f"trials_{unit}": list(entry.side.summary.trials),
        "ratio": rounded(difference.ratio) if difference else (None if entry.cell else 1.0),
        **{name: rounded(getattr(difference, name, None)) for name in ("low", "high", "p")},
        "q": rounded(entry.cell.q) if entry.cell else None,
        "word": _word(entry, metric),
        "reason": _reason(entry),
    }
