"""Splicing of generated tables into a handwritten document, between two invisible marks."""

from pathlib import Path

from snnbench.exits import UserError
from snnbench.files import replace_file


def marks(name: str = "") -> tuple[str, str]:
    """Start and end mark of a place; a document with several places names each."""
    of = f" {name}" if name else ""
    return f"<!-- snnbench report{of}: start -->", f"<!-- snnbench report{of}: end -->"


class SpliceError(UserError):
    """The document has no place for the tables."""


def splice(path: Path, text: str, name: str = "") -> None:
    """Replace the text between the marks of this name in the file at `path`, whole or not at all.

    The rest of the file and its line endings stay. Raises SpliceError, OSError.
    """
    start_mark, end_mark = marks(name)
    try:
        document = path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise SpliceError(f"{path}: {error}") from error
    before, start, rest = document.partition(start_mark)
    _, end, after = rest.partition(end_mark)
    if not (start and end):
        raise SpliceError(f"{path}: no place for tables; put '{start_mark}' and '{end_mark}' where they belong")
    inside = f"\n{text}"
    if rest.startswith("\r\n"):
        inside = inside.replace("\n", "\r\n")
    replace_file(path, f"{before}{start_mark}{inside}{end_mark}{after}".encode())
