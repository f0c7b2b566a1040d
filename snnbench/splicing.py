"""Splicing: generated tables in a document that people write, between two marks that do not show."""

from pathlib import Path

START, END = "<!-- snnbench report: start -->", "<!-- snnbench report: end -->"


class SpliceError(ValueError):
    """The document has no place for the tables."""


def splice(path: Path, text: str) -> None:
    """Replace what stands between the marks in the file at `path`."""
    document = path.read_text(encoding="utf-8")
    before, start, rest = document.partition(START)
    _, end, after = rest.partition(END)
    if not (start and end):
        raise SpliceError(f"{path}: no place for tables; put '{START}' and '{END}' where they belong")
    path.write_text(f"{before}{START}\n{text}{END}{after}", encoding="utf-8")
