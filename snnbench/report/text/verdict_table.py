"""The table of verdicts: the result of verification for each contender in each case."""

from collections.abc import Iterable
from typing import Any

from snnbench.analysis.metrics import distance_checks, gradient_errors
from snnbench.cases.case import Case
from snnbench.recording.record import Record
from snnbench.report.section import Table
from snnbench.report.text.table import escaped, markdown

TEXTS = ("library", "version", "profile", "surrogate", "layers", "dtype", "device", "verdict")
STEPS = ("t", "current", "u", "expected", "got")
COLUMNS = (*TEXTS, "spikes off", "gradients off by")


def table(records: Iterable[Record]) -> str:
    """Markdown: a row for each case that ran; below, the reasons of skipped cases and remarks on the others."""
    ordered = sorted(records, key=lambda record: (record.label, *_case_order(record.case)))
    rows = [_row(record) for record in ordered if record.status != "skipped"]
    remarks: dict[str, list[str]] = {}
    for record in ordered:
        if sentence := remark(record):
            where = remarks.setdefault(f"{subject(record)}: {sentence}", [])
            profile = record.case.profile
            where += [profile] if profile not in where else []
    parts = [markdown(Table(COLUMNS, rows, len(TEXTS)))]
    parts += ["\n".join(f"- {escaped(remark)} ({', '.join(where)})" for remark, where in remarks.items())]
    parts += [f"{escaped(title)}:\n\n{markdown(table)}" for title, table in first_wrong(ordered)]
    return "\n\n".join(parts)


def first_wrong(records: Iterable[Record]) -> list[tuple[str, Table]]:
    """A title and a table for each contender whose spikes are wrong: the first steps of its first wrong neuron."""
    by_contender: dict[str, tuple[str, Table]] = {}
    for record in records:
        for name, check in record.checks.items() if record.outcome.kind == "incorrect" else ():
            if rows := check.get("steps"):
                title = f"{record.label}, {_work(record.case)}, {name}: its first wrong neuron"
                cells = [[f"{number:g}" for number in row] for row in rows]
                by_contender.setdefault(record.label, (title, Table(STEPS, cells, 0)))
    return list(by_contender.values())


def _row(record: Record) -> list[str]:
    case = record.case
    checks = distance_checks(record) or list(record.checks.values())
    compared, differing = (sum(check[name] for check in checks) for name in ("compared", "differing"))
    errors = gradient_errors(checks)
    word = record.outcome.verdict or record.outcome.kind
    return [
        record.label,
        record.version or "",
        _work(case),
        case.surrogate,
        str(case.sites),
        case.dtype,
        case.device,
        str(word),
        f"{differing} of {compared}" if compared else "-",
        f"{max(errors):.1e}" if errors else "-",
    ]


def subject(record: Record) -> str:
    """Of what a remark speaks: of the contender, or of a case that proves nothing about any."""
    return record.case.sizes() if record.outcome.kind == "unprovable" else record.label


def remark(record: Record) -> str:
    """Why a contender was not proved to do the work; empty if it was."""
    if record.status != "measured":
        return f"{record.outcome.kind}: {record.outcome.reason}"
    if record.outcome.inference_only:
        return f"inference only, no gradient was checked: {record.outcome.inference_only}"
    if not record.outcome.deviation:
        return ""
    complaints = [f"{name}: {complaint}" for name, check in record.checks.items() for complaint in check["complaints"]]
    own = ["held to its own rule"] if record.outcome.own_rule else []
    return "; ".join([f"deviates: {record.outcome.deviation}", *own, *complaints[:1]])


def _work(case: Case) -> str:
    """The profile, after the workload's own axes if it has some."""
    return case.kind if case.IN_KIND else case.profile


def _case_order(case: Case) -> tuple[Any, ...]:
    return _work(case), case.surrogate, case.sites, case.dtype, case.device
