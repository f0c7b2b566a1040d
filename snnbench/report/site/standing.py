"""The standing of a library: how far it is behind the fastest contender, and which of its variants is in front."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

from snnbench.adapter.declaration import WAYS, Adapter
from snnbench.analysis.case_words import neuron
from snnbench.report.numbers import between, counted, listed
from snnbench.report.section import Section, Table
from snnbench.report.site.catalogue import Catalogue
from snnbench.report.site.explorer_data import View, views
from snnbench.units import number

PHASES = {"train": "training passes", "epoch": "epochs", "inference": "inference"}
"""The phases that a standing is given in, the first that a library was timed in, and what a time of each is of."""


@dataclass(frozen=True, slots=True)
class Place:
    """A library in a view: its fastest variant, and `behind`, its time over that of the fastest contender."""

    view: View
    variant: str
    behind: float

    @property
    def is_tested(self) -> bool:
        """Whether a test judged it: single trials have none, nor have times that others disturbed."""
        return self.view.is_tested and not any(
            entry.side.contended for entry in self.view.ranking.entries if entry.contender == self.variant
        )

    @property
    def leads(self) -> bool:
        """Whether no test calls it slower than the fastest; without a test, whether it is the fastest."""
        return self.variant in self.view.leaders


def places(catalogue: Catalogue, library: str) -> dict[str, list[Place]]:
    """machine -> the library's places there, in the first of PHASES that it was timed in; most places first."""
    by_machine: dict[str, dict[str, list[Place]]] = {}
    for view in views(catalogue):
        own = [entry for entry in view.ranking.entries if of(entry.contender, library)]
        if own and view.ranking.phase in PHASES and len(view.ranking.entries) > len(own):
            fastest = view.ranking.entries[0].side.summary.median
            place = Place(view, own[0].contender, own[0].side.summary.median / fastest)
            by_machine.setdefault(view.choices[0], {}).setdefault(view.ranking.phase, []).append(place)
    first = {machine: next(by[phase] for phase in PHASES if phase in by) for machine, by in by_machine.items()}
    return dict(sorted(first.items(), key=lambda item: -len(item[1])))


def of(contender: str, library: str) -> bool:
    """Whether a contender is of a library."""
    return contender.partition("/")[0] == library


def sentences(known: Sequence[Place]) -> str:
    """How far a library is behind on a machine, and where it is farthest. A place counts as behind only if tested."""
    phase = PHASES[known[0].view.ranking.phase]
    tested = [place for place in known if place.is_tested]
    if not tested:
        are_single = all(each.side.summary.count == 1 for place in known for each in place.view.ranking.entries)
        why = "of a single trial each" if are_single else "of single trials and of trials that others disturbed"
        return f"In {phase}, {why}, {_behind(known)}, which no test confirms.{_extremes(known)}"
    behind = [place for place in tested if not place.leads]
    count = len(tested) - len(behind)
    if not behind:
        of_cases = f"all {len(tested)} cases" if len(tested) > 1 else f"its one case, {_where(tested[0])}"
        return f"In {phase} no other contender is shown to be faster in {of_cases}."
    if not count:
        return f"In {phase} {_behind(behind)}.{_extremes(behind)}"
    lead = f"no other contender is shown to be faster in {count} of {counted(len(tested), 'case')}"
    return f"In {phase} {lead}. In the rest {_behind(behind)}.{_extremes(behind)}"


def _behind(known: Sequence[Place]) -> str:
    ratios = [place.behind for place in known]
    if max(ratios) == 1:
        return "it is the fastest contender"
    middle = f", in half of them at most {number(median(ratios))} times" if len(ratios) > 2 else ""
    return f"it takes {between(ratios)} times as long as the fastest contender{middle}"


def _extremes(known: Sequence[Place]) -> str:
    """The cases in which it is nearest and farthest; nothing if it is the fastest in all."""
    nearest, *_, farthest = sorted([*known, *known], key=lambda place: place.behind)
    first = farthest.view.ranking.entries[0].contender
    if farthest.behind == 1:
        return ""
    if len(known) == 1:
        return f" The case is {_where(farthest)}; the fastest is {first}."
    return (
        f" It is nearest in {_where(nearest)} ({number(nearest.behind)}), and farthest in {_where(farthest)} "
        f"({number(farthest.behind)}, behind {first})."
    )


def _where(place: Place) -> str:
    """The case in words, without its machine and its phase; the usual format is not named."""
    _, _, size, _, number_format, _ = place.view.choices
    return ", ".join([neuron(place.view.case), size, *([number_format] if number_format != "float32" else [])])


@dataclass(frozen=True, slots=True)
class Race:
    """Several variants of a library in one case: the time of each over the fastest, and those that may be fastest."""

    place: Place
    ratios: dict[str, float]
    leaders: frozenset[str]


def races(known: Sequence[Place], library: str) -> list[Race]:
    """The cases in which the test of the whole case tells variants of a library apart, or fails to."""
    tested = []
    for place in known:
        entries = place.view.ranking.entries
        own = [entry for entry in entries if of(entry.contender, library) and not entry.side.contended]
        if len(own) < 2 or place.view.recording.is_race or any(entry.side.summary.count == 1 for entry in own):
            continue
        names = combinations([entry.contender for entry in entries], 2)
        slower = {pair for pair, (word, *_) in zip(names, place.view.differences, strict=True) if word == "slower"}
        fastest = own[0]
        leaders = {entry.contender for entry in own if (fastest.contender, entry.contender) not in slower}
        ratios = {entry.contender: entry.side.summary.median / fastest.side.summary.median for entry in own}
        tested.append(Race(place, ratios, frozenset(leaders)))
    return tested


def best_way(by_machine: dict[str, list[Place]], library: str, adapter: Adapter | None) -> Section:
    """Which variant to begin with on each machine, and a table of all of them."""
    title = "Its fastest way of running"
    known = [(machine, races(each, library)) for machine, each in by_machine.items()]
    known = [(machine, each) for machine, each in known if each]
    if not known:
        nothing = "No recording times two of its exact variants in one case with several trials each."
        return Section("variants", title, [nothing])
    about = (
        "Only exact and equivalent variants are timed here. In front is each that the test of snnbench rank does not "
    )
    about += "call slower than the fastest one of this library."
    tables = [_variants(machine, each, adapter) for machine, each in known]
    return Section("variants", title, [about], [(machine, _advice(each)) for machine, each in known], tables=tables)


def _advice(known: Sequence[Race]) -> str:
    """The variant that is in front most often, and the cases in which another one is faster."""
    best = _in_front(known)[0]
    own = [race for race in known if best in race.ratios]
    lost = [race for race in own if best not in race.leaders]
    if not lost:
        cases = "its one case" if len(own) == 1 else f"all its {len(own)} cases"
        return f"Begin with {best}: no other variant is shown to be faster, in {cases}."
    named = []
    for name in dict.fromkeys(race.place.variant for race in lost):
        worst = max((race for race in lost if race.place.variant == name), key=lambda race: race.ratios[best])
        count = sum(race.place.variant == name for race in lost)
        most = f"{'up to ' if count > 1 else ''}{number(worst.ratios[best])} times as fast, in {_where(worst.place)}"
        named.append(f"{name} in {counted(count, 'case')} ({most})")
    front = f"no other variant is shown to be faster in {len(own) - len(lost)} of {counted(len(own), 'case')}"
    return f"Begin with {best}: {front}. Faster is {listed(named)}."


def _in_front(known: Sequence[Race]) -> list[str]:
    """The variants, those that are in front most often first, and of these the one that is least behind elsewhere."""

    def merit(name: str) -> tuple[int, float]:
        own = [race for race in known if name in race.ratios]
        return -sum(name in race.leaders for race in own), median(race.ratios[name] for race in own)

    return sorted(dict.fromkeys(name for race in known for name in race.ratios), key=merit)


def _variants(machine: str, known: Sequence[Race], adapter: Adapter | None) -> Table:
    def rows() -> Iterator[list[str]]:
        for name in _in_front(known):
            own = [race for race in known if name in race.ratios]
            front = sum(name in race.leaders for race in own)
            variant = adapter.variants.get(name.partition("/")[2] or adapter.default) if adapter else None
            ratios = between([race.ratios[name] for race in own])
            about = (WAYS[variant.way] if variant.way else variant.about) if variant else "-"
            yield [name, about, f"{front} of {len(own)}", ratios]

    columns = ["variant", "what it is", "in front", "x the fastest one"]
    return Table(columns, list(rows()), texts=2, caption=machine, leaving=["what it is"])
