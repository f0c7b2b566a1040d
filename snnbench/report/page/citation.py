"""Citations of a recording: BibTeX, and a citation file (Citation File Format 1.2.0)."""

import json
import re
from collections.abc import Sequence

from snnbench.recording.reading import Recording
from snnbench.report.wording import model

AUTHORS = "The snnbench authors"
SPECIAL = {char: f"\\{char}" for char in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}
"""Escapes of the characters that are special in TeX."""


def bibtex(recordings: Sequence[Recording]) -> str:
    """An entry per recording."""
    return "\n".join(_entry(recording) for recording in recordings)


def cff(recordings: Sequence[Recording]) -> str:
    """CITATION.cff for the data of these recordings. JSON strings are valid YAML, so no text can break out of them."""
    names = ", ".join(recording.name for recording in recordings)
    dates = [date for recording in recordings if (date := measured(recording))]
    lines = [
        "cff-version: 1.2.0",
        'message: "If you use these measurements, please cite them as below."',
        "type: dataset",
        f"title: {json.dumps(f'snnbench recording {names}')}",
        "authors:",
        f"  - name: {json.dumps(AUTHORS)}",
        f"version: {json.dumps(', '.join(dict.fromkeys(_version(recording) for recording in recordings)))}",
    ]
    lines += [f"date-released: {json.dumps(max(dates))}"] if dates else []
    abstracts = [f"{recording.name}: {model(recording)}" for recording in recordings]
    return "\n".join([*lines, f"abstract: {json.dumps('; '.join(abstracts))}", ""])


def measured(recording: Recording) -> str:
    """The day of the last record, `2026-11-21`; empty without records."""
    return max((record.started[:10] for record in recording.records if record.started), default="")


def _entry(recording: Recording) -> str:
    key = re.sub(r"[^A-Za-z0-9:_-]", "-", recording.name) or "recording"
    year = measured(recording)[:4]
    fields = [
        ("author", f"{{{AUTHORS}}}"),
        ("title", f"{{snnbench}} recording {_tex(recording.name)}"),
        ("note", f"snnbench {_tex(_version(recording))}, {_tex(model(recording))}"),
        *([("year", year)] if year else []),
    ]
    body = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields)
    return f"@misc{{{key},\n{body}\n}}\n"


def _version(recording: Recording) -> str:
    return recording.version or "of an unknown version"


def _tex(text: str) -> str:
    """Text as TeX sets it, on one line."""
    return "".join(SPECIAL.get(char, char) for char in " ".join(text.split()))
