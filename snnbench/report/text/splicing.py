"""Splicing of generated tables into a handwritten document, between two invisible marks."""

from pathlib import Path

from snnbench.exits import UserError


def marks(name: str = "") -> tuple[str, str]:
    """Start and end mark of a place; a document with several places names each."""
    of = f" {name}" if name else ""
    return f"<!-- snnbench report{of}: start -->", f"<!-- snnbench report{of}: end -->"


class SpliceError(UserError):
    """The document has no place for the tables."""


def splice(path: Path, text: str, name: str = "") -> None:
    """Replace the text between the marks of this name in the file at `path`. Raises SpliceError."""
    start_mark, end_mark = marks(name)
    document = path.read_text(encoding="utf-8")
    before, start, rest = document.partition(start_mark)
    _, end, after = rest.partition(end_mark)
    if not (start and end):
        raise SpliceError(f"{path}: no place for tables; put '{start_mark}' and '{end_mark}' where they belong")
    path.write_text(f"{before}{start_mark}\n{text}{end_mark}{after}", encoding="utf-8")
