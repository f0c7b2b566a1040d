"""Tests of the page of two committed recordings in a browser: boxes at every width, folding, columns, pictures."""

import base64
import re
from pathlib import Path
from typing import Any

import pytest

from snnbench.recording.reading import read
from snnbench.report.page import page
from tests.processes import within
from tests.shipped import QUICK, RESULTS
from tests.system.test_browser import OVERFLOW, requested_addresses, show
from tests.whole import WHOLE

pytestmark = pytest.mark.browser

CORE = "2026-11-26_core_epyc-2cpu"
LOOKS = [(360, "light"), (768, "dark"), (1280, "light"), (1920, "dark")]
LOOKS += [(360, "dark"), (768, "light"), (1280, "dark"), (1920, "light")] if WHOLE else []
PAPER_PX = 718
"""The width of A4 between the margins of a browser."""
BOXES = """
const seen = {contentVisibilityAuto: true, visibilityProperty: true, opacityProperty: true};
const clipped = (box, element) => {
  const {left, top, right, bottom} = element.closest('.scroll')?.getBoundingClientRect() ?? box;
  return {left: Math.max(box.left, left), top: Math.max(box.top, top),
    right: Math.min(box.right, right), bottom: Math.min(box.bottom, bottom)};
};
const texts = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode, element = node.parentElement;
  if (!node.textContent.trim() || element.closest('script, style, pre, .empty')) continue;
  if (!element.checkVisibility(seen)) continue;
  const range = document.createRange();
  range.selectNodeContents(node);
  for (const box of range.getClientRects()) texts.push({words: node.textContent.trim(), ...clipped(box, element)});
}
texts.sort((a, b) => a.top - b.top);
const overlaps = [];
texts.forEach((a, place) => {
  for (let next = place + 1; next < texts.length && texts[next].top < a.bottom - 4; next++) {
    const b = texts[next];
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    if (wide > 1 && Math.min(a.bottom, b.bottom) - b.top > 4) overlaps.push(`${a.words} | ${b.words}`);
  }
});
const outside = [...document.querySelectorAll('body *')].filter(
  (element) => element.checkVisibility(seen) && element.getBoundingClientRect().right > innerWidth + 1);
const cut = [...document.querySelectorAll('.scroll')].filter((one) => one.scrollWidth > one.clientWidth + 1);
const names = outside.map((element) => element.outerHTML.slice(0, 99));
return [texts.length, overlaps, names, cut.map((one) => one.ariaLabel)];
"""
UNFOLD = "document.querySelectorAll('details').forEach((details) => { details.open = true; })"
HEADINGS = """
const headings = [...document.querySelectorAll('#r1-cells thead th')];
return headings.filter(heading => heading.checkVisibility()).map(heading => heading.innerText);
"""
FROM = "2026-11-26_core_epyc-2cpu, AMD EPYC (Zen 4, family 25 model 17), 2 CPUs, 24 GiB, 2026-11-26, snnbench 0.2.0"


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    for name in (CORE, QUICK):
        (folder / f"{name}.html").write_text(page.html([read(RESULTS / name)]), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in (CORE, QUICK)}


@pytest.fixture
def core(browser: Any, paths: dict[str, Path]) -> Any:
    """A browser that shows the larger page."""
    show(browser, paths[CORE], 1280, "light")
    return browser


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
@pytest.mark.parametrize("name", [CORE, QUICK])
def test_nothing_is_cut_or_overlaps(browser: Any, paths: dict[str, Path], name: str, width: int, scheme: str) -> None:
    show(browser, paths[name], width, scheme)
    browser.execute_script(UNFOLD)
    assert within(20, lambda: not browser.execute_script(BOXES)[3]), "a table is cut"
    count, overlaps, outside, _ = browser.execute_script(BOXES)
    assert count > 1000 and (overlaps, outside) == ([], [])
    needed, there = browser.execute_script(OVERFLOW)
    assert needed <= there == width
    assert browser.get_log("browser") == [] and requested_addresses(browser) == [paths[name].as_uri()]


def is_open(browser: Any, name: str) -> bool:
    return bool(browser.execute_script(f"return document.getElementById('r1-{name}').closest('details').open"))


def test_link_and_address_unfold_a_section(core: Any, paths: dict[str, Path]) -> None:
    assert not is_open(core, "memory")
    core.execute_script("document.querySelector('nav a[href=\"#r1-memory\"]').click()")
    assert within(20, lambda: is_open(core, "memory")) and not is_open(core, "noise")
    core.get("about:blank")
    core.get(f"{paths[CORE].as_uri()}#r1-noise")
    assert within(20, lambda: is_open(core, "noise")) and not is_open(core, "memory")


def test_columns_leave_by_priority_and_come_back(core: Any, paths: dict[str, Path]) -> None:
    headings = core.execute_script(HEADINGS)
    assert headings == ["library", "work", "T", "verdict", "train ms", "ratio", "x floor"]
    core.execute_script("document.querySelector('#r1-cells .columns button').click()")
    assert len(core.execute_script(HEADINGS)) == 17 and core.execute_script(OVERFLOW) == [1280, 1280]
    core.execute_script("document.querySelector('#r1-cells .columns button').click()")
    assert core.execute_script(HEADINGS) == headings
    show(core, paths[CORE], 360, "light")
    assert core.execute_script(HEADINGS) == ["library", "work", "T", "train ms"]


def test_matrix_says_not_asked_to_a_screen_reader_only(core: Any) -> None:
    words = "const cell = document.querySelector('#r1-matrix .empty'), span = cell.querySelector('span'); "
    assert core.execute_script(f"{words} return [cell.title, span.textContent]") == ["not asked"] * 2
    assert core.execute_script(f"{words} return span.getBoundingClientRect().width") <= 1


def test_print_shows_every_section_and_cuts_no_table(core: Any) -> None:
    core.execute_cdp_cmd("Page.printToPDF", {})  # tells the page that it is printed
    size = {"width": PAPER_PX, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    core.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    core.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    shown = "[...document.querySelectorAll('section')].map(s => s.checkVisibility({contentVisibilityAuto: true}))"
    assert core.execute_script(f"return {shown}") == [True] * 14
    beyond = "[...document.querySelectorAll('table')].filter(t => t.getBoundingClientRect().right > innerWidth).length"
    assert core.execute_script(f"return {beyond}") == 0


@pytest.fixture
def saved(core: Any, tmp_path: Path) -> Path:
    """The folder in which the browser saves the files of a page."""
    core.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    return tmp_path


def press(browser: Any, label: str) -> str:
    """Press a button of the first chart, and return what it says."""
    said = "document.querySelector('#r1-time .save output')"
    browser.execute_script(
        f"{said}.textContent = ''; document.querySelector('#r1-time [aria-label=\"{label}\"]').click()"
    )
    assert within(20, lambda: browser.execute_script(f"return {said}.textContent"))
    return str(browser.execute_script(f"return {said}.textContent"))


def test_saved_svg_has_title_provenance_and_colours(core: Any, saved: Path) -> None:
    assert press(core, "Save the chart as SVG") == "Saved as r1-time-1.svg."
    assert within(20, (saved / "r1-time-1.svg").exists)
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", (saved / "r1-time-1.svg").read_text(encoding="utf-8"))
    assert texts[-2:] == ["no reset, CPU: 512 neurons, batch 16, 500 steps", FROM] and "jax-scan" in texts
    assert "var(" not in (saved / "r1-time-1.svg").read_text(encoding="utf-8")


INK = """
const [png, words, done] = arguments;
const image = new Image();
image.onload = () => {
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [image.width, image.height];
  const pen = canvas.getContext('2d');
  pen.drawImage(image, 0, 0);
  const top = image.height - 64, pixels = pen.getImageData(0, top, image.width, 64).data;
  const columns = [...Array(image.width).keys()].filter((x) =>
    [...Array(64).keys()].some((y) => pixels[4 * (y * image.width + x)] < 200));
  pen.font = '22px system-ui';
  done([columns[0], columns.at(-1) - columns[0], pen.measureText(words).width]);
};
image.src = 'data:image/png;base64,' + png;
"""


def test_saved_png_ends_with_the_line_of_provenance(core: Any, saved: Path) -> None:
    """The ink of the last line begins at the margin and is as long as the words."""
    assert press(core, "Save the chart as PNG") == "Saved as r1-time-1.png."
    assert within(20, (saved / "r1-time-1.png").exists)
    core.get("about:blank")
    png = base64.b64encode((saved / "r1-time-1.png").read_bytes()).decode()
    first, length, expected = core.execute_async_script(INK, png, FROM)
    assert 30 < first < 40 and length == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(("name", "kind"), [("PNG", "image/png"), ("SVG", "text/plain")])
def test_chart_is_copied_or_else_saved(core: Any, saved: Path, name: str, kind: str) -> None:
    write = (
        "navigator.clipboard.write = (items) => { window.items = items; return items[0].getType(items[0].types[0]); }"
    )
    core.execute_script(write)
    assert press(core, f"Copy the chart as {name}") == f"Copied as {name}."
    assert core.execute_script("return window.items[0].types") == [kind]
    core.execute_script("navigator.clipboard.write = () => Promise.reject()")
    file = f"r1-time-1.{name.lower()}"
    assert press(core, f"Copy the chart as {name}") == f"The browser does not let this page copy. Saved as {file}."
    assert within(20, (saved / file).exists)
