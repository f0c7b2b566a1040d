"""The index of the recordings, results/README.md, and its charts: `python -m tests.results_index` writes them anew."""

from collections import Counter
from collections.abc import Iterable, Mapping

from snnbench.recording.reading import Recording
from snnbench.report import answer as answers
from snnbench.report.overview import find
from snnbench.report.page import figures
from snnbench.report.page.citation import measured
from snnbench.report.page.outline import outline
from snnbench.report.section import Chart, Section, Table
from snnbench.report.site.catalogue import Catalogue, asks, load, question
from snnbench.report.text import markdown
from snnbench.report.wording import missing, model
from tests.pictures import IMAGES, ROOT

INDEX = ROOT / "results" / "README.md"
CHARTS = IMAGES / "recordings"
VERDICTS = ("exact", "equivalent", "deviates")
TEXT = """\
# Recordings

Each folder is one run of a config, the newest first. `snnbench report results/NAME` shows it, and
`snnbench check results/NAME` holds it against the rules of measurement. `snnbench site results -o site` makes pages of
all of them. [Findings](../docs/findings.md) says what they show. `python -m tests.results_index` writes this file.

{recordings}

## Answers

The newest recording of each config on each kind of machine, with the largest legible chart of its times.
"""
ANSWER = """
### {name}

{asks}

{answer}{missing}
"""
MOST_ROWS = 24
"""The most rows of a chart here, if a smaller chart exists: more lines cross too often to be read."""
PICTURE = """
<picture>
<source media="(prefers-color-scheme: dark)" srcset="../docs/images/recordings/{name}-dark.svg">
<img alt="{words}" src="../docs/images/recordings/{name}-light.svg">
</picture>
"""


def catalogue() -> Catalogue:
    """The recordings in results/."""
    return load(INDEX.parent)


def largest_charts(known: Catalogue) -> dict[str, Chart]:
    """The largest legible chart in the first section of charts of each recording's page, by the recording's name."""
    outlines = {recording.name: outline(recording) for recording in known.latest}
    return {name: chart for name, sections in outlines.items() if (chart := _largest(sections))}


def _largest(sections: Iterable[Section]) -> Chart | None:
    charts = next((section.charts for section in sections if section.charts), ())
    legible = [chart for chart in charts if len(chart.table.rows) <= MOST_ROWS] or charts[:1]
    return max(legible, key=lambda chart: len(chart.table.rows), default=None)


def index(known: Catalogue, charts: Mapping[str, Chart]) -> str:
    """The whole file."""
    columns = ["recording", "config", "machine", "day", *VERDICTS, "failed"]
    rows = [_row(recording) for recording in known.recordings]
    parts = [TEXT.format(recordings=markdown.table(Table(columns, rows, texts=4)))]
    for recording in known.latest:
        answer = " ".join(answers.summary(find(recording)))
        lacking = f" {missing(recording)}." if recording.closed else ""
        parts.append(ANSWER.format(name=recording.name, asks=asks(recording), answer=answer, missing=lacking))
        if recording.name in charts:
            words = charts[recording.name].words.replace('"', "'")
            parts.append(PICTURE.format(name=recording.name, words=words))
    return "".join(parts)


def _row(recording: Recording) -> list[str]:
    """Numbers of contenders and cases by verdict."""
    pairs = {(record.case, record.label): record for record in recording.records}
    counts = Counter(record.outcome.verdict for record in pairs.values() if record.status == "measured")
    failed = sum(record.status == "failed" for record in pairs.values())
    about = [f"[{recording.name}]({recording.name})", question(recording), model(recording), measured(recording)]
    return [*about, *(str(counts[verdict]) for verdict in VERDICTS), str(failed)]


def pictures(charts: Mapping[str, Chart]) -> dict[str, str]:
    """The SVG of every chart by the name of its file."""
    grounds = ("light", "dark")
    return {
        f"{name}-{ground}.svg": figures.drawn(chart, ground) for name, chart in charts.items() for ground in grounds
    }


def write() -> None:
    """Write the file and its charts, and remove the charts of recordings that went."""
    known = catalogue()
    charts = largest_charts(known)
    INDEX.write_text(index(known, charts), encoding="utf-8")
    drawn = pictures(charts)
    CHARTS.mkdir(exist_ok=True)
    for path in CHARTS.iterdir():
        if path.name not in drawn:
            path.unlink()
    for name, text in drawn.items():
        (CHARTS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
    print(f"{INDEX.relative_to(ROOT)}: written")
