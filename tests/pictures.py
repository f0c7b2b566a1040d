"""The pictures of README and docs, drawn from committed recordings: charts for light and dark, and a terminal.

python -m tests.pictures    # draws them anew
"""

import re
import tempfile
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

from rich.console import Console
from rich.text import Text

from snnbench.recording.reading import read
from snnbench.report.page import figures
from snnbench.report.page.outline import outline
from tests import curves
from tests.screens import screen
from tests.shipped import QUICK

ROOT = Path(__file__).parents[1]
RECORDING = ROOT / "results" / QUICK
SWEEP = ROOT / "results" / "2026-11-23_sweep_epyc-2cpu"
FUSION = ROOT / "results" / "2026-11-23_temporal-fusion_epyc-2cpu"
DEPTH = ROOT / "results" / "2026-11-23_depth_epyc-2cpu"
LOADING = ROOT / "results" / "2026-11-25_loading_xeon-2cpu"
TRAINING = ROOT / "results" / "2026-11-24_training_epyc-2cpu"
CARDS = ROOT / "results" / "2026-11-26_cards_h200"
DEVICES = ROOT / "results" / "2026-11-23_devices_epyc-2cpu"
IMAGES = ROOT / "docs" / "images"
COLUMNS = 100
CHARTS = {
    **{"quick": (RECORDING, "time-1"), "memory": (RECORDING, "memory-1"), "pareto": (RECORDING, "pareto-1")},
    **{"split": (RECORDING, "split-1"), "first-call": (RECORDING, "first-call-1"), "noise": (RECORDING, "noise-1")},
    **{"lines": (SWEEP, "time-1"), "machine": (SWEEP, "noise-machine"), "ratios": (FUSION, "ratio-1")},
    **{"depth": (DEPTH, "scaling-layers-2"), "devices": (DEVICES, "time-3")},
    **{"epochs": (LOADING, "epochs-1"), "gpu": (CARDS, "time-1")},
}
"""Picture -> a recording and its figure; each picture is drawn for a light and for a dark ground."""
CURVES = "drawn-cases"
PICTURES = [f"{name}-{ground}.svg" for name in (*CHARTS, CURVES) for ground in ("light", "dark")]
FRAME = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace; font-size: {char_height}px;
  line-height: {line_height}px; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""Rich's picture of a terminal without fonts from a network."""


def charts() -> dict[str, str]:
    """The charts by the names of their pictures."""
    drawn = {}
    outlines = {recording: outline(read(recording)) for recording in {recording for recording, _ in CHARTS.values()}}
    for name, (recording, figure) in CHARTS.items():
        (chart,) = (chart for section in outlines[recording] for chart in section.charts if chart.name == figure)
        for ground in ("light", "dark"):
            drawn[f"{name}-{ground}.svg"] = figures.drawn(chart, ground)
    return drawn | {f"{CURVES}-{ground}.svg": curves.drawn(ground) for ground in ("light", "dark")}


def terminal(folder: Path) -> str:
    """The screen of `snnbench report` in a terminal, as SVG."""
    shown = screen(folder, COLUMNS, "report", RECORDING)
    assert shown.status == 0, shown.text
    with open("/dev/null", "w") as nowhere:
        console = Console(file=nowhere, width=COLUMNS, record=True, force_terminal=True)
        console.print(Text.from_ansi(shown.raw.replace("\r\n", "\n")))
    svg = console.export_svg(title="snnbench report", code_format=FRAME, unique_id="snnbench")
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def words(svg: str) -> Counter[str]:
    """The texts of a picture, without regard to their positions."""
    texts = (
        " ".join(re.sub("\u00a0", " ", "".join(one.itertext())).split()) for one in ElementTree.fromstring(svg).iter()
    )
    return Counter(text for text in texts if text)


def draw() -> None:
    """Write all pictures."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in charts().items():
            (IMAGES / name).write_text(text, encoding="utf-8")
        (IMAGES / "terminal.svg").write_text(terminal(Path(folder)), encoding="utf-8")


if __name__ == "__main__":
    draw()
