"""The first page of the site as one HTML file: its choices, one chart and one table, drawn by a script within it."""

from pathlib import Path

import snnbench
from snnbench.report.page import page as documents
from snnbench.report.site import explorer_data as data
from snnbench.report.site.catalogue import Catalogue, file_name

FOLDER = Path(__file__).parent / "explorer"
SCRIPTS = ("explorer.js", "matrix.js", "start.js")
TITLE = "Which spiking-network library is fastest for your network?"


def html(catalogue: Catalogue) -> str:
    """The page. It links to the other pages of the site."""
    from markupsafe import Markup

    script = "".join((FOLDER / name).read_text(encoding="utf-8") for name in SCRIPTS)
    style = f"{documents.css()}\n{(FOLDER / 'explorer.css').read_text(encoding='utf-8')}"
    ways = [("Every result in one table", "results.html"), ("Questions, answers and recordings", "questions.html")]
    ways += [(name, f"libraries/{file_name(name)}.html") for name in catalogue.by_library]
    return str(
        documents.template(FOLDER / "explorer.html").render(
            title=TITLE,
            version=snnbench.__version__,
            policy=documents.policy([script]),
            style=Markup(style),
            choices=data.CHOICES,
            libraries=len(catalogue.by_library),
            cells=f"{catalogue.proved:,}",
            ways=ways,
            data=Markup(documents.inlined(data.document(catalogue))),
            script=Markup(script),
        )
    )
