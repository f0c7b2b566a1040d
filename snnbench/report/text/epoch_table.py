"""The table of epochs: each strategy of a contender beside the loader alone and the network alone, and their bound."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from snnbench.analysis.epochs import BOTH, COMPUTE, LOADER, Epoch, epochs, like_strategies
from snnbench.analysis.results import Result
from snnbench.cases.case import Case
from snnbench.recording.record import Record
from snnbench.report.numbers import between, counted, listed
from snnbench.report.overview import Overview
from snnbench.report.section import Section, Table
from snnbench.units import number

TITLE = "Epochs by strategy"
FIRST = "naive"
"""The strategy to which the others are compared."""
S = 1e9
COLUMNS = (
    *("library", "strategy", "epoch s", "to naive", "loader s", "compute s", "longer s", "bound by"),
    *("samples/s", "loss", "accuracy"),
)
NUMBERS = tuple(name for name in COLUMNS if name not in ("library", "strategy", "bound by"))
LEAVING = ("accuracy", "loss", "longer s", "samples/s", "bound by", "compute s")
LEGEND = (
    "to naive: the epoch over that of the strategy naive with as many loader processes; longer: max(loader, compute), "
    "the epoch if both overlap perfectly"
)


def sections(overview: Overview) -> Iterator[Section]:
    """The tables, if epochs were timed with their loader alone and their network alone."""
    if shown := tables(overview.results):
        remarks = sentences(overview.results, overview.recording.records)
        yield Section("epochs", TITLE, tables=shown, remarks=remarks, closing=[LEGEND])


def tables(by_case: Mapping[Case, Sequence[Result]]) -> list[Table]:
    """A table for each group of cases that differ in strategy and workers only, the fastest library first."""
    return [
        Table(COLUMNS, _rows(group), caption=_title(group), numbers=NUMBERS, leaving=LEAVING)
        for group in _groups(by_case)
    ]


def sentences(by_case: Mapping[Case, Sequence[Result]], records: Iterable[Record]) -> list[str]:
    """What bounds the epochs of each contender, how well both overlap, and whether all strategies learn the same."""
    lines = []
    for group in _groups(by_case):
        lines += [_bounds(name, own) for name, own in _by_contender(group).items()]
        lines += _overlaps(group)
    if same := _learning(records):
        lines.append(same)
    return lines


def strategy(epoch: Epoch) -> str:
    """`naive`, or `naive + 2 workers`."""
    beside = f" + {counted(epoch.workers, 'worker')}" if epoch.workers else ""
    return f"{epoch.strategy}{beside}"


def _groups(by_case: Mapping[Case, Sequence[Result]]) -> list[list[Epoch]]:
    return list(epochs(by_case).values())


def _by_contender(group: Iterable[Epoch]) -> dict[str, list[Epoch]]:
    """The epochs of each contender, the longest first; the contender with the shortest epoch first."""
    contenders: dict[str, list[Epoch]] = {}
    for epoch in sorted(group, key=lambda epoch: epoch.epoch_ns):
        contenders.setdefault(epoch.contender, []).append(epoch)
    return {name: own[::-1] for name, own in contenders.items()}


def _title(group: Sequence[Epoch]) -> str:
    case = group[0].case
    data = getattr(case, "data", "")
    return f"{case.PREFIX}{data}, {case.profile}, {case.sizes('workers')} on {case.device}"


def _rows(group: Sequence[Epoch]) -> list[list[str]]:
    rows = []
    for name, own in _by_contender(group).items():
        naive = {epoch.workers: epoch.epoch_ns for epoch in own if epoch.strategy == FIRST}
        for epoch in own:
            base = naive.get(epoch.workers) or naive.get(0)
            rows.append(
                [
                    name,
                    strategy(epoch),
                    number(epoch.epoch_ns / S),
                    f"{epoch.epoch_ns / base:.2f}" if base else "-",
                    *(number(ns / S) for ns in (epoch.alone_ns, epoch.compute_ns, epoch.longer_ns)),
                    epoch.bound,
                    number(epoch.samples_per_s),
                    f"{epoch.loss:.4f}",
                    f"{epoch.accuracy:.1%}",
                ]
            )
    return rows


def _bounds(name: str, own: Sequence[Epoch]) -> str:
    """`sinabs: loading bounds naive and disk-cold; computing bounds memory.`"""
    words = {LOADER: "loading bounds", COMPUTE: "computing bounds", BOTH: "both take about as long in"}
    parts = []
    for bound, doing in words.items():
        if named := [strategy(epoch) for epoch in own if epoch.bound == bound]:
            parts.append(f"{doing} {listed(named)}")
    return f"{name}: {'; '.join(parts)}."


def _overlaps(group: Sequence[Epoch]) -> list[str]:
    alone = [epoch.epoch_ns / epoch.expected_ns for epoch in group if not epoch.workers]
    beside = [epoch.epoch_ns / epoch.expected_ns for epoch in group if epoch.workers]
    lines = []
    if alone:
        lines.append(f"Where the loop loads by itself, an epoch took {between(alone)} times loader plus compute.")
    if beside:
        lines.append(f"Where other processes load, an epoch took {between(beside)} times the longer of both.")
    return lines


def _learning(records: Iterable[Record]) -> str:
    """Whether the strategies of each contender have the same losses; empty if none has two strategies."""
    groups = [group for group in like_strategies(records).values() if len({record.case for record in group}) > 1]
    if not groups:
        return ""
    timed = [[record.phases["epoch"] for record in group if "epoch" in record.phases] for group in groups]
    if all(len({epoch.get("losses_digest") for epoch in epochs_}) == 1 for epochs_ in timed):
        return "All strategies and trials of a contender have the same losses, bit by bit."
    return "The strategies of a contender have different losses: the same samples were not learned in all of them."
