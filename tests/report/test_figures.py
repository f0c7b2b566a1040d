"""Tests of figures for papers: every chart as SVG and PDF, in its own colours, with lines to cite it."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from snnbench.report.charts import style
from snnbench.report.page import figures
from snnbench.report.page.outline import outline
from tests.recordings import recording, timed, weighed


def written(folder: Path, *names: str) -> dict[str, str]:
    """The line about each file, for recordings with these names."""
    records = [timed("a<&", train=1.0, forward=1.0, backward=2.0), timed("b", train=2.0), weighed("a<&"), weighed("b")]
    made = [recording(*records, name=name) for name in names]
    return {path.name: said for path, said in figures.write(made, folder)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("figures")
    written(made, "monday")
    return made


def test_every_chart_of_the_page_is_a_figure(folder: Path) -> None:
    records = [timed("a<&", train=1.0, forward=1.0, backward=2.0), timed("b", train=2.0), weighed("a<&"), weighed("b")]
    charts = {chart.name for section in outline(recording(*records)) for chart in section.charts}
    assert charts == {"time-1", "memory-1", "pareto-1", "split-1", "first-call-1"}
    assert {path.stem for path in folder.glob("*.pdf")} == charts
    assert {path.stem for path in folder.glob("*.svg")} == charts | {f"{name}-dark" for name in charts}


def test_figure_has_colours_and_names_and_no_css_variable(folder: Path) -> None:
    text = (folder / "pareto-1.svg").read_text(encoding="utf-8")
    words = [element.text for element in ElementTree.fromstring(text).iter() if element.text]
    assert {"a<&", "b", "train, ms"} <= set(words)
    assert style.LIGHT[0].lower() in text.lower() and "var(" not in text
    on_dark = (folder / "pareto-1-dark.svg").read_text(encoding="utf-8")
    assert style.DARK[0].lower() in on_dark.lower() and style.INKS["dark"][0].lower() in on_dark.lower()
    assert style.LIGHT[0].lower() not in on_dark.lower()


def test_pdf_files_are_pdfs(folder: Path) -> None:
    assert all(path.read_bytes().startswith(b"%PDF-") for path in folder.glob("*.pdf"))


def test_each_file_is_listed_with_its_content_and_citation(tmp_path: Path) -> None:
    descriptions = written(tmp_path / "new" / "folder", "monday", "tuesday")
    assert descriptions["r1-time-1.svg"].startswith(
        "(and r1-time-1-dark.svg, .pdf) Time of train: reset by subtraction, CPU"
    )
    assert "r2-time-1.svg" in descriptions and {"citation.bib", "CITATION.cff"} <= descriptions.keys()
    cited = (tmp_path / "new" / "folder" / "citation.bib").read_text(encoding="utf-8")
    assert cited.count("@misc{") == 2
