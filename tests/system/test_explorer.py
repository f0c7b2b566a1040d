"""Tests of the site's first page: its numbers, and in a browser every choice, address and copy, at every width."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from snnbench.analysis.decision import Thresholds
from snnbench.analysis.rank import rank
from snnbench.report.site import explorer_data as data
from snnbench.report.site import explorer_page as page
from snnbench.report.site.catalogue import Catalogue, load
from tests.hostile import MARK, hostile
from tests.recordings import recording, trials
from tests.sample import sample
from tests.shipped import RESULTS
from tests.system.test_browser import OVERFLOW, requested_addresses, show
from tests.system.test_site import dated, steady

OLD, NEW = "2026-11-20", "2026-11-22"
OVERLAP = """
const boxes = [...document.querySelectorAll('#chart .name, #chart .value, #chart .factor')]
  .map(element => [element.textContent, element.getBoundingClientRect()]).filter(([, box]) => box.width);
return boxes.flatMap(([one, a], place) => boxes.slice(place + 1)
  .filter(([, b]) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4).map(([other]) => `${one} | ${other}`));
"""


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return Catalogue(
        [
            dated(steady(1.0), OLD, "old"),
            dated(steady(2.0), NEW, "new"),
            dated(sample(neurons=(64, 512, 1024), steps=()), "2026-11-21", "sweep", "core"),
            dated(hostile(), "2026-11-19", "stranger"),
        ]
    )


@pytest.fixture(scope="module")
def views(catalogue: Catalogue) -> list[data.View]:
    return data.views(catalogue)


@pytest.fixture(scope="module")
def path(catalogue: Catalogue, tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = tmp_path_factory.mktemp("site") / "index.html"
    written.write_text(page.html(catalogue), encoding="utf-8")
    return written


def test_newest_recording_of_a_case_on_a_machine_is_shown(views: list[data.View]) -> None:
    assert {view.recording.name for view in views} == {"new", "sweep", "stranger"}


def test_contenders_on_two_sides_of_the_baseline_may_lead_together() -> None:
    sides = recording(
        *trials("base", [3.0, 3.02, 2.98, 3.0]),
        *trials("noisy", [2.3, 3.6, 2.4, 3.4]),
        *trials("steady", [2.5, 2.51, 2.49, 2.5]),
        *trials("last", [9.0, 9.1, 8.9, 9.0]),
        baseline="base",
    )
    (ranking,) = rank(sides, "base", Thresholds(), ["train"]).rankings
    first, second = ranking.entries[:2]
    assert (first.contender, first.rank, second.contender, second.rank) == ("steady", 1, "noisy", 2)
    (shown,) = data.document(Catalogue([sides]))["views"]
    assert shown["tested"] and [row[3] for row in shown["rows"]] == [1, 1, 0, 0]


def test_trials_of_one_each_are_no_test() -> None:
    once = recording(*trials("base", [3.0]), *trials("fast", [1.0]), baseline="base")
    (shown,) = data.document(Catalogue([once]))["views"]
    assert not shown["tested"] and [row[3] for row in shown["rows"]] == [1, 0]


def test_training_on_a_card_at_a_middle_size_comes_first(views: list[data.View]) -> None:
    first = data.default_of(views)
    assert (first.ranking.phase, first.case.device, first.case.as_dict()["neurons"]) == ("train", "cuda", 512)


def chosen(browser: Any) -> dict[str, str]:
    return browser.execute_script(  # type: ignore[no-any-return]
        "return Object.fromEntries([...document.querySelectorAll('#choices select')].map(s => [s.name, s.value]))"
    )


def choose(browser: Any, name: str, value: str) -> None:
    script = "const s = document.querySelector(`[name='${arguments[0]}']`); s.value = arguments[1];"
    browser.execute_script(script + "s.dispatchEvent(new Event('change', {bubbles: true}))", name, value)


def text(browser: Any, place: str) -> str:
    return browser.execute_script("return document.querySelector(arguments[0]).innerText", place)  # type: ignore[no-any-return]


@pytest.mark.browser
def test_choices_stand_in_the_address_and_lead_back(browser: Any, path: Path) -> None:
    show(browser, path, 1280, "light")
    first, answer = chosen(browser), text(browser, "#answer")
    (other,) = {"512 neurons", "64 neurons"} - {first["size"].split(",")[0]} or {"64 neurons"}
    sizes = browser.execute_script("return [...document.querySelector('[name=size]').options].map(o => o.value)")
    choose(browser, "size", next(size for size in sizes if size.startswith(other)))
    assert text(browser, "#answer") != answer
    address = browser.current_url
    assert parse_qs(address.partition("#")[2])["size"][0].startswith(other)
    browser.get("about:blank")
    browser.get(address)
    assert chosen(browser)["size"].startswith(other)
    browser.execute_script("history.replaceState(null, '', location.pathname); dispatchEvent(new Event('popstate'))")
    assert chosen(browser) == first and text(browser, "#answer") == answer


@pytest.mark.browser
def test_every_view_can_be_chosen_and_says_who_is_fastest(browser: Any, path: Path, views: list[data.View]) -> None:
    show(browser, path, 1280, "light")
    for view in views:
        for name, value in zip(data.CHOICES, view.choices, strict=True):
            choose(browser, name, value)
        assert tuple(chosen(browser)[name] for name in data.CHOICES) == view.choices
        assert view.ranking.entries[0].contender in text(browser, "#answer")
        assert text(browser, "#table tbody tr:first-child th") == view.ranking.entries[0].contender
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


@pytest.mark.browser
def test_heading_of_a_size_shows_that_size(browser: Any, path: Path) -> None:
    show(browser, path, 1280, "light")
    buttons = browser.execute_script("return [...document.querySelectorAll('#sizes button')].map(b => b.innerText)")
    assert buttons == ["64 neurons", "512 neurons", "1024 neurons"]
    browser.execute_script("document.querySelectorAll('#sizes button')[2].click()")
    assert chosen(browser)["size"].startswith("1024 neurons") and "size=1024" in browser.current_url


@pytest.mark.browser
def test_table_and_address_are_copied(browser: Any, path: Path) -> None:
    show(browser, path, 1280, "light")
    browser.execute_script("window.copied = []; document.execCommand = () => copied.push(document.activeElement.value)")
    browser.execute_script("navigator.clipboard && (navigator.clipboard.writeText = () => Promise.reject())")
    for name in ("table", "link"):
        browser.execute_script(f"document.getElementById('copy-{name}').click()")
    table, address = browser.execute_async_script("setTimeout(() => arguments[0](window.copied), 300)")
    assert (
        re.search(r"^\| library \| ms \|.*\n\| --- \| ---: \|", table, re.MULTILINE) and address == browser.current_url
    )


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 768, 1280, 1920])
def test_nothing_is_cut_or_overlaps(browser: Any, path: Path, width: int, scheme: str) -> None:
    show(browser, path, width, scheme)
    needed, there = browser.execute_script(OVERFLOW)
    assert needed <= there == width and browser.execute_script(OVERLAP) == []
    assert set(requested_addresses(browser)) <= {path.as_uri(), "about:blank"}
    assert browser.execute_script(f"return window.{MARK}") is None, "a script of a stranger ran"


def test_page_of_all_recordings_is_small() -> None:
    assert len(page.html(load(RESULTS)).encode()) < 1_000_000
