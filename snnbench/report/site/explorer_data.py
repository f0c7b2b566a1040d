"""The numbers of the first page: every ranked phase of every case, of the newest recording that has it on a machine."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from snnbench import workloads
from snnbench.analysis import case_words
from snnbench.analysis.decision import Thresholds
from snnbench.analysis.pairs import pairs, slower
from snnbench.analysis.rank import Entry, Ranking, rank
from snnbench.analysis.results import Result, headline, results_by_case
from snnbench.cases.case import Case
from snnbench.recording.reading import Recording
from snnbench.report import wording
from snnbench.report.page.citation import measured
from snnbench.report.site.catalogue import Catalogue, cell_name, file_name
from snnbench.units import MIB, MS

CHOICES = ("machine", "network", "size", "neuron", "format", "phase")
"""What a reader chooses, in this order: a choice leaves those that the earlier ones allow."""
DIGITS = 5
"""Significant digits of a number."""


@dataclass(frozen=True, slots=True)
class View:
    """One chart: a phase of a case in a recording, ranked; `choices` are its words for CHOICES.

    `leaders` are the fastest contender and all that no test calls slower; in one trial each, the fastest only.
    """

    recording: Recording
    ranking: Ranking
    choices: tuple[str, ...]
    leaders: frozenset[str]

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
        for ranking, leaders in zip(rankings, _leaders(recording, rankings), strict=True):
            view = View(recording, ranking, _choices(recording, ranking), leaders)
            newest.setdefault((view.choices, ranking.case), view)
    return _told_apart(list(newest.values()))


def _told_apart(known: list[View]) -> list[View]:
    """The views, whose sizes also name the fields in which cases of the same choices differ."""
    alike: dict[tuple[str, ...], list[Case]] = {}
    for view in known:
        alike.setdefault(view.choices, []).append(view.case)
    named_views = []
    for view in known:
        *before, size, neuron, number_format, phase = view.choices
        differing = wording.telling(view.case, alike[view.choices], ())
        words = ", ".join(filter(None, (size, differing)))
        named_views.append(replace(view, choices=(*before, words, neuron, number_format, phase)))
    return named_views


def _rankings(recording: Recording) -> list[Ranking]:
    """The rankings of a recording, beside any contender if it names no baseline that is there."""
    if recording.sides or not recording.records:
        return []
    names = [record.label for record in recording.records]
    baseline = recording.baseline if recording.baseline in names else names[0]
    return rank(recording, baseline, Thresholds()).rankings


def _leaders(recording: Recording, rankings: list[Ranking]) -> Iterator[frozenset[str]]:
    """The leaders of each ranking. A rank is of one side of the baseline, so the first may lack one that may lead."""
    fields = [(one.case, one.phase, {entry.contender: entry.side for entry in one.entries}) for one in rankings]
    raced = headline(recording.records) if recording.is_race else ()
    for ranking, words in zip(rankings, pairs(fields, "", Thresholds()), strict=True):
        first, *others = ranking.entries
        if all(entry.rank is None for entry in ranking.entries):
            level = []
        elif ranking.phase in raced:
            level = [entry for entry in others if entry.rank == 1]
        else:
            level = [entry for entry in others if not slower(words, entry.contender, first.contender)]
        yield frozenset(entry.contender for entry in (first, *level))


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
    """All views for the script: words once, and a list of rows each. Times are in ms, peaks in MiB."""
    words: dict[str, int] = {}

    def number_of(word: str) -> int:
        return words.setdefault(word, len(words))

    shown, known = [], views(catalogue)
    default = default_of(known) if known else None
    for view in known:
        results = {each.contender: each for each in _results(view)}
        floor_ns = next((each.floors_ns.get(view.ranking.phase) for each in results.values()), None)
        shown.append(
            {
                "of": [number_of(word) for word in view.choices],
                "in": [number_of(word) for word in _recorded(view.recording)],
                "about": number_of(wording.heading(view.case)),
                "floor": _short(floor_ns / MS) if floor_ns else None,
                "rows": [[number_of(entry.contender), *_row(view, entry, results)] for entry in view.ranking.entries],
                "apart": [[number_of(name), number_of(reason)] for name, reason in view.ranking.apart],
                "tested": view.is_tested,
                "default": view is default,
            }
        )
    libraries = {name: file_name(name) for name in catalogue.by_library}
    return {"choices": CHOICES, "words": list(words), "libraries": libraries, "views": shown}


def _recorded(recording: Recording) -> tuple[str, ...]:
    """The name of a recording, its day and the name of its page."""
    return recording.name, measured(recording), file_name(recording.name)


def _results(view: View) -> list[Result]:
    cases = results_by_case(record for record in view.recording.records if record.case == view.case)
    return cases[view.case]


def _row(view: View, entry: Entry, results: dict[str, Result]) -> Iterator[Any]:
    """Median, its interval, 1 if it leads, trials, peak, first call, verdict and the name of the page of the cell."""
    result, phase = results[entry.contender], view.ranking.phase
    yield _short(entry.side.summary.median / MS)
    yield [_short(end / MS) for end in entry.interval] if entry.interval else None
    yield int(entry.contender in view.leaders)
    yield entry.side.summary.count
    peaks = [result.summaries.get((phase, f"{place}_peak")) for place in ("device", "host")]
    peaks += [each for key, each in result.summaries.items() if key[1] in ("device_peak", "host_peak")]
    yield next((_short(peak.median / MIB) for peak in peaks if peak), None)
    first = result.summaries.get((phase, "first_call"))
    yield _short(first.median / MS) if first else None
    yield result.verdict
    yield cell_name(view.case, entry.contender)


def default_of(known: list[View]) -> View:
    """The view that answers most people: training on a GPU if there is one, at a middle size, with most contenders."""

    def merit(view: View) -> tuple[Any, ...]:
        fields = view.case.as_dict()
        is_plain = view.case.workload == workloads.DEFAULT and fields.get("layers") == 1
        ranked = sum(entry.rank is not None for entry in view.ranking.entries)
        return (
            view.ranking.phase == "train",
            is_plain,
            view.case.device.startswith("cuda"),
            fields.get("neurons") in (512, 4096),
            ranked,
            len(view.ranking.entries),
            measured(view.recording),
        )

    return max(known, key=merit)


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
