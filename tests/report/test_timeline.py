"""Tests of the chart of one cell over time, on the page of the cell."""

from snnbench.report.site import cell_page, site
from snnbench.report.site.catalogue import Catalogue, Entry, cell_name
from tests.recordings import timed
from tests.system.test_site import dated, steady

NAME = cell_name(timed("fast/loop").case, "fast/loop")


def entries(*milliseconds: float) -> tuple[Catalogue, list[Entry]]:
    """Recordings of a cell with these times, one each day, and the entries of the cell."""
    made = [dated(steady(ms), f"2026-11-{day}", f"r{day}") for day, ms in enumerate(milliseconds, start=20)]
    catalogue = Catalogue(made)
    return catalogue, catalogue.by_cell[NAME]


def test_newest_recording_stands_on_top() -> None:
    catalogue, known = entries(1.0, 2.0)
    (chart,) = cell_page.charts(known)
    assert [row[0] for row in chart.table.rows] == ["r21", "r20"]
    assert [row[-1] for row in chart.table.rows] == ["2 (2-2)", "1 (0.998-1)"]
    assert "2 recordings on 1 kind of machine" in chart.words
    assert 'id="timeline"' in dict(site.files(catalogue))[f"cells/{NAME}.html"].decode()


def test_single_recording_has_no_chart() -> None:
    catalogue, known = entries(1.0)
    assert cell_page.charts(known) == []
    assert 'id="timeline"' not in dict(site.files(catalogue))[f"cells/{NAME}.html"].decode()
