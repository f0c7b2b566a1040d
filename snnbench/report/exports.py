"""Exports: the times and peaks of a recording in the formats of services and tools that keep histories.

    bmf                      Bencher Metric Format: latency in ns and memory in bytes, with quartiles over trials
    github-action-benchmark  its customSmallerIsBetter: a list of medians, with their quartiles in `range`
    pyperf                   a suite of pyperf: every repetition in seconds, a run for each trial
    asv                      a results file of airspeed velocity: medians and quartiles in seconds, and peaks in bytes

Only contenders that do the same work are exported: a deviation or a failure has no number. A name is the same in every
recording of the same work.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from snnbench.analysis.results import Result, results_by_case
from snnbench.exits import UserError
from snnbench.recording.reading import Recording
from snnbench.report.wording import missing, title
from snnbench.units import MS, S, number
from snnbench.worker.durations import Summary

PEAKS = {"host_peak": "host memory", "device_peak": "device memory"}


class NothingToExport(UserError):
    """A recording has no time and no peak of work that is the same; the message names it."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A time [ns] or a peak [bytes] of a contender in a case: its name, its summary over trials, all repetitions."""

    name: str
    metric: str
    summary: Summary
    result: Result
    repetitions: list[tuple[float, ...]]

    @property
    def is_time(self) -> bool:
        """Whether it is a time, in ns."""
        return self.metric == "time"


def measured(recording: Recording) -> list[Measured]:
    """Every time and peak. Raises NothingToExport."""
    every = list(_measured(recording))
    if not every:
        raise NothingToExport(f"{recording.name}: no time and no peak to export; it only verifies, or all cells failed")
    return every


def _measured(recording: Recording) -> Iterator[Measured]:
    for case, results in results_by_case(recording.records).items():
        for result in (result for result in results if result.verdict in ("exact", "equivalent")):
            for (phase, metric), summary in result.summaries.items():
                if metric == "time" or metric in PEAKS:
                    what = f"{phase} {PEAKS.get(metric, 'time')}"
                    repetitions = result.repetitions.get(phase, []) if metric == "time" else []
                    yield Measured(f"{result.contender}, {what}, {title(case)}", metric, summary, result, repetitions)


def bmf(recording: Recording) -> str:
    """Bencher Metric Format."""
    document: dict[str, Any] = {}
    for each in measured(recording):
        values = {"value": each.summary.median, "lower_value": each.summary.low, "upper_value": each.summary.high}
        document[each.name] = {"latency" if each.is_time else each.metric.replace("_", "-"): values}
    return _json(document)


def github_action_benchmark(recording: Recording) -> str:
    """github-action-benchmark's `customSmallerIsBetter`."""
    entries = []
    lacking = f"; {words}" if (words := missing(recording)) else ""
    for each in measured(recording):
        unit, size = ("ms", MS) if each.is_time else ("bytes", 1.0)
        low, high = number(each.summary.low / size), number(each.summary.high / size)
        entry = {"name": each.name, "unit": unit, "value": each.summary.median / size}
        about = f"{each.result.verdict}, version {each.result.version}, {each.summary.count} trials{lacking}"
        entries.append(entry | {"range": f"{low} to {high}", "extra": about})
    return _json(entries)


def pyperf(recording: Recording) -> str:
    """A suite of pyperf; times only, for a peak has no repetitions."""
    benchmarks = []
    for each in (each for each in measured(recording) if each.is_time):
        runs = [{"values": [ns / S for ns in trial]} for trial in each.repetitions if trial]
        about = {"name": each.name, "unit": "second", "loops": 1, "description": f"snnbench, {each.result.verdict}"}
        benchmarks.append({"metadata": about, "runs": runs})
    about = {"hostname": recording.model or "unknown"}
    about |= {"description": lacking} if (lacking := missing(recording)) else {}
    return _json({"version": "1.0", "metadata": about, "benchmarks": benchmarks})


def asv(recording: Recording, commit: str) -> str:
    """A results file of airspeed velocity for a commit of the library: results/MACHINE/COMMIT-snnbench.json."""
    started = min(
        (record.started for record in recording.records if record.started), default="1970-01-01T00:00:00+00:00"
    )
    date_ms = int(datetime.fromisoformat(started).timestamp() * 1000)
    columns = ["result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b"]
    columns += ["stats_q_25", "stats_q_75", "stats_number", "stats_repeat"]
    results: dict[str, list[Any]] = {}
    for each in measured(recording):
        size = S if each.is_time else 1.0
        median, low, high = (value / size for value in (each.summary.median, each.summary.low, each.summary.high))
        quartiles = [[None], [None], [low], [high], [1], [each.summary.count]]
        results[each.name] = [[median], [], "1", date_ms, None, *quartiles]
    document = {
        "commit_hash": commit,
        "env_name": "snnbench",
        "date": date_ms,
        "params": {"machine": recording.model or "unknown", "python": "", "snnbench": recording.version or ""},
        "python": "",
        "requirements": {},
        "env_vars": {},
        "result_columns": columns,
        "results": results,
        "durations": {},
        "version": 2,
    }
    return _json(document)


FORMATS: dict[str, Callable[[Recording], str]] = {
    "bmf": bmf,
    "github-action-benchmark": github_action_benchmark,
    "pyperf": pyperf,
}
"""The formats that need nothing but a recording."""


def _json(document: Any) -> str:
    return json.dumps(document, indent=1, allow_nan=False) + "\n"
