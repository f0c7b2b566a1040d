"""Tests of pictures: those of README and docs say what the recordings say, and figures are written to files."""

import os
from collections import Counter
from pathlib import Path

import pytest

from tests import curves, in_process, pictures
from tests.shipped import QUICK, shipped

TERMINAL = "terminal.svg"


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The pictures, drawn again; `python -m tests.pictures` writes them."""
    folder = tmp_path_factory.mktemp("pictures")
    return pictures.charts() | {TERMINAL: pictures.terminal(folder)}


@pytest.mark.parametrize("name", [*pictures.PICTURES, TERMINAL])
def test_picture_is_of_the_committed_recording(drawn: dict[str, str], name: str) -> None:
    text = (pictures.IMAGES / name).read_text(encoding="utf-8")
    assert pictures.words(text) == pictures.words(drawn[name])
    assert pictures.words(text) and "url(http" not in text


@pytest.mark.parametrize("name", [*pictures.CHARTS, pictures.CURVES])
def test_light_and_dark_charts_differ_in_colours_only(name: str) -> None:
    light, dark = (pictures.IMAGES / f"{name}-{ground}.svg" for ground in ("light", "dark"))
    assert light.read_text(encoding="utf-8") != dark.read_text(encoding="utf-8")
    assert pictures.words(light.read_text(encoding="utf-8")) == pictures.words(dark.read_text(encoding="utf-8"))


def test_picture_of_the_drawn_cases_has_the_numbers_of_the_table() -> None:
    """And its text alternative says the same."""
    texts = pictures.words((pictures.IMAGES / f"{pictures.CURVES}-light.svg").read_text(encoding="utf-8"))
    numbers = Counter(row["words"] for row in curves.rows())
    assert numbers and numbers <= texts
    assert f"![{curves.words()}](../images/{pictures.CURVES}-light.svg" in curves.PAGE.read_text(encoding="utf-8")


def test_figures_are_written_to_files(tmp_path: Path) -> None:
    done = in_process.run(["report", shipped(QUICK), "--figures", "figures"], tmp_path, os.environ)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert {"time-1.svg", "time-1.pdf", "memory-1.svg", "citation.bib", "CITATION.cff"} <= names
