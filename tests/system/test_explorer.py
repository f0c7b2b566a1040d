"""Tests of the site's first page: its numbers, and in a browser every choice, address and copy, at every width."""

import re
from itertools import combinations
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from snnbench.analysis.decision import Thresholds
from snnbench.analysis.rank import rank
from snnbench.report.site import explorer_data as data
from snnbench.report.site import explorer_page as page
from snnbench.report.site.catalogue import Catalogue, load
from tests.fakes import CASE
from tests.hostile import MARK, hostile
from tests.recordings import deviating, recording, skipped, timed, trials, weighed
from tests.sample import sample
from tests.shipped import RESULTS
from tests.system.test_browser import OVERFLOW, requested_addresses, show
from tests.system.test_site import dated, steady

OLD, NEW = "2026-11-20", "2026-11-22"
CASES = "#matrix thead button:not(.sort)"
ROWS = "#matrix tbody th button"
PAIRS = (
    ("quick", "slow", "slow is slower: 2 ms against 1 ms, 2.00\u00d7 as long (95 % interval 1.9"),
    ("quick", "even", "No difference above 5 %: even takes 1.01 ms against 1 ms, 1.01\u00d7 as long (95 % interval"),
    ("even", "noisy", "Not told apart: noisy takes 1.1 ms against 1.01 ms, 1.09\u00d7 as long (95 % interval"),
    (
        "once",
        "slow",
        "once took longer in one trial each, which shows no spread: 4 ms against 2 ms, 2.00\u00d7 as long.",
    ),
    (
        "quick",
        "late",
        "late: ≠ deviates: fires a step late (up to 3.00% of the spikes differ, gradients by up to 2.0e-02)",
    ),
    ("other", "slow", "other: \u2212 skipped: unsupported: subtracts only"),
    ("other", "absent", "other: \u2212 skipped: unsupported: subtracts only; absent: not asked"),
)
OVERLAP = """
const places = '#chart .name, #chart .value, #chart .factor, #shown label, .chip, #matrix td, #matrix button';
const boxes = [...document.querySelectorAll(places)]
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
def every_word(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a recording with a pair for each word, and contenders without a time."""
    every = recording(
        *trials("quick", [1.0, 1.001, 0.999, 1.0]),
        *trials("even", [1.01, 1.011, 1.009, 1.01]),
        *trials("noisy", [0.7, 1.5, 0.8, 1.4]),
        *trials("slow", [2.0, 2.01, 1.99, 2.0]),
        *trials("once", [4.0]),
        *trials("absent", [1.0], case=CASE.with_(neurons=999)),
        deviating("late", train=0.5),
        skipped("other", "unsupported", "subtracts only"),
        baseline="quick",
    )
    written = tmp_path_factory.mktemp("words") / "index.html"
    written.write_text(page.html(Catalogue([every])), encoding="utf-8")
    return written


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


def test_contended_time_neither_leads_nor_is_slower() -> None:
    busy = recording(
        *trials("base", [1.0, 1.01, 0.99]), *trials("slow", [9.0, 9.1, 8.9], flags=["contended"]), baseline="base"
    )
    (view,) = data.views(Catalogue([busy]))
    (shown,) = data.document(Catalogue([busy]))["views"]
    assert view.is_tested and view.leaders == {"base"}
    assert [row[3] for row in shown["rows"]] == [1, 0]


def test_peak_is_of_the_phase_that_is_shown() -> None:
    weighty = recording(*(timed("base", trial, train=2.0, inference=1.0) for trial in (0, 1)), weighed("base"))
    shown = data.document(Catalogue([weighty]))
    peaks = {shown["words"][view["of"][-1]]: view["rows"][0][5] for view in shown["views"]}
    assert peaks["train"] and peaks["inference"] is None


def test_trials_of_one_each_are_no_test() -> None:
    once = recording(*trials("base", [3.0]), *trials("fast", [1.0]), baseline="base")
    (shown,) = data.document(Catalogue([once]))["views"]
    assert not shown["tested"] and [row[3] for row in shown["rows"]] == [1, 0]


def test_training_on_a_card_at_a_middle_size_comes_first(catalogue: Catalogue, views: list[data.View]) -> None:
    places = [shown["place"] for shown in data.document(catalogue)["views"]]
    first = views[places.index(0)]
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


def texts(browser: Any, place: str) -> list[str]:
    script = "return [...document.querySelectorAll(arguments[0])].map(element => element.textContent)"
    return browser.execute_script(script, place)  # type: ignore[no-any-return]


def click(browser: Any, place: str, name: str) -> None:
    script = "[...document.querySelectorAll(arguments[0])].find(one => one.textContent === arguments[1]).click()"
    browser.execute_script(script, place, name)


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
def test_choice_keeps_the_others_and_says_what_it_changed(browser: Any, path: Path) -> None:
    show(browser, path, 1280, "light")
    choose(browser, "phase", "backward")
    choose(browser, "machine", "CPU: two devices")
    assert chosen(browser)["phase"] == "backward" and not text(browser, "#moved")
    choose(browser, "machine", "CPU: a laptop")
    assert chosen(browser)["phase"] == "train" and "phase: train" in text(browser, "#moved")


@pytest.mark.browser
@pytest.mark.parametrize("choice", ["show=toString", "between=base&between=base", "sort=%26%23&only=none", "size=none"])
def test_address_of_a_stranger_is_shown_as_far_as_it_can_be(browser: Any, path: Path, choice: str) -> None:
    show(browser, path, 1280, "light")
    browser.execute_script("location.hash = arguments[0]; dispatchEvent(new Event('popstate'))", choice)
    assert texts(browser, ROWS) and not texts(browser, "#against dd")
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


@pytest.mark.browser
def test_heading_of_a_size_shows_that_size(browser: Any, path: Path) -> None:
    show(browser, path, 1280, "light")
    choose(browser, "machine", "CPU: two devices")
    assert texts(browser, CASES) == [
        f"{size} neurons, reset {reset}" for reset in ("by subtraction", "to zero") for size in (64, 512, 1024)
    ]
    click(browser, CASES, "1024 neurons, reset by subtraction")
    assert chosen(browser)["size"].startswith("1024 neurons") and "size=1024" in browser.current_url


@pytest.mark.browser
@pytest.mark.parametrize(("first", "second", "expected"), PAIRS)
def test_two_contenders_are_compared_by_the_test_of_rank(
    browser: Any, every_word: Path, first: str, second: str, expected: str
) -> None:
    show(browser, every_word, 1280, "light")
    click(browser, ROWS, first)
    click(browser, ROWS, second)
    said = texts(browser, "#against dd")
    assert any(line.startswith(expected) for line in said), said
    browser.execute_script("dispatchEvent(new Event('popstate'))")
    assert texts(browser, "#against dd") == said, "the address does not lead back"


def test_words_of_pairs_are_those_of_the_test() -> None:
    sides = recording(
        *trials("base", [3.0, 3.02, 2.98, 3.0]),
        *trials("noisy", [2.3, 3.6, 2.4, 3.4]),
        *trials("slow", [9.0, 9.1, 8.9]),
    )
    (view,) = data.views(Catalogue([sides]))
    names = combinations([entry.contender for entry in view.ranking.entries], 2)
    words = {pair: word for pair, (word, *_) in zip(names, view.differences, strict=True)}
    assert words == {("noisy", "base"): "inconclusive", ("noisy", "slow"): "slower", ("base", "slow"): "slower"}


@pytest.mark.browser
def test_cases_are_sorted_narrowed_and_shown_by_another_number(browser: Any, path: Path) -> None:
    show(browser, path, 1280, "light")
    choose(browser, "machine", "CPU: two devices")
    unsorted = texts(browser, ROWS)
    browser.execute_script("document.querySelector('#matrix .sort').click()")
    assert texts(browser, ROWS) == sorted(unsorted) != unsorted
    click(browser, ".chip", "reset to zero")
    click(browser, ".chip", "beta")
    assert texts(browser, CASES) == ["64 neurons", "512 neurons", "1024 neurons"]
    assert texts(browser, "#matrix tbody td") == ["\u2212", "\u2212", "\u2212"]
    click(browser, ".chip", "beta")
    click(browser, ".chip", "gamma")
    click(browser, "#shown label", "ratio")
    assert texts(browser, "#matrix tbody td") == ["1.00\u00d7", "1.00\u00d7", "!"]
    for _ in range(2):
        assert parse_qs(browser.current_url.partition("#")[2])["only"] == ["neuron: reset to zero", "library: gamma"]
        browser.execute_script("dispatchEvent(new Event('popstate'))")
        assert texts(browser, ROWS) == ["gamma/compile"]


@pytest.mark.browser
def test_table_and_address_are_copied(browser: Any, path: Path) -> None:
    show(browser, path, 1280, "light")
    browser.execute_script("window.copied = []; document.execCommand = () => copied.push(document.activeElement.value)")
    browser.execute_script("navigator.clipboard && (navigator.clipboard.writeText = () => Promise.reject())")
    for place in ("#copy-table", "#copy-matrix", ".copy-link"):
        browser.execute_script("document.querySelector(arguments[0]).click()", place)
    table, cases, address = browser.execute_async_script("setTimeout(() => arguments[0](window.copied), 300)")
    assert re.search(r"^\| library \| ms \|.*\n\| --- \| ---: \|", table, re.MULTILINE)
    assert re.search(r"^\| library \| 64 neurons.*\n\| --- \| ---: \|", cases, re.MULTILINE)
    assert address == browser.current_url


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
