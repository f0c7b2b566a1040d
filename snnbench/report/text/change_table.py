"""The output of `compare`: a report, CSV, JSON, and JUnit's XML for test runners.

Each names the differing facts that were allowed, and the changes. JSON and CSV always hold the grounds of each word.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

from snnbench.analysis.compare import Comparisons
from snnbench.analysis.comparisons import METRICS, Comparison, Side
from snnbench.analysis.decision import WORDS
from snnbench.analysis.movement import Movement
from snnbench.report.section import Report, Section, Table
from snnbench.report.text.table import captions, interval, rounded, to_csv
from snnbench.report.wording import title
from snnbench.units import quantities, quantity

COLUMNS = ("word", "library", "case", "phase", "metric", "base", "new", "ratio", "interval", "reason")
NUMBERS = ("ratio", "low", "high", "p", "q")
UNCHANGED = ("same", "inconclusive")
MAX_ROWS = 20
"""A brief table of more rows leaves out comparisons of these words."""
LEGEND = "ratio: NEW over BASE; same: any change is below the limit; inconclusive: these trials cannot tell"
CSV_COLUMNS = (
    *("word", "reason", "contender", "case", "title", "phase", "metric", "unit", "base", "new", *NUMBERS),
    *("base_trials", "new_trials", "base_low", "base_high", "new_low", "new_high"),
    *("control", "explained_low", "explained_high", "allowed"),
)


def summary(comparisons: Comparisons) -> str:
    """The number of comparisons with each word, in one line."""
    counts = ", ".join(f"{count} {word}" for word, count in comparisons.counts.items() if count)
    return f"{len(comparisons.each)} comparison{'s' * (len(comparisons.each) != 1)}: {counts}"


def report(comparisons: Comparisons, explained: bool = False, is_brief: bool = False) -> Report:
    """The changes first, and a summary at the end; `explained` adds the grounds of each word.

    A brief report of many comparisons leaves out those that did not change.
    """
    common, changes = changes_of(comparisons)
    shown_rows = [
        (row, comparison)
        for number, (row, comparison) in enumerate(zip(changes.rows, comparisons.each, strict=True))
        if not is_brief or number < MAX_ROWS or comparison.word not in UNCHANGED
    ]
    hidden = Counter(comparison.word for comparison in comparisons.each) - Counter(
        comparison.word for _, comparison in shown_rows
    )
    left = ", ".join(f"{count} {word}" for word, count in hidden.items())
    about, *notes = _opening(comparisons, common)
    grounds = [f"{comparison.name}: {explanation(comparison)}" for _, comparison in shown_rows if explained]
    closing = [LEGEND, f"not listed: {left} (--format markdown lists them)"] if hidden else [LEGEND]
    shown = Section("changes", "", tables=[replace(changes, rows=[row for row, _ in shown_rows])], closing=closing)
    ending = [summary(comparisons)]
    if command := comparisons.ab_command:
        ending.append(f"To decide, run both versions in one A/B test: `{command}`")
    return Report(
        about=about, notes=notes, sections=[replace(shown, remarks=grounds)] if shown_rows else [], ending=ending
    )


def csv(comparisons: Comparisons, failing: Collection[str] = ()) -> str:
    """A row per comparison; spaces separate trials, and semicolons separate allowed facts, in every row."""
    rows = []
    for comparison in comparisons.each:
        values = _values(comparison)
        row: dict[str, Any] = {name: values[name] for name in CSV_COLUMNS if name in values}
        row |= {"case": comparison.case.key, "title": title(comparison.case), "allowed": "; ".join(comparisons.allowed)}
        low, high = values["explained"] or (None, None)
        row |= {"explained_low": low, "explained_high": high}
        for name in ("base", "new"):
            side = values[name] or {}
            row[name] = side.get("median")
            row[f"{name}_trials"] = " ".join(map(str, side.get("trials", [])))
            row |= {f"{name}_{end}": side.get("interval", {}).get(end) for end in ("low", "high")}
        rows.append(row)
    return to_csv(rows, CSV_COLUMNS)


def to_json(comparisons: Comparisons, failing: Collection[str] = ()) -> str:
    """Everything, under the names of this package's own fields."""
    limits = comparisons.thresholds
    document = {
        "base": comparisons.base,
        "new": comparisons.new,
        "allowed": comparisons.allowed,
        "changed": comparisons.changed,
        "movement": _movement(comparisons.movement),
        "ab_command": comparisons.ab_command,
        "thresholds": {name: getattr(limits, name) for name in ("time_floor", "memory_floor", "alpha")},
        "counts": comparisons.counts,
        "comparisons": [
            _values(comparison) | {"case": {"key": comparison.case.key, **comparison.case.as_dict()}}
            for comparison in comparisons.each
        ],
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def junit(comparisons: Comparisons, failing: Collection[str] = ()) -> str:
    """A test case per comparison: a failure if its word is in `failing`, skipped if nothing is known of it."""
    counts = comparisons.counts
    unknown = [word for word in WORDS[2:-1] if word not in failing]
    suite = ElementTree.Element(
        "testsuite",
        name=f"snnbench compare {comparisons.base} {comparisons.new}",
        tests=str(len(comparisons.each)),
        failures=str(sum(counts[word] for word in set(failing))),
        errors="0",
        skipped=str(sum(counts[word] for word in unknown)),
    )
    properties = ElementTree.SubElement(suite, "properties")
    machine = [comparisons.movement.sentence()] if comparisons.movement else []
    for name, lines in (("allowed", comparisons.allowed), ("changed", comparisons.changed), ("machine", machine)):
        for line in lines:
            ElementTree.SubElement(properties, "property", name=name, value=line)
    for comparison in comparisons.each:
        test = ElementTree.SubElement(suite, "testcase", classname=title(comparison.case), name=comparison.name)
        if comparison.word in failing:
            message = (
                f"{comparison.word}: {comparison.reason}"
                if comparison.ratio is None
                else f"{comparison.word}: ratio {comparison.ratio:.3f}"
            )
            ElementTree.SubElement(test, "failure", message=message, type=comparison.word)
        elif comparison.word in unknown:
            ElementTree.SubElement(test, "skipped", message=f"{comparison.word}: {comparison.reason}")
        ElementTree.SubElement(test, "system-out").text = explanation(comparison)
    if not len(properties):
        suite.remove(properties)
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def explanation(comparison: Comparison) -> str:
    """The grounds of a comparison's word: the medians of trials, the interval of their ratio, p and q."""
    parts = []
    for name, side in (("base", comparison.base), ("new", comparison.new)):
        if side:
            values = quantities(side.summary.trials, METRICS[comparison.metric])
            ends = (side.interval.low, side.interval.high) if side.interval else ()
            within = (
                f", median within {' to '.join(quantity(end, METRICS[comparison.metric]) for end in ends)}"
                if ends
                else ""
            )
            parts.append(f"{name} {values}{within}")
    if difference := comparison.difference:
        if difference.low is not None:
            parts.append(f"ratio within {interval(difference.low, difference.high)}")
        parts += ["certain: neither side varies"] if difference.certain else []
        if difference.p is not None and comparison.q is not None:
            parts.append(f"p {difference.p:.2g}, q {comparison.q:.2g}")
    if explained := comparison.explained:
        parts.append(f"the machine explains {interval(explained.low, explained.high)}")
    return "; ".join(parts) or comparison.reason


FORMATS: dict[str, Callable[[Comparisons, Collection[str]], str]] = {"csv": csv, "json": to_json, "junit": junit}


def _opening(comparisons: Comparisons, common: str) -> list[str]:
    """The lines above the table: how to read a ratio, the machine, the common part of all rows, allowed facts."""
    lines = [f"{comparisons.new} over {comparisons.base}: above 1 is slower, or more memory"]
    if comparisons.movement:
        lines += [comparisons.movement.sentence()]
    lines += [f"all comparisons: {common}"]
    lines += [f"allowed: {fact}" for fact in comparisons.allowed]
    return lines + [f"changed: {line}" for line in comparisons.changed]


def changes_of(comparisons: Comparisons) -> tuple[str, Table]:
    """The common part of all cases, and a table with a row per comparison; a single case has no column."""
    common, own = captions({comparison.case: None for comparison in comparisons.each})
    columns = COLUMNS if any(own.values()) else tuple(name for name in COLUMNS if name != "case")
    rows = []
    for comparison in comparisons.each:
        difference = comparison.difference
        texts = {
            "word": comparison.word,
            "library": comparison.contender,
            "case": own[comparison.case],
            "phase": comparison.phase or "-",
            "metric": comparison.metric.replace("_", " ") or "-",
            "base": _shown(comparison.base, comparison.metric),
            "new": _shown(comparison.new, comparison.metric),
            "ratio": "-" if comparison.ratio is None else f"{comparison.ratio:.3f}",
            "interval": interval(difference.low, difference.high) if difference else "-",
            "reason": comparison.reason,
        }
        rows.append([texts[name] for name in columns])
    leaving = ("interval", "reason", "base", "new")
    return common, Table(columns, rows, numbers=("base", "new", "ratio"), leaving=leaving)


def _shown(side: Side | None, metric: str) -> str:
    return quantity(side.summary.median, METRICS[metric]) if side else "-"


def _values(comparison: Comparison) -> dict[str, Any]:
    difference = comparison.difference
    return {
        "word": comparison.word,
        "reason": comparison.reason,
        "contender": comparison.contender,
        "phase": comparison.phase,
        "metric": comparison.metric,
        "unit": METRICS.get(comparison.metric, ""),
        "base": _of_side(comparison.base),
        "new": _of_side(comparison.new),
        **{name: rounded(getattr(difference, name, None)) for name in NUMBERS[:-1]},
        "q": rounded(comparison.q),
        "control": rounded(comparison.explained.control if comparison.explained else None),
        "explained": [rounded(comparison.explained.low), rounded(comparison.explained.high)]
        if comparison.explained
        else None,
    }


def _movement(movement: Movement | None) -> dict[str, Any] | None:
    if movement is None:
        return None
    probes = {name: rounded(ratio) for name, ratio in movement.probes.items()}
    return {"probes": probes, "control": rounded(movement.control)}


def _of_side(side: Side | None) -> dict[str, Any] | None:
    if side is None:
        return None
    document: dict[str, Any] = {"median": side.summary.median, "trials": list(side.summary.trials)}
    return document | ({"interval": {"low": side.interval.low, "high": side.interval.high}} if side.interval else {})
