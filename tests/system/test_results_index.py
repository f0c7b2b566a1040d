"""Tests of results/README.md: it is that of the recordings which are there."""

import pytest

from snnbench.report.section import Chart
from snnbench.report.site.catalogue import Catalogue
from tests import results_index
from tests.pictures import words
from tests.results_index import CHARTS, INDEX


@pytest.fixture(scope="module")
def known() -> Catalogue:
    return results_index.catalogue()


@pytest.fixture(scope="module")
def charts(known: Catalogue) -> dict[str, Chart]:
    return results_index.largest_charts(known)


def test_index_is_up_to_date(known: Catalogue, charts: dict[str, Chart]) -> None:
    text = INDEX.read_text(encoding="utf-8")
    assert text == results_index.index(known, charts), "python -m tests.results_index writes it"


def test_every_recording_is_in_the_index() -> None:
    text = INDEX.read_text(encoding="utf-8")
    for folder in (path.parent for path in INDEX.parent.glob("*/records.jsonl")):
        assert text.count(f"[{folder.name}]({folder.name})") == 1


def test_charts_show_the_recordings(charts: dict[str, Chart]) -> None:
    """Positions may differ between versions of the drawing program."""
    drawn = results_index.pictures(charts)
    assert drawn.keys() == {path.name for path in CHARTS.iterdir()}
    text = INDEX.read_text(encoding="utf-8")
    for name, svg in drawn.items():
        assert words((CHARTS / name).read_text(encoding="utf-8")) == words(svg), name
        assert text.count(name) == 1
