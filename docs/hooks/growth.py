"""The tables of docs/findings.md on growth with the time steps: its cause, its size, and what patches change."""

from itertools import groupby
from math import log
from statistics import median

from recordings import newest, ranked, recording, require, source, time_ns

from snnbench.analysis.abtest import compare_sides
from snnbench.analysis.comparisons import Comparison, sides_of
from snnbench.analysis.results import results_by_case
from snnbench.report.section import Table
from snnbench.report.text import markdown
from snnbench.worker.durations import Summary

MIDDLE = (256, 16, 1)
"""Neurons, batch and layers of the case from which the config `scaling` varies one size at a time."""


def indexing() -> str:
    """What reading each time step by its index costs, beside unbinding the tensor once."""
    recording, rows = newest("neuron-share"), []
    for profile, library in (("subtract", "torch-loop"), ("zero", "snntorch")):
        for case, results in ranked("neuron-share", profile):
            times = {result.contender: time_ns(result) for result in results}
            pair = f"{library}/index", f"{library}/unbind"
            if all(name in times for name in pair):
                index_ms, unbind_ms = (times[name] / 1e6 for name in pair)
                size = case.as_dict()["neurons"]
                rows.append([library, str(size), f"{unbind_ms:.1f}", f"{index_ms:.1f}", f"{index_ms / unbind_ms:.2f}"])
    return markdown.table(Table(["library", "N", "unbind ms", "index ms", "ratio"], rows)) + source(recording)


def growth() -> str:
    """How the backward pass grows with the time steps: the exponent between the two largest numbers, in each trial."""
    recording = newest("scaling")
    times: dict[str, dict[int, Summary]] = {}
    for case, results in results_by_case(recording.records).items():
        fields = case.as_dict()
        if (fields["neurons"], fields["batch"], fields["layers"]) == MIDDLE:
            for result in (each for each in results if each.verdict == "exact"):
                times.setdefault(result.contender, {})[case.time_steps] = result.summaries["backward", "time"]
    rows = []
    for contender, by_steps in times.items():
        *_, before, last = sorted(by_steps)
        pairs = zip(by_steps[before].trials, by_steps[last].trials, strict=True)
        exponents = sorted(log(late / early) / log(last / before) for early, late in pairs)
        shown = f"{median(exponents):.2f} ({exponents[0]:.2f} to {exponents[-1]:.2f})"
        medians = (f"{by_steps[steps].median / 1e6:.1f}" for steps in sorted(by_steps))
        rows.append((median(exponents), [contender, *medians, shown]))
    steps = sorted(next(iter(times.values())))
    columns = ["library", *(f"T = {step}, ms" for step in steps), "exponent"]
    return markdown.table(Table(columns, [row for _, row in sorted(rows, reverse=True)])) + source(recording)


PATCHED = "2026-11-30_growth_epyc-2cpu"
"""The A/B test of each library as released and with its patch of docs/patches/."""
HALF = "2026-11-30_growth-rockpool_epyc-2cpu"
"""That of Rockpool with the first half of its patch alone."""


def backward(name: str) -> list[Comparison]:
    """The comparisons of backward passes in an A/B test, in the order of libraries and steps."""
    known = compare_sides(recording(name)).each
    timed = [one for one in known if (one.phase, one.metric) == ("backward", "time")]
    require({one.word for one in timed} == {"faster"}, "every backward pass is faster")
    return sorted(timed, key=lambda one: (one.contender, one.case.time_steps))


def patched() -> str:
    """The backward pass of each library as released and patched, with the exponents between the two largest T."""
    rows = []
    for contender, each in groupby(backward(PATCHED), key=lambda one: one.contender):
        own = list(each)
        steps = [one.case.time_steps for one in own]
        sides = [[side.summary.median for side in both] for both in zip(*map(sides_of, own), strict=True)]
        times = [f"{base / 1e6:.1f} to {new / 1e6:.1f}" for base, new in zip(*sides, strict=True)]
        exponents = [log(ns[-1] / ns[-2]) / log(steps[-1] / steps[-2]) for ns in sides]
        rows.append([contender, *times, f"{own[-1].ratio:.2f}", " to ".join(f"{one:.2f}" for one in exponents)])
    columns = ["library", *(f"T = {step}, ms" for step in steps), f"ratio at {steps[-1]}", "exponent"]
    return markdown.table(Table(columns, rows)) + source(recording(PATCHED), "compare")


def half() -> dict[str, str]:
    """What Rockpool's backward pass gains over 400 steps if its input is unbound, and its output is not stacked."""
    *_, longest = backward(HALF)
    return {"ratio": f"{longest.ratio:.2f}"}
