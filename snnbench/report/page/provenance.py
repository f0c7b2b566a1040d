"""The section of provenance: machine, versions, config and citation."""

import json
from collections.abc import Iterator
from typing import Any

from snnbench.recording.facts import flat
from snnbench.report.overview import Overview
from snnbench.report.page import citation
from snnbench.report.section import Section, Table
from snnbench.report.wording import missing, model

LEFT_OUT = ("schema", "model")


def section(overview: Overview) -> Section:
    """All facts that a reader needs to repeat the measurement."""
    recording = overview.recording
    config, commit = recording.resolved, recording.config.get("revision")
    about = [
        ["recording", recording.name],
        ["snnbench", " ".join([recording.version or "unknown", *([f"at {commit}"] if commit else [])])],
        ["measured", citation.measured(recording) or "unknown"],
        ["finished", missing(recording) or ("yes" if recording.finished else "no")],
        *([["only", str(only)]] if (only := recording.config.get("only")) else []),
    ]
    machine = {name: value for name, value in recording.machine.items() if name not in LEFT_OUT}
    facts = [["model", model(recording)], *map(list, _known(machine))]
    installed = recording.environments
    folded = [("The resolved config", json.dumps(config, indent=2, ensure_ascii=False))] if config else []
    folded += [("Everything installed, by environment", json.dumps(installed, indent=2))] if installed else []
    return Section(
        "provenance",
        "Provenance",
        tables=[
            Table(["recording", "value"], about, texts=2),
            Table(["machine", "value"], facts, texts=2),
            Table(["library", "version", "framework", "adapter", "environment"], _versions(overview), texts=5),
        ],
        brief="machine, versions, config, and how to cite it",
        folded=[*folded, ("How to cite it", citation.bibtex([recording]))],
    )


def _known(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(name, value) of every known fact."""
    for path, value in sorted(flat(facts), key=lambda fact: fact[0]):
        if value not in (None, "", []):
            name = path.replace(".", " ").replace("_", " ")
            yield name, ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _versions(overview: Overview) -> list[list[str]]:
    rows = {}
    for record in overview.recording.records:
        frameworks = [
            f"{name} {record.settings[name]}" for name in ("torch", "jax", "numpy") if record.settings.get(name)
        ]
        row = [record.label, record.version or "-", ", ".join(frameworks) or "-", record.adapter or "-"]
        rows[record.label] = [*row, record.environment or "-"]
    return [rows[name] for name in sorted(rows)]
