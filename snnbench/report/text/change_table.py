"""The output of `compare`: a report, CSV, JSON, and JUnit's XML for test runners.

Each names the differing facts that were allowed, and the changes. JSON and CSV always hold the grounds of each word.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

from snnbench.analysis.cells import METRICS, ComparedCell, Side
from snnbench.analysis.compare import Comparison
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
"""A brief table of more rows leaves out cells of these words."""
LEGEND = "ratio: NEW over BASE; same: any change is below the limit; inconclusive: these trials cannot tell"
CSV_COLUMNS = (
    *("word", "reason", "contender", "case", "title", "phase", "metric", "unit", "base", "new", *NUMBERS),
    *("base_trials", "new_trials", "base_low", "base_high", "new_low", "new_high"),
    *("control", "explained_low", "explained_high", "allowed"),
)


def summary(comparison: Comparison) -> str:
    """The number of comparisons with each word, in one line."""
    counts = ", ".join(f"{count} {word}" for word, count in comparison.counts.items() if count)
    return f"{len(comparison.cells)} comparison{'s' * (len(comparison.cells) != 1)}: {counts}"


def report(comparison: Comparison, explained: bool = False, is_brief: bool = False) -> Report:
    """The changes first, and a summary at the end; `explained` adds the grounds of each word.

    A brief report of many cells leaves out those that did not change.
    """
    common, changes = changes_of(comparison)
    cells = [
        (row, cell)
        for number, (row, cell) in enumerate(zip(changes.rows, comparison.cells, strict=True))
        if not is_brief or number < MAX_ROWS or cell.word not in UNCHANGED
    ]
    hidden = Counter(cell.word for cell in comparison.cells) - Counter(cell.word for _, cell in cells)
    left = ", ".join(f"{count} {word}" for word, count in hidden.items())
    about, *notes = _opening(comparison, common)
    grounds = [f"{cell.name}: {explanation(cell)}" for _, cell in cells if explained]
    closing = [LEGEND, f"not listed: {left} (--format markdown lists them)"] if hidden else [LEGEND]
    shown = Section("changes", "", tables=[replace(changes, rows=[row for row, _ in cells])], closing=closing)
    ending = [summary(comparison)]
    if command := comparison.ab_command:
        ending.append(f"To decide, run both versions in one A/B test: `{command}`")
    return Report(about=about, notes=notes, sections=[replace(shown, remarks=grounds)] if cells else [], ending=ending)


def csv(comparison: Comparison, failing: Collection[str] = ()) -> str:
    """A row per cell; spaces separate trials, and semicolons separate allowed facts, in every row."""
    rows = []
    for cell in comparison.cells:
        cells = _cell(cell)
        row: dict[str, Any] = {name: cells[name] for name in CSV_COLUMNS if name in cells}
        row |= {"case": cell.case.key, "title": title(cell.case), "allowed": "; ".join(comparison.allowed)}
        low, high = cells["explained"] or (None, None)
        row |= {"explained_low": low, "explained_high": high}
        for name in ("base", "new"):
            side = cells[name] or {}
            row[name] = side.get("median")
            row[f"{name}_trials"] = " ".join(map(str, side.get("trials", [])))
            row |= {f"{name}_{end}": side.get("interval", {}).get(end) for end in ("low", "high")}
        rows.append(row)
    return to_csv(rows, CSV_COLUMNS)


def to_json(comparison: Comparison, failing: Collection[str] = ()) -> str:
    """Everything, under the names of this package's own fields."""
    limits = comparison.thresholds
    document = {
        "base": comparison.base,
        "new": comparison.new,
        "allowed": comparison.allowed,
        "changed": comparison.changed,
        "movement": _movement(comparison.movement),
        "ab_command": comparison.ab_command,
        "thresholds": {name: getattr(limits, name) for name in ("time_floor", "memory_floor", "alpha")},
        "counts": comparison.counts,
        "cells": [_cell(cell) | {"case": {"key": cell.case.key, **_fields(cell)}} for cell in comparison.cells],
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def junit(comparison: Comparison, failing: Collection[str] = ()) -> str:
    """A test case per cell: a failure if its word is in `failing`, skipped if nothing is known of it."""
    counts = comparison.counts
    unknown = [word for word in WORDS[2:-1] if word not in failing]
    suite = ElementTree.Element(
        "testsuite",
        name=f"snnbench compare {comparison.base} {comparison.new}",
        tests=str(len(comparison.cells)),
        failures=str(sum(counts[word] for word in set(failing))),
        errors="0",
        skipped=str(sum(counts[word] for word in unknown)),
    )
    properties = ElementTree.SubElement(suite, "properties")
    machine = [comparison.movement.sentence()] if comparison.movement else []
    for name, lines in (("allowed", comparison.allowed), ("changed", comparison.changed), ("machine", machine)):
        for line in lines:
            ElementTree.SubElement(properties, "property", name=name, value=line)
    for cell in comparison.cells:
        test = ElementTree.SubElement(suite, "testcase", classname=title(cell.case), name=cell.name)
        if cell.word in failing:
            message = f"{cell.word}: {cell.reason}" if cell.ratio is None else f"{cell.word}: ratio {cell.ratio:.3f}"
            ElementTree.SubElement(test, "failure", message=message, type=cell.word)
        elif cell.word in unknown:
            ElementTree.SubElement(test, "skipped", message=f"{cell.word}: {cell.reason}")
        ElementTree.SubElement(test, "system-out").text = explanation(cell)
    if not len(properties):
        suite.remove(properties)
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def explanation(cell: ComparedCell) -> str:
    """The grounds of a cell's word: the medians of trials, the interval of their ratio, p and q."""
    parts = []
    for name, side in (("base", cell.base), ("new", cell.new)):
        if side:
            values = quantities(side.summary.trials, METRICS[cell.metric])
            ends = (side.interval.low, side.interval.high) if side.interval else ()
            within = (
                f", median within {' to '.join(quantity(end, METRICS[cell.metric]) for end in ends)}" if ends else ""
            )
            parts.append(f"{name} {values}{within}")
    if difference := cell.difference:
        if difference.low is not None:
            parts.append(f"ratio within {interval(difference.low, difference.high)}")
        parts += ["certain: neither side varies"] if difference.certain else []
        if difference.p is not None and cell.q is not None:
            parts.append(f"p {difference.p:.2g}, q {cell.q:.2g}")
    if explained := cell.explained:
        parts.append(f"the machine explains {interval(explained.low, explained.high)}")
    return "; ".join(parts) or cell.reason


FORMATS: dict[str, Callable[[Comparison, Collection[str]], str]] = {"csv": csv, "json": to_json, "junit": junit}


def _opening(comparison: Comparison, common: str) -> list[str]:
    """The lines above the table: how to read a ratio, the machine, the common part of all rows, allowed facts."""
    lines = [f"{comparison.new} over {comparison.base}: above 1 is slower, or more memory"]
    if comparison.movement:
        lines += [comparison.movement.sentence()]
    lines += [f"all comparisons: {common}"]
    lines += [f"allowed: {fact}" for fact in comparison.allowed]
    return lines + [f"changed: {line}" for line in comparison.changed]


def changes_of(comparison: Comparison) -> tuple[str, Table]:
    """The common part of all cases, and a table with a row per cell; a single case has no column."""
    common, own = captions({cell.case: None for cell in comparison.cells})
    columns = COLUMNS if any(own.values()) else tuple(name for name in COLUMNS if name != "case")
    rows = []
    for cell in comparison.cells:
        difference = cell.difference
        texts = {
            "word": cell.word,
            "library": cell.contender,
            "case": own[cell.case],
            "phase": cell.phase or "-",
            "metric": cell.metric.replace("_", " ") or "-",
            "base": _shown(cell.base, cell.metric),
            "new": _shown(cell.new, cell.metric),
            "ratio": "-" if cell.ratio is None else f"{cell.ratio:.3f}",
            "interval": interval(difference.low, difference.high) if difference else "-",
            "reason": cell.reason,
        }
        rows.append([texts[name] for name in columns])
    leaving = ("interval", "reason", "base", "new")
    return common, Table(columns, rows, numbers=("base", "new", "ratio"), leaving=leaving)


def _shown(side: Side | None, metric: str) -> str:
    return quantity(side.summary.median, METRICS[metric]) if side else "-"


def _fields(cell: ComparedCell) -> dict[str, Any]:
    return cell.case.as_dict()


def _cell(cell: ComparedCell) -> dict[str, Any]:
    difference = cell.difference
    return {
        "word": cell.word,
        "reason": cell.reason,
        "contender": cell.contender,
        "phase": cell.phase,
        "metric": cell.metric,
        "unit": METRICS.get(cell.metric, ""),
        "base": _of_side(cell.base),
        "new": _of_side(cell.new),
        **{name: rounded(getattr(difference, name, None)) for name in NUMBERS[:-1]},
        "q": rounded(cell.q),
        "control": rounded(cell.explained.control if cell.explained else None),
        "explained": [rounded(cell.explained.low), rounded(cell.explained.high)] if cell.explained else None,
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
