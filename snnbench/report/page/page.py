"""The page: recordings as one HTML file that needs no network, no server and nothing beside it.

Names, messages and prose in a recording are untrusted. Jinja escapes all of them. Inlined JSON cannot end its element.
The page's policy allows only its own scripts, by their hashes, and fetches nothing.
"""

import base64
import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import snnbench
from snnbench.recording.reading import Recording
from snnbench.report import wording
from snnbench.report.page.citation import measured
from snnbench.report.page.outline import OPEN, outline
from snnbench.report.section import Section

TEMPLATE = Path(__file__).parent / "template"
FONT = "system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif"
GROUNDS = {
    "light": {"--ground": "#FFFFFF", "--raised": "#F5F5F3", "--link": "#00558C"},
    "dark": {"--ground": "#161616", "--raised": "#222222", "--link": "#8CC4EE"},
}


@dataclass(frozen=True, slots=True)
class Part:
    """One recording on the page, or any other sections; `prefix` makes its anchors unique.

    `folded` names the sections that a reader unfolds. `source` says under a saved chart where its numbers come from.
    """

    sections: Sequence[Section]
    prefix: str = ""
    name: str = ""
    machine: str = ""
    analysis: Sequence[str] = ()
    shared: str = ""
    folded: Collection[str] = ()
    source: str = ""


def html(recordings: Sequence[Recording]) -> str:
    """The page of some recordings."""
    parts = [part_of(recording, f"r{number}-") for number, recording in enumerate(recordings, start=1)]
    return document(recordings[0].name if len(recordings) == 1 else f"{len(recordings)} recordings", parts)


def document(title: str, parts: Sequence[Part], crumbs: Sequence[tuple[str, str]] = ()) -> str:
    """A whole HTML file; `crumbs` are (name, address) of pages above it."""
    from markupsafe import Markup

    from snnbench.report.charts import style

    drawn = {
        f"{part.prefix}{chart.name}": chart.specification
        for part in parts
        for section in part.sections
        for chart in section.charts
    }
    names = {name: f"var({name})" for name in style.variables("light")}
    data = {"configuration": style.configuration(names, FONT), "specifications": drawn}
    has_tables = any(section.tables for part in parts for section in part.sections)
    scripts = [_script("page.js")] if has_tables or drawn else []
    scripts += [_library(), _script("charts.js")] if drawn else []
    return str(
        template(TEMPLATE / "page.html").render(
            title=title,
            version=snnbench.__version__,
            policy=policy(scripts),
            style=Markup(css()),
            parts=parts,
            crumbs=crumbs,
            data=Markup(inlined(data)) if drawn else "",
            scripts=[Markup(script) for script in scripts],
        )
    )


def inlined(value: Any) -> str:
    """JSON for a script element: without `<`, which could end it, and `&`, which could start an entity."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def part_of(recording: Recording, prefix: str) -> Part:
    """The sections of one recording."""
    sections = outline(recording)
    paragraphs = str(recording.resolved.get("analysis", "")).split("\n\n")
    cases = {record.case: None for record in recording.records}
    day, version = measured(recording), f"snnbench {recording.version or 'of an unknown version'}"
    return Part(
        sections,
        prefix=prefix,
        name=recording.name,
        machine=wording.model(recording),
        analysis=[" ".join(paragraph.split()) for paragraph in paragraphs if paragraph.strip()],
        shared=wording.shared(cases),
        folded=[section.name for section in sections if section.is_bare or section.name not in OPEN],
        source=", ".join(part for part in (recording.name, wording.model(recording), day, version) if part),
    )


@cache
def template(path: Path) -> Any:
    """A template of a whole page, which may include those beside it and those of this package."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader([path.parent, TEMPLATE])
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return environment.get_template(path.name)


def policy(scripts: Iterable[str]) -> str:
    """The Content-Security-Policy: it allows these scripts and inline styles only."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts if script]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes) or "'none'"
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


@cache
def css() -> str:
    """The rules and colours of every page, light and dark."""
    from snnbench.report.charts import style

    rules = {
        mode: "".join(f"{name}:{value};" for name, value in (style.variables(mode) | GROUNDS[mode]).items())
        for mode in GROUNDS
    }
    dark = f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {rules['dark']} }} }}"
    return f":root {{ {rules['light']} }}\n{dark}\n{(TEMPLATE / 'page.css').read_text(encoding='utf-8')}"


@cache
def _script(name: str) -> str:
    return (TEMPLATE / name).read_text(encoding="utf-8")


@cache
def _library() -> str:
    """Vega, Vega-Lite and Vega-Embed in one script."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle.replace("</script", "<\\/script")
