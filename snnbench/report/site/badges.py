"""Badges: a library's distance from the floor in the newest recording of a question, as SVG and as JSON for shields.io.

The number is that of the library's fastest exact contender in the largest case in which it has one. The label names
this work, for two badges of one recording may stand for different work.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from snnbench.recording.reading import Recording
from snnbench.report.site.catalogue import Catalogue, Entry, file_name, question
from snnbench.report.site.tables import times_floor
from snnbench.report.wording import model

COLOURS = {"exact": "#1F6F43", "equivalent": "#00558C"}
"""Colours of the verdicts, on which white text has a contrast of at least 6 to 1."""
CHARACTER = 6.6
"""px of a character of 11 px, on average."""
MARGIN = 6
SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{label}: {message}">
<title>{label}: {message}</title>
<rect width="{width}" height="20" rx="3" fill="#333333"/>
<path d="M{left} 0h{right_less}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-{right_less}z" fill="{colour}"/>
<g fill="#FFFFFF" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
<text x="{margin}" y="14" textLength="{label_width}">{label}</text>
<text x="{start}" y="14" textLength="{message_width}">{message}</text>
</g>
</svg>
"""


@dataclass(frozen=True, slots=True)
class Badge:
    """A library's badge of one recording; `address` is that of its files in the site, without an ending."""

    library: str
    recording: Recording
    entry: Entry
    address: str

    @property
    def label(self) -> str:
        """The work: libraries without the same largest size have badges of different work."""
        return f"snnbench {self.entry.case.kind}, {self.entry.case.sizes()}"

    @property
    def message(self) -> str:
        """`1.4x floor, exact`."""
        return f"{times_floor(self.entry):.1f}x floor, {self.entry.result.verdict}"

    @property
    def colour(self) -> str:
        """The colour of the verdict."""
        return COLOURS[self.entry.result.verdict]

    def files(self) -> Iterator[tuple[str, str]]:
        """(address, content) of the SVG, and of the JSON that shields.io draws one from."""
        document = {
            "schemaVersion": 1,
            "label": self.label,
            "message": self.message,
            "color": self.colour.removeprefix("#"),
        }
        yield f"{self.address}.svg", svg(self.label, self.message, self.colour)
        yield f"{self.address}.json", json.dumps(document) + "\n"


def badges(catalogue: Catalogue) -> list[Badge]:
    """The badges of all libraries."""
    made = []
    for recording in catalogue.latest:
        folder = file_name(f"{question(recording)}-{model(recording)}")
        best: dict[str, Entry] = {}
        for entry in catalogue.entries:
            if entry.recording is not recording or entry.result.verdict not in COLOURS or not times_floor(entry):
                continue
            if entry.library not in best or _rank(entry) < _rank(best[entry.library]):
                best[entry.library] = entry
        made += [Badge(name, recording, best[name], f"badges/{folder}/{file_name(name)}") for name in best]
    return made


def svg(label: str, message: str, colour: str) -> str:
    """A badge of two fields."""
    label_width, message_width = (round(CHARACTER * len(text)) for text in (label, message))
    left = label_width + 2 * MARGIN
    width = left + message_width + 2 * MARGIN
    return SVG.format(
        width=width,
        left=left,
        right_less=width - left - 3,
        colour=colour,
        margin=MARGIN,
        label_width=label_width,
        message_width=message_width,
        start=left + MARGIN,
        label=escape(label),
        message=escape(message),
    )


def _rank(entry: Entry) -> tuple[int, int, float]:
    """Exact before equivalent, then the largest work, then the least distance from the floor."""
    return entry.result.verdict != "exact", -entry.case.updates, times_floor(entry) or 0.0
