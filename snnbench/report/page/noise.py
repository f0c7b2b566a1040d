"""The section of noise: differences between trials, flags, and the noisiest cells in full."""

from collections import Counter
from dataclasses import dataclass

from snnbench.cases.case import Case
from snnbench.recording.flags import FLAGS
from snnbench.report.charts.machine import over_time
from snnbench.report.charts.noise import repetitions
from snnbench.report.numbers import counted
from snnbench.report.overview import Overview
from snnbench.report.section import Section, Table

MAX_NOISIEST = 6
LEAVING = ("usual spread", "noisiest in")
MACHINE = (
    "Each process also times fixed work that belongs to no library. The first chart has it over the run: what moves "
    "there moves with the machine, whatever is measured."
)


@dataclass(frozen=True, slots=True)
class Spread:
    """(highest - lowest) / median of the trials of one contender in one case, in the headline phase."""

    case: Case
    contender: str
    relative: float


def section(overview: Overview) -> Section:
    """A row per contender, the noisiest first, and the repetitions of the noisiest cells."""
    title = "Noise"
    phase = overview.headline
    if not phase:
        return Section("noise", title, ["Left out: nothing was timed."])
    spreads = sorted(_spreads(overview, phase), key=lambda spread: -spread.relative)
    flags = _flags(overview)
    by_name: dict[str, list[Spread]] = {}
    for spread in spreads:
        by_name.setdefault(spread.contender, []).append(spread)
    timed = {p.contender for case in overview.cases for p in overview.points(case, phase)}
    rows = []
    for name in [*by_name, *sorted(timed - by_name.keys())]:
        own = by_name.get(name, [])
        middle = sorted(spread.relative for spread in own)[len(own) // 2] if own else None
        rows.append(
            [
                name,
                overview.label(own[0].case) if own else "one trial only",
                ", ".join(f"{flag} {count}" for flag, count in sorted(flags[name].items())) or "-",
                f"{middle:.1%}" if middle is not None else "-",
                f"{own[0].relative:.1%}" if own else "-",
            ]
        )
    noisiest = enumerate(spreads[:MAX_NOISIEST])
    charts = [repetitions(overview, spread.case, spread.contender, phase, f"noise-{n + 1}") for n, spread in noisiest]
    machine = over_time(overview.recording)
    return Section(
        "noise",
        title,
        [
            f"The spread is the highest trial less the lowest, by the median, in {phase}. A trial is a process of its "
            "own, and what differs between trials is what another day may show again.",
            "Flags count the processes that they were raised in; nothing was dropped for them."
            + (f" The charts are of the {len(charts)} noisiest cells." if spreads else ""),
            *_again(overview),
            *([MACHINE] if machine else []),
        ],
        tables=[
            Table(["library", "noisiest in", "flags", "usual spread", "largest spread"], rows, texts=3, leaving=LEAVING)
        ],
        charts=[*([machine] if machine else []), *charts],
        brief="differences between trials, and flags",
        folded=[("What the flags mean", "\n".join(f"{flag}: {meaning}" for flag, meaning in FLAGS.items()))],
    )


def _again(overview: Overview) -> list[str]:
    """A sentence on the cells that were measured again, if any."""
    cells = {one.cell for one in overview.recording.attempts}
    if not cells:
        return []
    verb = "was" if len(cells) == 1 else "were"
    return [
        f"{counted(len(cells), 'cell')} {verb} measured again because others disturbed them or the machine drifted: "
        "the least disturbed attempt counts, and `snnbench show CELL` has the others."
    ]


def _spreads(overview: Overview, phase: str) -> list[Spread]:
    spreads = []
    for case, results in overview.results.items():
        for result in results:
            summary = result.summaries.get((phase, "time"))
            if summary and summary.count > 1:
                relative = (max(summary.trials) - min(summary.trials)) / summary.median
                spreads.append(Spread(case, result.contender, relative))
    return spreads


def _flags(overview: Overview) -> dict[str, Counter[str]]:
    """By contender, the number of processes with each flag."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in overview.contenders}
    for record in overview.recording.records:
        counts[record.label].update(record.flags)
    return counts
