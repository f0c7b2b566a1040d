"""Figures for papers: the charts of a report as SVG and PDF, with citations of their recordings."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from snnbench.files import replace_file
from snnbench.recording.reading import Recording
from snnbench.report.page import citation
from snnbench.report.page.outline import outline
from snnbench.report.section import Chart

WIDTH = 420
"""Width in px, which are points in a PDF: a column of most papers, or a little more."""
FONT = "Helvetica, Arial, sans-serif"
PADDING = {"left": 24, "right": 5, "top": 5, "bottom": 5}
"""Empty space around a chart in px; at the left for names in a font that is wider than the one that measured them."""


def write(recordings: Sequence[Recording], folder: Path) -> Iterator[tuple[Path, str]]:
    """Write all figures and citations into `folder`, created if missing; yield each file with a description.

    Each figure is an SVG for light paper, one for a dark ground (`-dark`), and a PDF.
    """
    import vl_convert

    folder.mkdir(parents=True, exist_ok=True)
    for number, recording in enumerate(recordings, start=1):
        prefix = f"r{number}-" if len(recordings) > 1 else ""
        for chart in (chart for section in outline(recording) for chart in section.charts):
            names = (f"{chart.name}.svg", f"{chart.name}-dark.svg", f"{chart.name}.pdf")
            svg, on_dark, pdf = (folder / f"{prefix}{name}" for name in names)
            replace_file(svg, drawn(chart, "light").encode())
            replace_file(on_dark, drawn(chart, "dark").encode())
            replace_file(pdf, vl_convert.vegalite_to_pdf(_specification(chart, "light")))
            yield svg, f"(and {on_dark.name}, {pdf.suffix}) {chart.words}"
    for name, text in (("citation.bib", citation.bibtex(recordings)), ("CITATION.cff", citation.cff(recordings))):
        replace_file(folder / name, text.encode())
        yield folder / name, "how to cite this"


def drawn(chart: Chart, mode: str) -> str:
    """A chart as SVG for a `light` or `dark` ground."""
    import vl_convert

    return str(vl_convert.vegalite_to_svg(_specification(chart, mode)))


def _specification(chart: Chart, mode: str) -> dict[str, Any]:
    from snnbench.report.charts import style

    configuration = style.configuration(style.variables(mode), FONT)
    return chart.specification | {"width": WIDTH, "padding": PADDING, "config": configuration}
