"""The style of charts: colours that colour-blind readers can tell apart, each with a shape and a dash.

A specification has no colours. The page's configuration names CSS variables, so that one drawing serves light, dark and
print; a figure's configuration has the colours themselves.
"""

from collections.abc import Sequence
from itertools import cycle, islice
from typing import Any

import altair as alt

LIGHT = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#4D4D4D")
"""Okabe & Ito 2008 without yellow, which is invisible on white paper, and with grey for black."""
DARK = ("#5AA9E6", "#F0803C", "#2CC295", "#E08FBF", "#F0B429", "#A6DCF7", "#C8C8C8")
"""The same hues on a dark ground."""
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
DASHES = ([1, 0], [6, 3], [2, 2], [9, 3, 2, 3], [12, 4])
"""7 colours, 6 shapes and 5 dashes are pairwise coprime, so the first 210 contenders differ."""
SHADES = {
    "light": ("#1B4F72", "#5B9BC8", "#C6DDEE"),
    "dark": ("#D5E8F5", "#7FB2D9", "#2F6FA3"),
}
"""Colours of the parts of a bar, which differ in black and white, too."""
PARTS = ("--c0", "--c5", "--c2", "--c3", "--c6", "--c4", "--shade0", "--c1", "--shade2")
"""The colours of the nine parts of an epoch: more than the contenders have."""
INKS = {"light": ("#222222", "#6B6B6B", "#E2E2E2"), "dark": ("#E6E6E6", "#A3A3A3", "#3A3A3A")}
"""Colours of text and marks, of labels, and of grid lines."""
PANEL = 300
"""Height of a chart in px, without the strip above its scale."""
COLUMNS = 2
"""Columns of a figure's legend; the page takes as many as fit."""
ROW = 22
"""Height in px of a row with its name at the side."""
LABEL = 210
"""The most px of a name; the page gives a row's name at most two fifths of a chart."""


def variables(mode: str) -> dict[str, str]:
    """The colours of a mode, `light` or `dark`, by the names of CSS variables."""
    colours = LIGHT if mode == "light" else DARK
    named = {f"--c{number}": colour for number, colour in enumerate(colours)}
    named |= {f"--shade{number}": colour for number, colour in enumerate(SHADES[mode])}
    return named | dict(zip(("--ink", "--label", "--grid"), INKS[mode], strict=True))


def configuration(colours: dict[str, str], font: str) -> dict[str, Any]:
    """Vega-Lite's `config`, with a colour for each name that `variables` gives."""
    ink, label, grid = (colours[name] for name in ("--ink", "--label", "--grid"))
    lettering = {"labelColor": label, "titleColor": ink, "labelFontSize": 11, "titleFontSize": 11}
    return {
        "background": None,
        "aria": False,  # the enclosing element describes the chart
        "font": font,
        "view": {"stroke": None},
        "axis": {**lettering, "gridColor": grid, "domainColor": label, "tickColor": label, "titleFontWeight": "normal"},
        "axisY": {"labelLimit": LABEL},
        "legend": {
            **lettering,
            "labelLimit": LABEL,
            "symbolSize": 70,
            "orient": "bottom",
            "columns": COLUMNS,
            "columnPadding": 24,
            "symbolLimit": 0,  # none: a legend of over 30 contenders would lose some
        },
        "mark": {"color": ink},
        "text": {"color": ink, "fill": ink, "fontSize": 11},
        "rule": {"color": ink},
        "bar": {"stroke": label, "strokeWidth": 0.5},
        "range": {
            "category": [colours[f"--c{number}"] for number in range(len(LIGHT))],
            "ordinal": [colours[f"--shade{number}"] for number in range(3)],
            "diverging": [colours[name] for name in PARTS],
        },
    }


def data(rows: Sequence[dict[str, Any]]) -> alt.InlineData:
    """Rows inside the specification."""
    return alt.InlineData(values=list(rows))


def color(names: Sequence[str], shown: Sequence[str]) -> alt.Color:
    """The contender's colour, the same in every chart of a recording, with a legend of the shown contenders."""
    return alt.Color("library:N", scale=alt.Scale(domain=names, range="category"), legend=_legend(shown))


def shape(names: Sequence[str], shown: Sequence[str]) -> alt.Shape:
    """The contender's shape."""
    shapes = list(islice(cycle(SHAPES), len(names)))
    return alt.Shape("library:N", scale=alt.Scale(domain=names, range=shapes), legend=_legend(shown))


def dash(names: Sequence[str], shown: Sequence[str]) -> alt.StrokeDash:
    """The contender's dash."""
    dashes = list(islice(cycle(DASHES), len(names)))
    return alt.StrokeDash("library:N", scale=alt.Scale(domain=names, range=dashes), legend=_legend(shown))


def logarithmic(values: Sequence[float], base: int = 10) -> alt.Scale:
    """A logarithmic scale that holds these values with a margin."""
    return alt.Scale(type="log", base=base, nice=False, domain=[min(values) / 1.25, max(values) * 1.25])


def rows_axis(names: Sequence[str]) -> alt.Y:
    """A row for each contender, in this order."""
    axis = alt.Axis(title=None, labelPadding=6, ticks=False, domain=False)
    return alt.Y("library:N", sort=None, scale=alt.Scale(domain=list(names)), axis=axis)


def tooltip(**fields: str) -> list[alt.Tooltip]:
    """A tooltip's fields by their titles."""
    return [alt.Tooltip(field, title=title.replace("_", " ")) for title, field in fields.items()]


def layered(*layers: Any, independent: str = "") -> dict[str, Any]:
    """Charts over each other, in Vega-Lite; the scales of the `independent` channel are not shared.

    Altair's own layers copy each chart several times, which takes longer than all the rest of a chart.
    """
    resolve = {"resolve": {"scale": {independent: "independent"}}} if independent else {}
    documents = [dict(_vega_lite(layer)) for layer in layers]
    rows = {name: values for each in documents for name, values in each.pop("datasets").items()}
    return {"layer": documents, "datasets": rows, **resolve}


def specification(chart: Any, height: int) -> dict[str, Any]:
    """A chart or layers as Vega-Lite, as wide as its container."""
    size = {"width": "container", "height": height, "autosize": {"type": "fit-x", "contains": "padding"}}
    return _vega_lite(chart) | size


def _vega_lite(chart: Any) -> dict[str, Any]:
    if isinstance(chart, dict):
        return chart
    document: dict[str, Any] = chart.to_dict(validate=False)
    for ours in ("config", "$schema"):  # page and figure add a configuration of their own and use one Vega-Lite
        document.pop(ours, None)
    return document


def _legend(shown: Sequence[str]) -> alt.Legend:
    # Solid outlines: dashes would break them, and the dashes cannot be left out of the shared legend.
    return alt.Legend(values=list(shown), title=None, symbolDash=[1, 0], symbolStrokeWidth=1)
