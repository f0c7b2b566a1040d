"""Tests of splicing tables into a document."""

from pathlib import Path

import pytest

from snnbench.report.text.splicing import SpliceError, marks, splice

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
