"""The pictures of the README, drawn from a committed recording: a chart for light and dark, and a terminal.

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
from tests.screens import screen

ROOT = Path(__file__).parents[1]
RECORDING = ROOT / "results" / "2026-11-21_quick_epyc-2cpu_4"
IMAGES = ROOT / "docs" / "images"
COLUMNS = 100
CHARTS = {"quick-light.svg": "time-1.svg", "quick-dark.svg": "time-1-dark.svg"}
"""Picture -> figure of the recording: the training times of the first case."""
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


def charts(folder: Path) -> dict[str, str]:
    """The charts by the names of their pictures; `folder` takes the other figures."""
    list(figures.write([read(RECORDING)], folder))
    return {picture: (folder / figure).read_text(encoding="utf-8") for picture, figure in CHARTS.items()}


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
        for name, text in charts(Path(folder)).items():
            (IMAGES / name).write_text(text, encoding="utf-8")
        (IMAGES / "terminal.svg").write_text(terminal(Path(folder)), encoding="utf-8")


if __name__ == "__main__":
    draw()
