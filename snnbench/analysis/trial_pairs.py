"""The pairs of trials of an A/B test: which records of the two sides count."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from snnbench.adapter.contender import label
from snnbench.analysis.cells import CONTENDED
from snnbench.cases.case import Case
from snnbench.plan.side import SIDES
from snnbench.recording.drift import DRIFTED
from snnbench.recording.record import Record

APART_S = 600.0
"""Longest time [s] from the end of one side to the start of the other within a pair. A cell may wait for another run
of snnbench on the machine."""


def in_pairs(records: Sequence[Record], with_contended: bool) -> tuple[list[Record], dict[tuple[Case, str], int]]:
    """(records that count, number of disturbed pairs left out by case and contender).

    A measured record counts if the other side of its trial was measured. Disturbed pairs are left out. If all pairs of
    a work are disturbed, they stay and their flag decides. If one side was never measured, the other side stays. Pairs
    that took turns all count.
    """
    pairs: dict[tuple[Any, ...], dict[str, Record]] = defaultdict(dict)
    works: dict[tuple[Any, ...], list[tuple[Any, ...]]] = defaultdict(list)
    for record in records:
        work = (record.case, plain_label(record), record.measure)
        if not pairs[*work, record.trial]:
            works[work].append((*work, record.trial))
        pairs[*work, record.trial][record.side] = record
    counted: list[Record] = []
    left_out: dict[tuple[Case, str], int] = {}
    for (case, name, _), trials in works.items():
        both = [list(pairs[trial].values()) for trial in trials]
        whole = [pair for pair in both if _is_whole(pair)]
        whole = [_less_common(pair) for pair in whole]
        quiet = [pair for pair in whole if with_contended or not any(CONTENDED in record.flags for record in pair)]
        failing = [[record for record in pair if record.status != "measured"] for pair in both]
        halves = (
            [] if {record.side for pair in both for record in pair if record.status == "measured"} == {*SIDES} else both
        )
        counted += [
            record for pair in ((*(quiet or whole), *failing) if whole else halves or failing) for record in pair
        ]
        if quiet and len(quiet) < len(whole):
            left_out[case, name] = len(whole) - len(quiet)
    return counted, left_out


def _less_common(pair: Sequence[Record]) -> list[Record]:
    """The pair; if both sides took turns, without `contended` and drift, which disturb either side as often."""
    if not all(one.settings.get("turns") for one in pair):
        return list(pair)
    return [replace(one, flags=[flag for flag in one.flags if flag not in (CONTENDED, DRIFTED)]) for one in pair]


def _is_whole(pair: Sequence[Record]) -> bool:
    """Whether both sides were measured, at most APART_S apart: a run may have stopped between them."""
    if len(pair) < len(SIDES) or any(one.status != "measured" or not one.started for one in pair):
        return len(pair) == len(SIDES) and all(one.status == "measured" for one in pair)
    first, second = sorted(pair, key=lambda one: one.started)
    between = datetime.fromisoformat(second.started) - datetime.fromisoformat(first.started)
    return between.total_seconds() - (second.wall_s or 0.0) <= APART_S


def plain_label(record: Record) -> str:
    """The contender's name without the side."""
    return label(record.library, record.variant)
