"""Upgrades of documents of an older snnbench, done once, when they are read. A rule of `check` goes by schema."""

from typing import Any

from snnbench.plan.given_axes import workload_of
from snnbench.workloads import DEFAULT


def record(document: Any) -> None:
    """A line of records.jsonl: before schema 3 all inputs were spikes."""
    if document["schema"] < 3:
        document["case"]["input_kind"] = "spikes"


def resolved(config: Any) -> None:
    """The config in config.json: before schema 3 all inputs were spikes."""
    for sweep in config["sweep"]:
        if workload_of(sweep) == DEFAULT:
            sweep.setdefault("input_kind", "spikes")
