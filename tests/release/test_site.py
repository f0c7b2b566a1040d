"""Tests of the site of the committed recordings, in a browser without a network: links, sorting, filter, permalinks."""

from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pytest

from snnbench.adapter.discovery import discover
from snnbench.adapter.notes import notes
from tests.processes import within
from tests.sweep import snnbench
from tests.system.test_browser import OVERFLOW, ROWS, WIDTHS, requested_addresses
from tests.system.test_site import Links

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
RECORDINGS = sorted(path.parent for path in (ROOT / "results").glob("*/records.jsonl"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, made by the command."""
    made = tmp_path_factory.mktemp("site")
    done = snnbench(made, "site", str(ROOT / "results"), "-o", "out")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("out/index.html: written, with ")
    return made / "out"


def show(browser: Any, path: Path, width: int, scheme: str = "light", anchor: str = "") -> None:
    """Open a page of the site and wait until its scripts are done."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})
    for log in ("browser", "performance"):
        browser.get_log(log)  # drop an earlier page's messages
    browser.get("about:blank")
    browser.get(path.as_uri() + anchor)
    done = "return !document.querySelector('script:not([type])') || document.documentElement.dataset.charts === 'drawn'"
    assert within(60, lambda: browser.execute_script(done))


SOURCES = {note.link for adapter in discover().values() for note in notes(adapter)}
"""Addresses of libraries' own code; no page asks them for anything."""


def some_pages(folder: Path) -> list[Path]:
    """One page of each kind."""
    kinds = [sorted((folder / kind).glob("*.html"))[0] for kind in ("libraries", "questions", "cells", "recordings")]
    return [folder / "index.html", folder / "results.html", *kinds]


def test_every_link_of_the_committed_site_leads_to_a_file(folder: Path) -> None:
    pages = sorted(folder.rglob("*.html"))
    assert len(pages) > 100 and {page.stem for page in (folder / "recordings").glob("*.html")} == {
        recording.name for recording in RECORDINGS
    }
    for page in pages:
        links = Links(page.read_text(encoding="utf-8"))
        for link in links.addresses:
            where, _, anchor = link.partition("#")
            if link in SOURCES:
                continue
            if where:
                assert (page.parent / unquote(where)).is_file(), (page, link)
            else:
                assert unquote(anchor) in links.anchors, (page, link)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_pages_fit_and_ask_nothing_of_a_network(browser: Any, folder: Path, width: int, scheme: str) -> None:
    for page in some_pages(folder):
        show(browser, page, width, scheme)
        needed, there = browser.execute_script(OVERFLOW)
        assert needed <= there == width, f"{page} scrolls sideways"
        assert browser.get_log("browser") == [], page
        assert set(requested_addresses(browser)) <= {page.as_uri(), "about:blank"}


def test_results_are_sorted_filtered_and_lead_to_cells(browser: Any, folder: Path) -> None:
    from selenium.webdriver.common.by import By

    show(browser, folder / "results.html", 1280)
    every = browser.execute_script(ROWS)
    browser.find_element(By.CSS_SELECTOR, ".filter input").send_keys("jax-scan exact train")
    left = browser.execute_script(ROWS)
    assert 0 < len(left) < len(every)
    assert all(all(word in " ".join(row) for word in ("jax-scan", "exact", "train")) for row in left)
    headings = browser.find_elements(By.CSS_SELECTOR, "table.full thead th")
    (column,) = [number for number, heading in enumerate(headings) if heading.text.startswith("x floor")]
    browser.execute_script("arguments[0].click()", headings[column].find_element(By.TAG_NAME, "button"))
    values = [float(row[column]) for row in browser.execute_script(ROWS) if row[column] != "-"]
    assert len(values) > 5 and values == sorted(values)
    link = (
        "[...document.querySelectorAll('table.full tbody tr')].find(row => !row.hidden).querySelector('a:not(.link)')"
    )
    name = browser.execute_script(f"return {link}.textContent")
    browser.execute_script(f"{link}.click()")
    assert within(20, lambda: "/cells/" in browser.current_url)
    assert browser.title.startswith(name)
    browser.execute_script("document.querySelector('.brand a').click()")
    assert within(20, lambda: browser.current_url.endswith("/index.html"))


def test_permalink_of_a_result_leads_to_its_row(browser: Any, folder: Path) -> None:
    show(browser, folder / "results.html", 1280)
    anchor = browser.execute_script("return [...document.querySelectorAll('table.full a.link')].pop().hash")
    show(browser, folder / "results.html", 1280, anchor=anchor)
    top = "document.querySelector('tr:target').getBoundingClientRect()"
    assert within(
        20, lambda: browser.execute_script(f"const box = {top}; return box.top >= 0 && box.bottom <= innerHeight")
    )


def test_every_link_of_the_first_page_opens(browser: Any, folder: Path) -> None:
    show(browser, folder / "index.html", 1280)
    addresses = set(browser.execute_script("return [...document.querySelectorAll('a')].map(a => a.href)"))
    pages = {Path(unquote(urlparse(address).path)) for address in addresses if address.endswith(".html")}
    assert len(pages) > 20
    for page in sorted(pages)[::5]:
        show(browser, page, 1280)
        assert browser.find_elements("css selector", "h1") and browser.get_log("browser") == [], page
