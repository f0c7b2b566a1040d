"""The tables of docs/explanations/open-neuromorphic.md: rows of the chart, and the same libraries in a recording."""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from recordings import ROOT, newest

from snnbench.analysis.results import Result, results_by_case
from snnbench.cases.case import Case
from snnbench.recording.reading import Recording
from snnbench.report.numbers import counted
from snnbench.report.section import Table
from snnbench.report.text import markdown
from snnbench.units import MIB, MS, number

DATA = ROOT / "docs" / "assets" / "open-neuromorphic-16k.csv"
"""The chart's values: docker/data.csv of open-neuromorphic.github.io at commit 0d3fc213, the rows of 16384 neurons."""
YARDSTICK = "SpikingJelly PyTorch v0.0.0.0.15"
"""The row that others are divided by, in both tables: it runs all steps, in plain PyTorch."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the chart: the steps of 500 that it ran, why its time is another, and its contender and profile here."""

    steps: int
    difference: str
    contender: str
    profile: str = "subtract"
    dtype: str = "float32"


ROWS: Mapping[str, Row] = {
    "Rockpool v2.7": Row(500, "two states, several spikes a step, trains its time constants", "rockpool/torch"),
    "Rockpool EXODUS v2.7": Row(500, "as Rockpool", "rockpool/exodus"),
    "Sinabs v1.2.10": Row(500, "never fires: its input is scaled by 1 - beta", "sinabs"),
    "Sinabs EXODUS v1.1.2": Row(500, "as Sinabs", "sinabs/exodus"),
    "Norse v1.0.0": Row(1, "a cell of one step, on the array of all steps; never fires", "norse/box"),
    "snnTorch v0.7.0": Row(500, "the reset acts one step late", "snntorch/unbind", "zero"),
    YARDSTICK: Row(500, "hardly fires: its input is divided by 5", "spikingjelly/auto"),
    "Lava DL v0.4.0.dev0": Row(500, "threshold 0.1, fixed point; its product is TF32", "lava-dl/slayer", "zero"),
    "SpikingJelly CuPy v0.0.0.0.15": Row(500, "as SpikingJelly PyTorch", "spikingjelly/cupy"),
    "Spyx full-precision v0.1.18": Row(16, "unrolls the batch; its input is ones; TF32", "spyx-haiku/documented"),
    "Spyx half-precision v0.1.18": Row(
        16, "unrolls the batch; its input is ones; 16 bits", "spyx-haiku/documented", dtype="float16"
    ),
}


def published() -> dict[str, tuple[float, float, float | None]]:
    """Seconds of forward and backward, and bytes of memory, of each row of the chart."""
    with DATA.open(encoding="utf-8", newline="") as file:
        return {
            line["row"]: (
                float(line["forward_s"]),
                float(line["backward_s"]),
                float(line["memory_bytes"]) if line["memory_bytes"] else None,
            )
            for line in csv.DictReader(file)
        }


def published_table() -> str:
    """The rows of the chart, the fastest first."""
    values = published()
    lines = []
    for name, (forward, backward, memory) in sorted(values.items(), key=lambda item: item[1][0] + item[1][1]):
        row = ROWS[name]
        ratio = (forward + backward) / sum(values[YARDSTICK][:2])
        mebibytes = "-" if memory is None else f"{memory / MIB:.0f}"
        lines.append(
            (
                name,
                f"{forward:.4f}",
                f"{backward:.4f}",
                f"{ratio:.2f}",
                mebibytes,
                f"{row.steps} of 500",
                row.difference,
            )
        )
    columns = ("row of the chart", "forward s", "backward s", "ratio", "memory MiB", "time steps run", "other work")
    return markdown.table(Table(columns, lines, numbers=columns[1:5]))


def cases(recording: Recording) -> dict[Case, dict[str, Result]]:
    """The results by contender in each case of the chart's largest size: on a GPU if there is one, else on the CPU."""
    every = {
        case: {result.contender: result for result in results}
        for case, results in results_by_case(recording.records).items()
        if case.input_kind == "gaussian" and case.precision == "ieee"  # type: ignore[attr-defined]
    }
    largest = max(every, key=lambda case: (case.device == "cuda", case.neurons), default=None) if every else None
    return {
        case: results
        for case, results in every.items()
        if largest and (case.device, case.neurons) == (largest.device, largest.neurons)
    }


def recorded_rows(recording: Recording) -> Iterator[tuple[str, ...]]:
    """A row for each row of the chart: contender, profile, times in ms, both ratios, and the verdict."""
    known, values = cases(recording), published()
    for name, (forward, backward, _) in sorted(values.items(), key=lambda item: item[1][0] + item[1][1]):
        row = ROWS[name]
        there = f"{(forward + backward) / sum(values[YARDSTICK][:2]):.2f}"
        case = next((case for case in known if (case.profile, case.dtype) == (row.profile, row.dtype)), None)
        result = known[case].get(row.contender) if case else None
        if case is None or result is None:
            yield name, f"`{row.contender}`", row.profile, "-", "-", "-", "-", there, "not run"
            continue
        if result.failure or ("train", "time") not in result.summaries:
            yield name, f"`{row.contender}`", row.profile, "-", "-", "-", "-", there, "; ".join(result.reasons[:1])
            continue
        times = [result.summaries[phase, "time"].median for phase in ("forward", "backward", "train")]
        yardstick = known[case][ROWS[YARDSTICK].contender].summaries["train", "time"].median
        shown = (number(time / MS) for time in times)
        yield name, f"`{row.contender}`", row.profile, *shown, f"{times[-1] / yardstick:.2f}", there, result.verdict


def recorded_table(recording: Recording) -> str:
    """The same libraries in a recording, with a sentence on its size and its machine."""
    case = next(iter(cases(recording)))
    trials = counted(recording.protocol["trials"], "trial")
    head = (
        f"The recording is `results/{recording.name}` ({recording.model or 'an unknown machine'}): {case.device}, "
        f"N = {case.neurons}, B = {case.batch}, T = {case.time_steps}, {trials}.\n\n"
    )
    columns = (
        *("row of the chart", "contender here", "profile", "forward ms", "backward ms", "train ms"),
        *("ratio here", "ratio in the chart", "verdict"),
    )
    return head + markdown.table(Table(columns, list(recorded_rows(recording)), numbers=columns[3:8]))


def open_neuromorphic() -> dict[str, str]:
    """Both tables of the page; the second has the newest recording."""
    return {"published": published_table(), "recorded": recorded_table(newest("open-neuromorphic"))}
