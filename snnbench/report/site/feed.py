"""The Atom feed (RFC 4287): an entry for each recording. Its addresses are relative, as the site may lie anywhere."""

from xml.etree import ElementTree

from snnbench.recording.reading import Recording
from snnbench.report import answer
from snnbench.report.page.citation import AUTHORS
from snnbench.report.site.catalogue import Catalogue, file_name, question
from snnbench.report.wording import model

ATOM = "http://www.w3.org/2005/Atom"
UNKNOWN = "1970-01-01T00:00:00+00:00"
"""The time of a recording whose records have none."""


def feed(title: str, catalogue: Catalogue) -> bytes:
    """The feed of all recordings, the newest first."""
    recordings = catalogue.recordings
    ElementTree.register_namespace("", ATOM)
    root = ElementTree.Element(f"{{{ATOM}}}feed")
    _add(root, "title", title)
    _add(root, "id", "urn:snnbench:recordings")
    _add(root, "updated", max((updated(recording) for recording in recordings), default=UNKNOWN))
    _add(_add(root, "author"), "name", AUTHORS)
    _add(root, "link", rel="self", href="feed.xml")
    _add(root, "link", rel="alternate", href="index.html")
    for recording in recordings:
        entry = _add(root, "entry")
        _add(entry, "title", f"{question(recording)} on {model(recording)}")
        _add(entry, "id", f"urn:snnbench:recording:{file_name(recording.name)}")
        _add(entry, "updated", updated(recording))
        _add(entry, "link", rel="alternate", href=f"recordings/{file_name(recording.name)}.html")
        summary = f"{answer.coverage(recording)}. {catalogue.summaries[recording.name]}"
        _add(entry, "summary", summary)
    ElementTree.indent(root)
    content: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return content


def updated(recording: Recording) -> str:
    """The time of the last record, as RFC 3339 writes it."""
    return max((record.started for record in recording.records if record.started), default=UNKNOWN)


def _add(parent: ElementTree.Element, name: str, text: str = "", **attributes: str) -> ElementTree.Element:
    element = ElementTree.SubElement(parent, f"{{{ATOM}}}{name}", attributes)
    element.text = text or None
    return element
