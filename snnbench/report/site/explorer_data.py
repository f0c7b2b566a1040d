"""The numbers of the first page: every ranked phase of every case, of the newest recording that has it on a machine."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import combinations
from typing import Any

from snnbench import measures, workloads
from snnbench.analysis import case_words, race
from snnbench.analysis.decision import WORDS, Thresholds
from snnbench.analysis.pairs import Pairs, pairs, slower
from snnbench.analysis.rank import Entry, Ranking, rank
from snnbench.analysis.results import Result, headline
from snnbench.cases.case import Case
from snnbench.recording.reading import Recording
from snnbench.report import wording
from snnbench.report.page.citation import measured
from snnbench.report.page.matrix import SIGNS
from snnbench.report.site.catalogue import Catalogue, cell_name, file_name
from snnbench.units import MIB, MS

CHOICES = ("machine", "network", "size", "neuron", "format", "phase")
"""What a reader chooses, in this order: a choice leaves those that the earlier ones allow."""
DIGITS = 5
"""Significant digits of a number."""
Difference = tuple[str, float | None, float | None]
"""The word of two contenders, the second over the first, and the interval of their ratio, as far as it is known."""


@dataclass(frozen=True, slots=True)
class View:
    """One chart: a phase of a case in a recording, ranked; `choices` are its words for CHOICES.

    `leaders` are the fastest ranked contender and all ranked ones that no test calls slower; without a test, the
    fastest only. A contended time has no rank, so it neither leads nor is slower.
    `differences` are those of all pairs of entries, in the order of `combinations`. `title` are the words that name
    the case within its recording.
    """

    recording: Recording
    ranking: Ranking
    choices: tuple[str, ...]
    leaders: frozenset[str]
    differences: list[Difference]
    title: list[str] = field(default_factory=list)

    @property
    def is_tested(self) -> bool:
        """Whether a test or a race decided who leads."""
        return any(entry.rank is not None for entry in self.ranking.entries)

    @property
    def case(self) -> Case:
        """The case."""
        return self.ranking.case


@lru_cache(maxsize=1)
def views(catalogue: Catalogue) -> list[View]:
    """A view of each phase of each case that was timed, of the newest recording on its machine; A/B tests have none."""
    newest: dict[tuple[Any, ...], View] = {}
    for recording in catalogue.preferred:
        rankings = [ranking for ranking in _rankings(recording) if ranking.entries]
        of_recording = list(_views(recording, rankings))
        for view, title in zip(of_recording, _sized(of_recording), strict=True):
            named = replace(view, title=[word for words in title[1:-1] for word in words.split(", ")])
            newest.setdefault((view.choices, view.case), named)
    known = list(newest.values())
    return [replace(view, choices=choices) for view, choices in zip(known, _sized(known), strict=True)]


def _sized(known: list[View]) -> Iterator[tuple[str, ...]]:
    """The choices of each view, whose size also names the fields in which cases of the same choices differ."""
    alike: dict[tuple[str, ...], list[Case]] = {}
    for view in known:
        alike.setdefault(view.choices, []).append(view.case)
    for view in known:
        *before, size, neuron, number_format, phase = view.choices
        differing = wording.telling(view.case, alike[view.choices], ())
        yield *before, ", ".join(filter(None, (size, differing))), neuron, number_format, phase


def _rankings(recording: Recording) -> list[Ranking]:
    """The rankings of a recording, beside any contender if it names no baseline that is there."""
    if recording.sides or not recording.records:
        return []
    names = [record.label for record in recording.records]
    baseline = recording.baseline if recording.baseline in names else names[0]
    return rank(recording, baseline, Thresholds()).rankings


def _views(recording: Recording, rankings: list[Ranking]) -> Iterator[View]:
    """The view of each ranking. A rank is of one side of the baseline, so the first may lack one that may lead."""
    fields = [(one.case, one.phase, {entry.contender: entry.side for entry in one.entries}) for one in rankings]
    (raced,) = headline(recording.records) or ("",) if recording.is_race else ("",)
    races = race.standings(recording.records, raced) if raced else {}
    for ranking, words in zip(rankings, pairs(fields, "", Thresholds()), strict=True):
        present = races.get(ranking.case) if ranking.phase == raced else None
        first, *others = [entry for entry in ranking.entries if entry.rank is not None] or ranking.entries[:1]
        if present:
            level = [entry for entry in others if entry.contender in present.running]
        else:
            level = [entry for entry in others if not slower(words, entry.contender, first.contender)]
        leaders = frozenset(entry.contender for entry in (first, *level))
        names = [entry.contender for entry in ranking.entries]
        differences = [_difference(words, base, new, present) for base, new in combinations(names, 2)]
        yield View(recording, ranking, _choices(recording, ranking), leaders, differences)


def _difference(words: Pairs, base: str, new: str, present: race.Standing | None) -> Difference:
    """The word of two contenders by the test of `rank`. A race decides what it knows of its leaders."""
    if present and base == present.leader and new in present.slower:
        return "slower", present.slower[new], None
    comparison = words[base, new]
    word, difference = comparison.word, comparison.difference
    if present and base in present.running and new in present.running:
        word = "same" if {base, new} <= {present.leader, *present.level} else "inconclusive"
    return (word, difference.low, difference.high) if difference else (word, None, None)


def _choices(recording: Recording, ranking: Ranking) -> tuple[str, ...]:
    case = ranking.case
    network = case.kind.removesuffix(case.profile).rstrip(", ") or "linear layers and neurons"
    reset = case_words.RESETS[case.profile]
    return _machine(recording, case), network, case_words.sizes(case), reset, case.product_format, ranking.phase


def _machine(recording: Recording, case: Case) -> str:
    """`GPU: NVIDIA H200`, or the model of the machine after `CPU`."""
    cards = sorted({str(card.get("name")) for card in recording.machine.get("gpus", [])})
    if case.device.startswith("cuda") and cards:
        return f"GPU: {', '.join(cards)}"
    return f"{case_words.DEVICES.get(case.device, case.device)}: {wording.model(recording)}"


def document(catalogue: Catalogue) -> dict[str, Any]:
    """All views for the script: words once, and a list of rows each. Times are in ms, peaks in MiB.

    The words of a view's pairs are a string with a letter each, and the ends of their intervals a list beside it. The
    view with place 0 is shown first.
    """
    words: dict[str, int] = {}

    def number_of(word: str) -> int:
        return words.setdefault(word, len(words))

    shown, known = [], views(catalogue)
    order = {id(view): place for place, view in enumerate(sorted(known, key=_merit, reverse=True))}
    for view in known:
        results = {each.contender: each for each in catalogue.results_of(view.recording)[view.case]}
        name = view.recording.name
        floor_ns = next((each.floors_ns.get(view.ranking.phase) for each in results.values()), None)
        shown.append(
            {
                "of": [number_of(word) for word in view.choices],
                "title": [number_of(word) for word in view.title],
                "in": [number_of(word) for word in (name, measured(view.recording), file_name(name))],
                "about": number_of(wording.heading(view.case)),
                "floor": _short(floor_ns / MS) if floor_ns else None,
                "rows": [[number_of(entry.contender), *_row(view, entry, results)] for entry in view.ranking.entries],
                "apart": [
                    [number_of(name), _sign(results[name], reason), number_of(reason)]
                    for name, reason in view.ranking.apart
                ],
                "pairs": "".join(str(WORDS.index(word)) for word, *_ in view.differences),
                "ends": [end and float(f"{end:.3g}") for _, *ends in view.differences for end in ends],
                "tested": view.is_tested,
                "place": order[id(view)],
            }
        )
    libraries = {name: file_name(name) for name in catalogue.by_library}
    return {
        "choices": CHOICES,
        "decisions": WORDS,
        "measures": [[measures.title(name), of.unit] for name, of in measures.ranked().items()],
        "words": list(words),
        "libraries": libraries,
        "views": shown,
    }


def _sign(result: Result, reason: str) -> str:
    """The sign of a contender without a place."""
    if result.verdict == "deviates":
        return SIGNS["deviates"]
    if reason.startswith("failed: incorrect"):
        return SIGNS["incorrect"]
    return SIGNS["failed" if result.failure else "unsupported"]


def _row(view: View, entry: Entry, results: dict[str, Result]) -> Iterator[Any]:
    """Median, interval, 1 if it leads, trials, peak, first call, verdict, name of the page, and each ranked measure."""
    result, phase = results[entry.contender], view.ranking.phase
    yield _short(entry.side.summary.median / MS)
    yield [_short(end / MS) for end in entry.interval] if entry.interval else None
    yield int(entry.contender in view.leaders)
    yield entry.side.summary.count
    peaks = [result.summaries.get((phase, f"{place}_peak")) for place in ("device", "host")]
    yield next((_short(peak.median / MIB) for peak in peaks if peak), None)
    first = result.summaries.get((phase, "first_call"))
    yield _short(first.median / MS) if first else None
    yield f"{result.verdict}, contended" if entry.side.contended else result.verdict
    yield cell_name(view.case, entry.contender)
    for name in measures.ranked():
        value = result.summaries.get((phase, name))
        yield _short(value.median) if value else None


def _merit(view: View) -> tuple[Any, ...]:
    """What answers most people comes first: training on a GPU, at a middle size, with most contenders."""
    fields = view.case.as_dict()
    is_plain = view.case.workload == workloads.DEFAULT and fields.get("layers") == 1
    ranked = sum(entry.rank is not None for entry in view.ranking.entries)
    return (
        view.ranking.phase == "train",
        is_plain,
        view.case.device.startswith("cuda"),
        fields.get("neurons") in (512, 4096),
        len(view.ranking.entries),
        ranked,
        measured(view.recording),
    )


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
