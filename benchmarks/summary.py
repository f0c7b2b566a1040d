"""The summary of what the benchmarks said: README.md beside this file, made from the outcomes beside it."""

import json
from pathlib import Path
from typing import Any

from benchmarks.outcome import shown

HERE = Path(__file__).parent
OUTCOMES, README = HERE / "outcomes", HERE / "README.md"
START, END = "<!-- outcomes -->\n", "<!-- end of outcomes -->"


def write() -> None:
    """Put the outcomes between the marks of README.md."""
    README.write_text(spliced(README.read_text(encoding="utf-8")), encoding="utf-8")


def spliced(text: str) -> str:
    """The text with every outcome between its marks, by the names of their files. Raises ValueError without marks."""
    before, _, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"{README.name}: expected the marks {START.strip()} and {END}")
    documents = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(OUTCOMES.glob("*.json"))]
    return f"{before}{START}\n{''.join(map(section, documents))}{end}{after}"


def section(document: dict[str, Any]) -> str:
    """The tables of one outcome, under the command that made them."""
    command = " ".join(["python -m benchmarks", document["benchmark"], *document["arguments"]])
    processor = f" (family-model-stepping {document['processor']})" if "processor" in document else ""
    heading = f"## {document['benchmark']}\n\n`{command}`, {document['date']}, {document['machine']}{processor}.\n\n"
    return heading + "".join(f"{shown(table)}\n" for table in document["tables"])
