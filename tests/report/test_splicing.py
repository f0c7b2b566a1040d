"""Tests of splicing tables into a document, and that the README and the guide have what `snnbench report` prints."""

import os
import re
from functools import cache
from pathlib import Path

import pytest

from snnbench.report.text.splicing import SpliceError, marks, splice
from tests import in_process
from tests.documents import ROOT, written
from tests.recording.test_torn_lines import file_size_limit
from tests.shipped import QUICK

START, END = marks()
BEFORE, AFTER = "# A readme\n\nwords, µ\n", "\nmore words\n"


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "README.md"
    path.write_text(f"{BEFORE}{START}\nold tables\n{END}{AFTER}", encoding="utf-8")
    return path


def test_only_text_between_the_marks_is_replaced(document: Path) -> None:
    splice(document, "| new |\n")
    assert document.read_text(encoding="utf-8") == f"{BEFORE}{START}\n| new |\n{END}{AFTER}"


def test_splicing_is_idempotent(document: Path) -> None:
    splice(document, "| new |\n")
    once = document.read_text(encoding="utf-8")
    splice(document, "| new |\n")
    assert document.read_text(encoding="utf-8") == once


@pytest.mark.parametrize("text", ["no marks", f"{START} and no end", f"{END} before {START}", ""])
def test_document_without_marks_is_refused_and_unchanged(tmp_path: Path, text: str) -> None:
    path = tmp_path / "README.md"
    path.write_text(text)
    with pytest.raises(SpliceError, match="no place for tables; put '<!-- snnbench report: start -->'"):
        splice(path, "| new |\n")
    assert path.read_text() == text


def test_named_marks_are_separate(document: Path) -> None:
    start, end = marks("defaults")
    assert len({start, end, START, END}) == 4
    before = document.read_text(encoding="utf-8")
    document.write_text(f"{before}{start}\n{end}", encoding="utf-8")
    splice(document, "| named |\n", "defaults")
    assert document.read_text(encoding="utf-8") == f"{before}{start}\n| named |\n{end}"
    with pytest.raises(SpliceError, match="snnbench report others: start"):
        splice(document, "| named |\n", "others")


def test_document_stays_whole_on_a_full_disk(document: Path) -> None:
    before = document.read_bytes()
    with file_size_limit(len(before)), pytest.raises(OSError, match="too large"):
        splice(document, "| new |\n" * 100)
    assert (document.read_bytes(), [path.name for path in document.parent.iterdir()]) == (before, [document.name])


def test_document_keeps_its_line_endings_its_mode_and_its_link(document: Path, tmp_path: Path) -> None:
    document.write_bytes(document.read_bytes().replace(b"\n", b"\r\n"))
    document.chmod(0o640)
    (tmp_path / "link.md").symlink_to(document)
    splice(tmp_path / "link.md", "| new |\n| rows |\n")
    expected = f"{BEFORE}{START}\n| new |\n| rows |\n{END}{AFTER}".replace("\n", "\r\n")
    assert (document.read_bytes(), document.stat().st_mode & 0o777) == (expected.encode(), 0o640)
    assert (tmp_path / "link.md").is_symlink()


GUIDE = ROOT / "docs" / "guides" / "read-a-report.md"


@cache
def report(*options: str) -> str:
    """What `snnbench report` prints of QUICK into a pipe."""
    done = in_process.run(["report", f"results/{QUICK}", *options], ROOT, os.environ)
    assert done.returncode == 0, done.stderr
    return done.stdout


def cells(text: str) -> list[list[str]]:
    """The rows of the first table in a text, the head first."""
    lines = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert lines
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[0].splitlines()]
    return [rows[0], *rows[2:]]


def test_readme_table_has_the_values_of_the_recording() -> None:
    head, *rows = cells(report())
    columns = [head.index(name) for name in ("library", "verdict", "train ms", "ratio", "x floor")]
    expected = [[row[column].partition(" (")[0] for column in columns] for row in rows]
    readme_head, *readme_rows = cells(written(ROOT / "README.md"))
    assert readme_head == ["library", "verdict", "train ms", "ratio to torch-loop", "times the floor"]
    assert len(expected) > 5
    assert readme_rows == expected


def test_readme_is_short() -> None:
    assert len(written(ROOT / "README.md").encode()) < 9000


def test_guide_names_every_section_of_the_page() -> None:
    titles = re.findall(r'<h2 id="[\w-]+-title">([^<]*)</h2>', report("--format", "html"))
    assert {"In short", "Time", "Provenance"} <= set(titles)
    assert not [title for title in titles if f"- **{title}**" not in written(GUIDE)]
