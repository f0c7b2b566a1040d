"""The outcome of a benchmark: tables that the terminal shows as Markdown, and a JSON document with the machine."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import snnbench
from snnbench.machine import description
from snnbench.report.section import Table
from snnbench.report.text import markdown

_tables: list[dict[str, Any]] = []


def show(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()) -> None:
    """Print a table with its notes, and keep it for `write`. The first column holds words, the others numbers."""
    table = {"title": title, "columns": list(columns), "rows": [list(row) for row in rows], "notes": list(notes)}
    _tables.append(table)
    print(shown(table), flush=True)


def shown(table: dict[str, Any]) -> str:
    """A table of an outcome as Markdown, with its title and notes."""
    text = f"### {table['title']}\n\n{markdown.table(Table(table['columns'], table['rows']))}\n"
    return text + "".join(f"\n- {note}" for note in table["notes"]) + "\n" * bool(table["notes"])


def write(path: Path, name: str, arguments: Sequence[str]) -> None:
    """Write the tables of this process, and the machine, as JSON.

    Some hosts hide the processor's name, so its family, model and stepping are there, too.
    """
    facts = description.facts()
    document = {
        "benchmark": name,
        "arguments": list(arguments),
        "date": datetime.now(UTC).date().isoformat(),
        "snnbench": snnbench.__version__,
        "machine": facts["model"],
        "processor": facts["cpu"]["identity"],
        "tables": _tables,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
