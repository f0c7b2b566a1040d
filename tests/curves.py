"""The picture of false accusations and missed faults against the range of each field, from the table of proof.md.

`python -m tests.drawn` prints that table. A bar ends where the share may lie at most, by a one-sided test at 95 %: no
accusation in 100 programs still allows 3 %.
"""

import re
from pathlib import Path
from typing import Any

import altair as alt

from snnbench.report.charts import style
from snnbench.report.page.figures import FONT, PADDING
from tests.drawn import RANGES

PAGE = Path(__file__).parents[1] / "docs" / "explanations" / "proof.md"
ROW = re.compile(r"\| `(?P<field>\w+)` (?P<part>[\d.]+ to [\d.]+) \| .*")
TITLES = ("right programs accused", "faults missed")
CONFIDENCE = 0.95
WIDTH = 150
"""Width of a panel in px."""


def rows() -> list[dict[str, Any]]:
    """Both shares of each part of a range, from the page."""
    found = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if match := ROW.fullmatch(line):
            _, _, _, accused, _, seen, _, missed = (cell.strip() for cell in line.strip("|").split("|"))
            few, programs = map(int, accused.split(" of "))
            shares = ((few, programs), (int(missed), int(seen) + int(missed)))
            for title, (count, total) in zip(TITLES, shares, strict=True):
                found.append({**match.groupdict(), "title": title, **share(count, total)})
    return found


def share(count: int, total: int) -> dict[str, Any]:
    """A share in percent, the highest that the count allows (Clopper & Pearson 1934), and both numbers in words."""
    from scipy.special import betaincinv

    highest = betaincinv(count + 1, total - count, CONFIDENCE) if count < total else 1.0
    return {"percent": 100 * count / total, "most": 100 * float(highest), "words": f"{count} of {total}"}


def words() -> str:
    """The picture for a reader who does not see it."""
    found = rows()
    most = {title: max(row["percent"] for row in found if row["title"] == title) for title in TITLES}
    return " and ".join(f"{title}: at most {most[title]:.2g} %" for title in TITLES) + ", in each part of each range"


def drawn(mode: str) -> str:
    """The picture as SVG for a `light` or `dark` ground."""
    import vl_convert

    found = rows()
    chart = alt.vconcat(*(_field(found, field) for field in RANGES), spacing=12).resolve_scale(x="shared")
    colours = style.variables(mode)
    config = style.configuration(colours, FONT) | {"title": {"color": colours["--ink"]}}
    specification = chart.to_dict(validate=False) | {"config": config, "padding": PADDING}
    return str(vl_convert.vegalite_to_svg(specification))


def _field(found: list[dict[str, Any]], field: str) -> Any:
    """The two panels of a field."""
    last = field == list(RANGES)[-1]
    shown = [[row for row in found if (row["field"], row["title"]) == (field, title)] for title in TITLES]
    panels = [_panel(one, last) for one in shown]
    return alt.hconcat(*panels, spacing=20, bounds="flush")


def _panel(shown: list[dict[str, Any]], last: bool) -> Any:
    first = shown[0]
    title = first["title"] if first["field"] == next(iter(RANGES)) else ""
    left = first["title"] == TITLES[0]
    labels = alt.Axis(title=first["field"] if left else None, labels=left, labelPadding=8, ticks=False, domain=False)
    y = alt.Y("part:N", sort=None, axis=labels)
    axis = alt.Axis(title="%" if last else None, labels=last, ticks=last, tickCount=4)
    x = alt.X("percent:Q", scale=alt.Scale(domain=[0, 9]), axis=axis)
    colour = alt.Color("title:N", scale=alt.Scale(domain=list(TITLES), range="category"), legend=None)
    base = alt.Chart(style.data(shown)).encode(y=y, color=colour)
    layers = [
        base.mark_rule(strokeWidth=2).encode(x, alt.X2("most:Q")),
        base.mark_line().encode(x),
        base.mark_point(filled=True, size=45).encode(x),
        alt.Chart(style.data(shown)).mark_text(align="left", dx=5).encode(alt.X("most:Q"), y, text="words:N"),
    ]
    return alt.layer(*layers).properties(width=WIDTH, height=alt.Step(18), title=alt.Title(title, fontSize=11))
