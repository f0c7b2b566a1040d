"""Compare two recordings of the same work: a ratio for each cell that both have, new over base; above 1 is slower."""

from collections.abc import Iterator
from dataclasses import dataclass

from snnbench.case import Case
from snnbench.record import Recording
from snnbench.standing import Standing, standings, title
from snnbench.statistics import Summary

METRICS = {"time": ("time", "ns"), "host_peak": ("host peak", "bytes"), "device_peak": ("device peak", "bytes")}


@dataclass(frozen=True, slots=True)
class Row:
    """One metric of one contender in one case. `word` says why there is no ratio, where there is none."""

    case: Case
    contender: str
    phase: str
    metric: str
    base: Summary | None
    new: Summary | None
    word: str

    @property
    def ratio(self) -> float | None:
        """New over base."""
        return (
            self.new.median / self.base.median
            if self.base and self.new and self.base.median and not self.word
            else None
        )


def compare(base: Recording, new: Recording) -> list[Row]:
    """Every cell of either recording. A cell that only one has is `missing`, or `failed` where the other tried.

    Not the same machine, protocol or work is `incomparable`; a contender that began to deviate does other work.
    """
    before, after = standings(base.records), standings(new.records)
    comparable = base.machine.get("model") == new.machine.get("model") and _protocol(base) == _protocol(new)
    rows = []
    for case in [*before, *(case for case in after if case not in before)]:
        olds = {standing.contender: standing for standing in before.get(case, [])}
        news = {standing.contender: standing for standing in after.get(case, [])}
        for name in dict.fromkeys((*olds, *news)):
            rows += list(_rows(case, name, olds.get(name), news.get(name), comparable))
    return rows


def differing(base: Recording, new: Recording) -> list[str]:
    """Facts that make the two incomparable, for the user."""
    facts = [("machine", base.machine.get("model"), new.machine.get("model"))]
    old, other = _protocol(base), _protocol(new)
    facts += [(f"protocol.{key}", old.get(key), other.get(key)) for key in dict.fromkeys((*old, *other))]
    return [f"{name}: {one!r} in {base.name}, {two!r} in {new.name}" for name, one, two in facts if one != two]


def markdown(rows: list[Row]) -> str:
    """A table a case."""
    parts: list[str] = []
    for case in dict.fromkeys(row.case for row in rows):
        parts += [f"### {title(case)}", "", "| library | phase | metric | base | new | ratio |"]
        parts += ["| --- | --- | --- | ---: | ---: | ---: |"]
        for row in rows:
            if row.case == case:
                ratio = (row.word or "-") if row.ratio is None else f"{row.ratio:.3f}"
                name = METRICS[row.metric][0] if row.metric in METRICS else row.metric
                base, new = (_shown(row.metric, summary) for summary in (row.base, row.new))
                parts.append(f"| {row.contender} | {row.phase} | {name} | {base} | {new} | {ratio} |")
        parts.append("")
    return "\n".join(parts)


def _rows(case: Case, name: str, old: Standing | None, new: Standing | None, comparable: bool) -> Iterator[Row]:
    sides = [side for side in (old, new) if side is not None]
    found = dict.fromkeys(key for side in sides for key in side.summaries if key[1] in METRICS)
    if not found and any(reason.startswith("failed") for side in sides for reason in side.reasons):
        yield Row(case, name, "", "", None, None, "failed")  # what both skipped is no news
    for phase, metric in found:
        before = old.summaries.get((phase, metric)) if old else None
        after = new.summaries.get((phase, metric)) if new else None
        same = comparable and len({side.verdict == "deviates" for side in sides}) == 1
        word = "" if same else "incomparable"
        if before is None or after is None:
            lacking = old if before is None else new
            word = "failed" if lacking and any(reason.startswith("failed") for reason in lacking.reasons) else "missing"
        yield Row(case, name, phase, metric, before, after, word)


def _protocol(recording: Recording) -> dict[str, object]:
    protocol = recording.config.get("config", {}).get("protocol", {})
    return {k: v for k, v in protocol.items() if k not in ("trials", "memory_trials", "seed", "timeout_seconds")}


def _shown(metric: str, summary: Summary | None) -> str:
    if summary is None:
        return "-"
    return f"{summary.median / 1e6:.3g} ms" if METRICS[metric][1] == "ns" else f"{summary.median / (1 << 20):.3g} MiB"
