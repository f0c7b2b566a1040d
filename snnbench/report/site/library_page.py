"""The page of a library: what a newcomer asks of it, from a short answer to every number."""

from collections.abc import Sequence
from functools import cache

from snnbench.adapter.declaration import Adapter
from snnbench.adapter.discovery import discover
from snnbench.analysis.case_words import neuron, sizes
from snnbench.code import NoCode, script
from snnbench.report.numbers import counted
from snnbench.report.section import Section
from snnbench.report.site import caveats, growth, history, standing, tables
from snnbench.report.site.catalogue import Catalogue, Entry, file_name
from snnbench.report.site.page import Page, files
from snnbench.workloads import DEFAULT

FOLDED = ("exponents", "times")


def library(catalogue: Catalogue, name: str, pairs: Sequence[history.Pair]) -> Page:
    """Where it stands, how to run it, its code, where it is exact, how it grows, what to know, what changed."""
    entries, adapter = catalogue.by_library[name], _adapters().get(name)
    newest = [entry for entry in entries if entry.recording in catalogue.latest]
    places, works = standing.places(catalogue, name), tables.works(entries)
    swept = growth.sweeps(catalogue.latest, name)
    sections = [
        Section(
            "answer",
            "In short",
            [*([adapter.about.replace("`", "")] if adapter else []), _exactness(works)],
            [(at, standing.sentences(each)) for at, each in places.items()],
        ),
        standing.best_way(places, name, adapter),
        *(_code(adapter, newest) if adapter else []),
        Section(
            "verdicts",
            "Where it is exact",
            ["The newest verdict on each variant, by kind of work. Formats other than float32 are named."],
            tables=[tables.verdicts(works)],
        ),
        growth.section(swept),
        caveats.section(catalogue, name, adapter),
        history.section(catalogue, pairs, name),
        *([growth.exponents(swept)] if swept else []),
        Section(
            "times",
            "Every time",
            ["Times of the newest recording of each question on each machine."],
            tables=[tables.times(newest, "../")],
            files=files(file_name(name)),
            brief="times, floors and memory of every cell",
        ),
    ]
    return Page(f"libraries/{file_name(name)}", name, sections, entries, FOLDED)


@cache
def _adapters() -> dict[str, Adapter]:
    return discover()


def _exactness(works: Sequence[tables.Work]) -> str:
    """In how many kinds of work it is exact, equivalent, or neither."""
    counts = {verdict: [work for work in works if work.best == verdict] for verdict in tables.VERDICTS}
    exact, equivalent = len(counts["exact"]), len(counts["equivalent"])
    words = f"Exact in {exact} of {counted(len(works), 'recorded kind')} of work"
    words += f", and equivalent within the rounding of the format in {equivalent}" if equivalent else ""
    neither = [work.words for verdict in ("deviates", "failed") for work in counts[verdict]]
    return f"{words}. Neither in: {'; '.join(neither)}." if neither else f"{words}."


def _code(adapter: Adapter, entries: Sequence[Entry]) -> list[Section]:
    """The code of its network in the case that most readers have; none of a NIR graph, whose file may be missing."""
    exact = [entry for entry in entries if entry.result.verdict == "exact" and not entry.case.DRIVEN_BY]

    def merit(entry: Entry) -> tuple[bool, bool, int]:
        fields = entry.case.as_dict()
        return entry.case.workload != DEFAULT, fields.get("layers") != 1, abs(entry.case.neurons - 256)

    first: dict[str, Entry] = {}
    for entry in sorted(exact, key=merit):
        first.setdefault(entry.result.contender, entry)
    for contender, entry in first.items():
        variant = contender.partition("/")[2]
        try:
            text = script(adapter, adapter.variants[variant or adapter.default], entry.case)
        except (NoCode, KeyError):
            continue
        work = f"{contender}: {sizes(entry.case)}, {neuron(entry.case)}"
        about = f"{work}. It builds the network, runs a training pass, and needs no snnbench."
        more = "snnbench show CELL --code prints the code of another cell."
        return [Section("code", "The code of its network", [about, more], text=text)]
    return []
