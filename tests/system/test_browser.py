"""Tests of the page in a browser without a network: every chart drawn, on phone and desktop, in light and dark."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from snnbench.report.page import page
from tests.hostile import MARK, hostile
from tests.processes import within
from tests.sample import sample
from tests.whole import WHOLE

pytestmark = pytest.mark.browser

WIDTHS = (375, 1280) if WHOLE else (375,)
SCHEMES = ("light", "dark") if WHOLE else ("dark",)
DRAWN_WITHIN_S = 60


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Page files: a sweep, a single size, and a hostile one with a script in every name."""
    folder = tmp_path_factory.mktemp("pages")
    made = {
        "sweep": sample(neurons=(64, 128, 1024, 4096), steps=(25, 50, 100)),
        "single": sample(neurons=(64,), steps=()),
        "hostile": hostile(),
    }
    for name, recording in made.items():
        (folder / f"{name}.html").write_text(page.html([recording]), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in made}


def show(browser: Any, path: Path, width: int, scheme: str, media: str = "") -> None:
    """Open a file and wait until its charts are drawn."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
    for log in ("browser", "performance"):
        browser.get_log(log)  # drop an earlier page's messages
    browser.get(path.as_uri())
    end = time.monotonic() + DRAWN_WITHIN_S
    while browser.execute_script("return document.documentElement.dataset.charts") != "drawn":
        assert time.monotonic() < end, "the charts are not drawn"
        time.sleep(0.05)


def requested_addresses(browser: Any) -> list[str]:
    """The addresses that the page requested."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = (m["params"] for m in messages if m["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated"))
    return [one.get("request", one)["url"] for one in sent]


DRAWN = """
return [...document.querySelectorAll('.chart')].map(place => {
  const svg = place.querySelector('svg');
  const marks = svg ? svg.querySelectorAll('.mark-symbol path, .mark-rect path, .mark-line path').length : 0;
  const right = place.getBoundingClientRect().right;
  const cut = [...place.querySelectorAll('.role-legend, .role-axis')].filter(
    part => part.getBoundingClientRect().right > right + 8).length;
  const box = svg ? svg.getBoundingClientRect() : {width: 0, height: 0};
  return [place.id, marks, box.width, box.height, place.clientWidth, cut];
});
"""
OVERFLOW = "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["sweep", "single"] if WHOLE else ["sweep"])
def test_every_chart_is_drawn_and_fits(
    browser: Any, pages: dict[str, Path], name: str, width: int, scheme: str
) -> None:
    show(browser, pages[name], width, scheme)
    drawn = browser.execute_script(DRAWN)
    assert len(drawn) > 12
    for chart, marks, wide, high, room, cut in drawn:
        assert marks > 1, f"{chart} is empty"
        assert room - 30 < wide <= room + 1, f"{chart} is {wide} px wide where there are {room}"
        assert high > 50
        assert not cut, f"{chart}: a legend or an axis is cut off"
    needed, there = browser.execute_script(OVERFLOW)
    assert needed <= there == width, "the page scrolls sideways"
    assert browser.get_log("browser") == []
    assert requested_addresses(browser) == [pages[name].as_uri()]


def test_chart_takes_the_colours_of_the_scheme(browser: Any, pages: dict[str, Path]) -> None:
    colours = {}
    for scheme in ("light", "dark"):
        show(browser, pages["sweep"], 1280, scheme)
        label = "getComputedStyle(document.querySelector('.chart svg text')).fill"
        ground = "getComputedStyle(document.body).backgroundColor"
        colours[scheme] = browser.execute_script(f"return [{label}, {ground}]")
    assert colours == {
        "light": ["rgb(107, 107, 107)", "rgb(255, 255, 255)"],
        "dark": ["rgb(163, 163, 163)", "rgb(22, 22, 22)"],
    }


def test_printed_page_is_white(browser: Any, pages: dict[str, Path]) -> None:
    show(browser, pages["sweep"], 1280, "dark", media="print")
    assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


@pytest.mark.parametrize("width", WIDTHS)
def test_hostile_text_neither_runs_nor_breaks_the_page(browser: Any, pages: dict[str, Path], width: int) -> None:
    show(browser, pages["hostile"], width, "light")
    assert browser.execute_script(f"return typeof window.{MARK}") == "undefined"
    drawn = browser.execute_script(DRAWN)
    assert drawn and all(marks > 1 and not cut for _, marks, *_, cut in drawn)
    assert browser.execute_script("return document.querySelectorAll('img, iframe').length") == 0
    needed, there = browser.execute_script(OVERFLOW)
    assert needed <= there == width
    assert browser.get_log("browser") == []
    assert requested_addresses(browser) == [pages["hostile"].as_uri()]


def test_tooltip_of_a_mark_is_plain_text(browser: Any, pages: dict[str, Path]) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By

    show(browser, pages["hostile"], 1280, "light")
    mark = browser.find_element(By.CSS_SELECTOR, "#r1-time-1 .mark-symbol path")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", mark)

    def tip_is_visible() -> bool:
        ActionChains(browser).move_by_offset(1, 0).move_to_element(mark).perform()
        tips = browser.find_elements(By.ID, "vg-tooltip-element")
        return bool(tips) and "visible" in tips[0].get_attribute("class") and "ms" in tips[0].text

    assert within(20, tip_is_visible)
    tip = browser.find_element(By.ID, "vg-tooltip-element")
    assert browser.execute_script(f"return typeof window.{MARK}") == "undefined"
    assert not tip.find_elements(By.CSS_SELECTOR, "img, script")


ROWS = """
return [...document.querySelectorAll('table.full tbody tr')].filter(row => !row.hidden).map(
  row => [...row.cells].map(cell => cell.textContent));
"""
NUMBERS = """
const figure = document.querySelector('figure');
const rows = [...figure.querySelectorAll('tbody tr')].map(row => [...row.cells].map(cell => cell.textContent));
return rows;
"""
FIRST_CHART = "return document.querySelector('figure .chart').id"


def test_table_of_every_number_is_sorted_by_a_heading(browser: Any, pages: dict[str, Path]) -> None:
    from selenium.webdriver.common.by import By

    show(browser, pages["sweep"], 1280, "light")
    headings = browser.find_elements(By.CSS_SELECTOR, "table.full thead th")
    (column,) = [index for index, heading in enumerate(headings) if heading.text.startswith("train ms")]
    button = headings[column].find_element(By.TAG_NAME, "button")
    for order in ("ascending", "descending"):
        browser.execute_script("arguments[0].click()", button)
        assert headings[column].get_attribute("aria-sort") == order
        texts = [row[column] for row in browser.execute_script(ROWS)]
        values = [float(text.split()[0]) for text in texts if text != "-"]
        assert len(values) > 20 and values == sorted(values, reverse=order == "descending")
        assert set(texts[len(values) :]) <= {"-"}, "rows without a number come last"


def test_table_of_every_number_is_filtered_by_words(browser: Any, pages: dict[str, Path]) -> None:
    from selenium.webdriver.common.by import By

    show(browser, pages["sweep"], 1280, "light")
    every = browser.execute_script(ROWS)
    name = every[0][0].removeprefix("# ")
    field = browser.find_element(By.CSS_SELECTOR, ".filter input")
    field.send_keys(f"{name} exact")
    left = browser.execute_script(ROWS)
    assert left == [row for row in every if name in " ".join(row) and "exact" in " ".join(row)]
    assert 0 < len(left) < len(every)
    assert browser.find_element(By.CSS_SELECTOR, ".filter output").text == f"{len(left)} of {len(every)} rows"
    field.send_keys(" no such word")
    assert browser.execute_script(ROWS) == []


def test_link_of_a_row_leads_to_it(browser: Any, pages: dict[str, Path]) -> None:
    show(browser, pages["sweep"], 1280, "light")
    href = browser.execute_script("return [...document.querySelectorAll('table.full a.link')].pop().href")
    browser.get("about:blank")
    browser.get(href)
    assert within(20, lambda: browser.execute_script("return document.documentElement.dataset.charts") == "drawn")
    top = "document.querySelector('tr:target').getBoundingClientRect()"
    assert within(
        20, lambda: browser.execute_script(f"const box = {top}; return box.top >= 0 && box.bottom <= innerHeight")
    )


def test_numbers_beside_a_chart_equal_its_table(browser: Any, pages: dict[str, Path], tmp_path: Path) -> None:
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    show(browser, pages["single"], 1280, "light")
    rows = browser.execute_script(NUMBERS)
    saved = tmp_path / f"{browser.execute_script(FIRST_CHART)}.json"
    browser.execute_script("document.querySelector('figure [aria-label$=JSON]').click()")
    assert within(20, saved.exists)
    numbers = json.loads(saved.read_text(encoding="utf-8"))
    assert len(numbers) == len(rows) > 1
    for row, texts in zip(numbers, rows, strict=True):
        assert [value if isinstance(value, str) else f"{value:g}" for value in row.values()] == texts
    assert any(isinstance(value, int | float) for row in numbers for value in row.values())
