"""What to know of a library before choosing it: deviations, refusals, failures, flags, memory, and its own code."""

from collections import Counter
from collections.abc import Iterable, Iterator
from statistics import median

from snnbench.adapter.declaration import Adapter
from snnbench.adapter.notes import notes
from snnbench.analysis.case_words import kind
from snnbench.analysis.metrics import distance_checks, gradient_errors
from snnbench.cases.case import Case
from snnbench.recording.flags import FLAGS
from snnbench.recording.reading import Recording
from snnbench.recording.record import Record
from snnbench.report.answer import WORDS
from snnbench.report.numbers import between, counted, listed
from snnbench.report.section import Section, Table
from snnbench.report.site.catalogue import Catalogue, Entry
from snnbench.report.site.standing import of
from snnbench.units import number

TITLE = "What to know before choosing it"


def section(catalogue: Catalogue, library: str, adapter: Adapter | None) -> Section:
    """All of it, from the newest recording of each question on each machine; notes from its adapter."""
    entries = [entry for entry in catalogue.by_library[library] if entry.recording in catalogue.latest]
    answers = [*_deviations(entries), *_failures(entries), *_exchanges(catalogue.latest, library)]
    answers += [*_memory(catalogue, library), *_flags(entries)]
    tables = [table for table in (_refusals(catalogue.latest, library), _notes(adapter)) if table.rows]
    nothing = [] if answers or tables else ["The newest recordings show nothing."]
    return Section("caveats", TITLE, nothing, answers, tables=tables)


def _notes(adapter: Adapter | None) -> Table:
    """What stands beside the adapter, with links to the library's source."""
    known = notes(adapter) if adapter else []
    rows = [[note.source, note.text.strip().replace("`", "")] for note in known]
    caption = "What its own code does"
    return Table(["source", "what a user meets"], rows, texts=2, caption=caption, targets=[note.link for note in known])


def _deviations(entries: Iterable[Entry]) -> Iterator[tuple[str, str]]:
    """Each declared deviation, with its measured size over all cases."""
    by_deviation: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        if entry.result.verdict == "deviates":
            by_deviation.setdefault((entry.result.contender, entry.result.deviation), []).append(entry)
    for (contender, deviation), each in by_deviation.items():
        records = [record for entry in each for record in entry.records]
        checks = [check for record in records for check in distance_checks(record)]
        checks = checks or [check for record in records for check in record.checks.values()]
        shares = [100 * check["differing"] / check["compared"] for check in checks if check["compared"]]
        size = f"{between(shares)} % of the spikes differ" if shares else "its size was not measured"
        errors = gradient_errors(checks)
        gradients = f", and gradients by up to {number(100 * max(errors))} %" if errors else ""
        yield f"{contender} is another neuron", f"{deviation[0].upper()}{deviation[1:]}: {size}{gradients}."


def _refusals(recordings: Iterable[Recording], library: str) -> Table:
    """The reason of each refusal once, with the contenders that have it."""
    names_of: dict[str, dict[str, None]] = {}
    for record in _records(recordings, library):
        if record.outcome.kind == "unsupported":
            site, _, rest = str(record.outcome.reason).partition(": ")
            reason = rest if rest and " " not in site else str(record.outcome.reason)
            names_of.setdefault(reason, {})[record.label] = None
    rows = [[", ".join(names), reason] for reason, names in sorted(names_of.items(), key=lambda item: [*item[1]])]
    return Table(["library", "reason"], rows, texts=2, caption="What it cannot express, or where it does not run")


def _failures(entries: Iterable[Entry]) -> Iterator[tuple[str, str]]:
    """How many results failed, by kind, each with one reason."""
    counts: Counter[str] = Counter()
    examples: dict[str, Entry] = {}
    for entry in entries:
        for record in entry.records:
            if record.status == "failed" and record.outcome.kind != "cancelled":
                counts[str(record.outcome.kind)] += 1
                examples.setdefault(str(record.outcome.kind), entry)
    for failure, count in counts.items():
        entry = examples[failure]
        where = f"{entry.result.contender} in {entry.case.kind}, {entry.case.sizes()}"
        reason = next(str(one.outcome.reason) for one in entry.records if str(one.outcome.kind) == failure)
        yield f"Failed: {WORDS.get(failure, failure)}", f"{counted(count, 'cell')}, the newest of {where}: {reason}"


def _exchanges(recordings: Iterable[Recording], library: str) -> Iterator[tuple[str, str]]:
    """What its own importer and exporter of NIR graphs did, by outcome."""
    outcomes: dict[str, Counter[str]] = {}
    for recording in recordings:
        for record in recording.exchanges:
            if record.library == library:
                word = str(record.outcome.verdict or record.outcome.kind or record.status)
                outcomes.setdefault(record.measure, Counter())[WORDS.get(word, word)] += 1
    for measure, counts in outcomes.items():
        words = listed([f"{word} in {count}" for word, count in counts.most_common()])
        yield f"Its own {measure} of NIR graphs", f"In {counted(counts.total(), 'cell')}: {words}."


def _memory(catalogue: Catalogue, library: str) -> Iterator[tuple[str, str]]:
    """The peaks of its leanest exact variants over those of the leanest exact contenders, on host and device."""
    peaks: dict[str, dict[tuple[str, Case], dict[str, float]]] = {}
    for entry in catalogue.entries:
        if entry.recording in catalogue.latest and entry.result.verdict in ("exact", "equivalent"):
            for place in ("device", "host"):
                if summary := entry.result.summaries.get((entry.phase, f"{place}_peak")):
                    by_case = peaks.setdefault(place, {})
                    by_contender = by_case.setdefault((entry.recording.name, entry.case), {})
                    by_contender[entry.result.contender] = summary.median
    for place, by_case in peaks.items():
        ratios = []
        for (_, case), by_contender in by_case.items():
            own = [peak for name, peak in by_contender.items() if of(name, library)]
            if own and len(by_contender) > len(own):
                ratios.append((min(own) / min(by_contender.values()), case))
        if ratios:
            _, case = max(ratios, key=lambda each: each[0])
            numbers = [ratio for ratio, _ in ratios]
            half = f", in half of them at most {number(median(numbers))} times" if len(numbers) > 2 else ""
            yield (
                f"Memory of the {place}",
                f"The peak of its leanest variant is {between(numbers)} times that of the leanest exact contender, in "
                f"{counted(len(numbers), 'case')}{half}; most in {kind(case)}, {case.sizes()}.",
            )


def _flags(entries: Iterable[Entry]) -> Iterator[tuple[str, str]]:
    """Each flag of its results, with its meaning."""
    counts = Counter(flag for entry in entries for flag in entry.result.flags)
    for flag, count in counts.most_common():
        meaning = FLAGS.get(flag, "there was what this snnbench has no word for")
        yield f"Flag: {flag}", f"In {counted(count, 'result')} {meaning}."


def _records(recordings: Iterable[Recording], library: str) -> Iterator[Record]:
    return (record for recording in recordings for record in recording.records if record.library == library)
