"""The table of verdicts: what verification found of each contender in each case."""

from collections.abc import Iterable
from typing import Any

from snnbench.case import Case
from snnbench.record import Record
from snnbench.tidy import contender

HEADER = (
    "| library | version | profile | layers | dtype | device | verdict | spikes compared | gradients off by |"
)


def table(records: Iterable[Record]) -> str:
    """Markdown, with the reason of what was not verified below."""
    ordered = sorted(records, key=lambda record: (contender(record), *_case_order(Case(**record.case))))
    lines = [HEADER, "|" + " --- |" * 7 + " ---: |" * 2, *(_line(record) for record in ordered)]
    reasons: dict[str, list[str]] = {}
    for record in ordered:
        if record.status != "measured":
            what = f"{contender(record)}: {record.outcome['kind']}: {record.outcome['reason']}"
            where = Case(**record.case).profile
            reasons.setdefault(what, [])
            reasons[what] += [where] if where not in reasons[what] else []
    return "\n".join([*lines, "", *(f"- {what} ({', '.join(where)})" for what, where in reasons.items())])


def _line(record: Record) -> str:
    case = Case(**record.case)
    compared = sum(check["compared"] for check in record.checks.values())
    errors = [error for check in record.checks.values() for error in check["gradient_errors"].values()]
    found = record.outcome.get("verdict") or record.outcome["kind"]
    cells: list[Any] = [contender(record), record.version or "", case.profile, case.layers, case.dtype, case.device]
    cells += [found, compared or "-", f"{max(errors):.1e}" if errors else "-"]
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _case_order(case: Case) -> tuple[Any, ...]:
    return case.profile, case.layers, case.dtype, case.device
