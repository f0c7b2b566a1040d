"""The index of the recordings, results/README.md: `python -m tests.results_index` writes it anew."""

from collections import Counter
from pathlib import Path

from snnbench.recording.reading import Recording
from snnbench.report.page.citation import measured
from snnbench.report.section import Table
from snnbench.report.site.catalogue import asks, load, question
from snnbench.report.text import table as tables
from snnbench.report.wording import model

ROOT = Path(__file__).parents[1]
INDEX = ROOT / "results" / "README.md"
VERDICTS = ("exact", "equivalent", "deviates")
TEXT = """\
# Recordings

Each folder is one run of a config, the newest first. `snnbench report results/NAME` shows it, and
`snnbench check results/NAME` holds it against the rules of measurement. `snnbench site results -o site` makes pages of
all of them.
[Findings](../docs/findings.md) says what they show. `python -m tests.results_index` writes this file.

{recordings}

The files `*.json` are recordings of `snnbench nir`, which runs NIR graphs: {graphs}.
[NIR graphs](../docs/explanations/nir.md) has their tables.
"""


def index(folder: Path = INDEX.parent) -> str:
    """The whole file."""
    catalogue = load(folder)
    columns = ["recording", "config", "asks", "machine", "day", *VERDICTS, "failed"]
    rows = [_row(recording) for recording in catalogue.recordings]
    table = tables.markdown(Table(columns, rows, texts=5))
    return TEXT.format(recordings=table, graphs=", ".join(f"`{path.name}`" for path in sorted(folder.glob("*.json"))))


def _row(recording: Recording) -> list[str]:
    """Numbers of contenders and cases by verdict."""
    pairs = {(record.case, record.label): record for record in recording.records}
    counts = Counter(record.outcome.verdict for record in pairs.values() if record.status == "measured")
    failed = sum(record.status == "failed" for record in pairs.values())
    about = [f"[{recording.name}]({recording.name})", question(recording), asks(recording), model(recording)]
    return [*about, measured(recording), *(str(counts[verdict]) for verdict in VERDICTS), str(failed)]


if __name__ == "__main__":
    INDEX.write_text(index(), encoding="utf-8")
    print(f"{INDEX.relative_to(ROOT)}: written")
