"""The output of `verify`: the verdict on each contender in each case or profile, and the reasons."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from snnbench.analysis.metrics import distance_checks, gradient_errors
from snnbench.cases.case import PROFILES, Case
from snnbench.recording.record import Record
from snnbench.report.numbers import gathered
from snnbench.report.section import Report, Section, Table
from snnbench.report.text import exchange_table
from snnbench.report.wording import telling
from snnbench.worker.messages import EXCHANGES

TEXTS = ("library", "version", "profile", "surrogate", "layers", "dtype", "device", "verdict")
STEPS = ("t", "current", "u", "expected", "got")
COLUMNS = (*TEXTS, "spikes off", "gradients off by")
TOLD = ("surrogate", "layers", "dtype", "device")
"""Fields of a case that have a column."""
WORST_FIRST = ("deviates", "equivalent", "exact")
"""Verdicts; a kind of failure or skip is worse than all of them."""
LEGEND = (
    "exact: spikes and gradients are the reference's; equivalent: within what its number format allows",
    "deviates: by a difference that it declares; a number counts cases if those of a profile differ",
)


def report(records: Sequence[Record], is_brief: bool = False) -> Report:
    """A row for each case that ran, or in brief for each contender; below, why some were not proved to do the work.

    Importers and exporters of NIR graphs have a section of their own.
    """
    exchanges = [record for record in records if record.measure in EXCHANGES]
    records = [record for record in records if record.measure not in EXCHANGES]
    ordered = sorted(records, key=lambda record: (record.label, *_case_order(record.case)))
    remarks = [(record.case.profile, f"{subject(record)}: {text}") for record in ordered if (text := remark(record))]
    once = list(dict.fromkeys(sentence for _, sentence in remarks))  # a brief table says in which profiles
    sentences = once if is_brief else gathered(remarks, (record.case.profile for record in ordered))
    shown = matrix(ordered) if is_brief else _table([record for record in ordered if record.status != "skipped"])
    counts = Counter(str(record.outcome.verdict or record.outcome.kind) for record in ordered)
    return Report(
        sections=[
            Section("verdicts", "", tables=[shown], closing=LEGEND if is_brief else (), remarks=sentences),
            Section("first-wrong", "", tables=first_wrong(ordered)),
            *([exchange_table.section(exchanges)] if exchanges else []),
        ],
        ending=[f"{len(ordered)} cases: {', '.join(f'{count} {word}' for word, count in counts.most_common())}"],
    )


def _table(records: Sequence[Record]) -> Table:
    """A row for each case; a further column names the fields in which cases differ that have no column."""
    cases, rows = {record.case for record in records}, [_row(record) for record in records]
    differences = [telling(record.case, cases, TOLD) for record in records]
    if not any(differences):
        return Table(COLUMNS, rows, len(TEXTS))
    place = TEXTS.index("profile") + 1
    columns, *rows = (
        [*row[:place], words, *row[place:]] for words, row in zip(("case", *differences), (COLUMNS, *rows), strict=True)
    )
    return Table(columns, rows, len(TEXTS) + 1)


def matrix(records: Sequence[Record]) -> Table:
    """The verdict of each contender in each profile."""
    profiles = sorted({record.case.profile for record in records}, key=list(PROFILES).index)
    versions = {record.label: record.version for record in records if record.version}
    rows = []
    for label in dict.fromkeys(record.label for record in records):
        of_label = [record for record in records if record.label == label]
        verdicts = [_word([one for one in of_label if one.case.profile == profile]) for profile in profiles]
        rows.append([label, versions.get(label, ""), *verdicts])
    columns = ("library", "version", *profiles)
    return Table(columns, rows, texts=len(columns), leaving=("version",))


def first_wrong(records: Iterable[Record]) -> list[Table]:
    """A table for each contender whose spikes are wrong: the first steps of its first wrong neuron."""
    by_contender: dict[str, Table] = {}
    for record in records:
        for name, check in record.checks.items() if record.outcome.kind == "incorrect" else ():
            if rows := check.get("steps"):
                title = f"{record.label}, {_work(record.case)}, {name}: its first wrong neuron"
                cells = [[f"{number:g}" for number in row] for row in rows]
                by_contender.setdefault(record.label, Table(STEPS, cells, 0, title))
    return list(by_contender.values())


def _word(records: Iterable[Record]) -> str:
    """The worst result of some cases, and the counts of others if they differ."""
    counts = Counter(str(record.outcome.verdict or record.outcome.kind) for record in records)
    words = sorted(counts, key=lambda word: WORST_FIRST.index(word) if word in WORST_FIRST else -1)
    if len(words) < 2:
        return words[0] if words else "-"
    return ", ".join(f"{word} {counts[word]}" for word in words)


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
