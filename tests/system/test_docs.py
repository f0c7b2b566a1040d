"""Tests of the documentation: built strictly, complete by the code, without a network, searched in a browser."""

import html
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from snnbench.cases import outcome
from snnbench.exits import Exit
from snnbench.plan import config
from snnbench.recording import flags, schema
from snnbench.report import tidy
from snnbench.workloads import WORKLOADS
from tests import managed
from tests.documents import DOCUMENTS, MADE, OUTPUT, ROOT, hook, saved, written
from tests.screens import screen
from tests.system.test_browser import requested_addresses

ANSWERED_WITHIN_S = 60
reference: Any = hook("reference")
SHOWN = [
    pytest.param(columns, arguments, text, id=f"{path.stem}: {arguments}")
    for path in DOCUMENTS
    for _, columns, arguments, text in OUTPUT.findall(written(path))
]
"""(width of the terminal, or empty for a pipe; arguments; the output that a document shows)."""
MEASURED = [
    pytest.param(path, columns, arguments, text, id=f"{path.stem}: {arguments}")
    for path in DOCUMENTS
    if path.name != "add-a-workload.md"  # which has a test of its own
    for columns, arguments, text in MADE.findall(written(path))
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built documentation."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"})
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


def page(site: Path, name: str) -> str:
    return (site / "reference" / f"{name}.html").read_text(encoding="utf-8")


def code_of(site: Path, name: str) -> set[str]:
    """Everything that a reference page shows as code in its text."""
    return {html.unescape(code) for code in re.findall(r"<code>([^<]*)</code>", page(site, name))}


def test_every_command_and_option_is_on_its_page(site: Path) -> None:
    text = page(site, "commands")
    sections = dict(re.findall(r'<h2 id="([\w-]+)">(.*?)(?=<h2 |</article>)', text, re.DOTALL))
    every = list(reference.commands())
    assert len(every) > 10
    for path, command in every:
        section = html.unescape(sections[path.replace(" ", "-")])
        visible = [given for given in command.params if given.opts[0].startswith("-") and not given.hidden]
        missing = [name for given in visible for name in given.opts if f"<code>{name}</code>" not in section]
        assert not missing, f"{path}: {missing}"


def test_every_config_key_is_on_its_page(site: Path) -> None:
    shown, keys = code_of(site, "config"), config.keys(WORKLOADS)
    own = [key for key in keys["sweep"] if key not in keys["case"]]
    expected = {*keys[""], *(f"protocol.{key}" for key in keys["protocol"]), *keys["case"], *WORKLOADS}
    assert expected | {f"sweep.{key}" for key in own} <= shown


def test_every_record_field_is_on_its_page(site: Path) -> None:
    others = ("CaseDocument", "ReplyDocument")
    documents = [value for name, value in vars(schema).items() if name.endswith("Document") and name not in others]
    fields = {field for document in documents for field in document.__annotations__}
    fields |= {field for workload in WORKLOADS.values() for field in workload.Case.names()}
    assert {"repetitions_ns", "verdict", "whole_planned"} <= fields
    assert fields <= code_of(site, "record")


def test_every_outcome_flag_and_exit_code_is_on_its_page(site: Path) -> None:
    expected = {*outcome.VERDICTS, *outcome.FAILURES, *outcome.SKIPS, *flags.FLAGS}
    assert expected <= code_of(site, "outcomes")
    text = html.unescape(page(site, "outcomes"))
    assert all(f"<td>{int(code)}</td>\n<td>{code.meaning}</td>" in text for code in Exit)


def test_every_tidy_column_is_on_its_page(site: Path) -> None:
    assert set(tidy.COLUMNS) <= code_of(site, "tidy")


def test_equations_are_mathml(site: Path) -> None:
    latex = [path for path in (ROOT / "docs").rglob("*.md") if "\n$$\n" in written(path)]
    assert latex
    for path in latex:
        text = (site / path.relative_to(ROOT / "docs").with_suffix(".html")).read_text(encoding="utf-8")
        assert text.count("<math ") >= written(path).count("\n$$\n") // 2
    assert not [path for path in site.rglob("*.html") if "arithmatex" in path.read_text(encoding="utf-8")]


def test_pages_load_nothing_from_a_network(site: Path) -> None:
    loads = re.compile(r'<(?:script|link|img|iframe|source)[^>]*(?:src|href|srcset)="(?:https?:)?//[^"]*"')
    remote = {hit for path in site.rglob("*.html") for hit in loads.findall(path.read_text(encoding="utf-8"))}
    assert not [hit for hit in remote if 'rel="canonical"' not in hit]


def test_missing_or_stale_meaning_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"missing \['new'\], stale \['name'"):
        reference.meanings("config", ["new"])


@pytest.mark.parametrize(("columns", "arguments", "text"), SHOWN)
def test_shown_output_equals_the_output_of_the_command(columns: str, arguments: str, text: str) -> None:
    if columns:
        printed = screen(ROOT, int(columns), *arguments.split()).text
    else:
        command = [sys.executable, "-m", "snnbench", *arguments.split()]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        printed = done.stdout + done.stderr
    assert " ".join(text.split()) in " ".join(printed.split())


@pytest.mark.parametrize(("path", "columns", "arguments", "text"), MEASURED)
def test_shown_verdicts_equal_those_of_the_library(
    tmp_path: Path, path: Path, columns: str, arguments: str, text: str
) -> None:
    for name, code in saved(path).items():
        (tmp_path / name).write_text(code)
    (tmp_path / "home").symlink_to(os.environ["SNNBENCH_HOME"])
    _, library, *adapter = arguments.split()
    assert managed.snnbench("env", "sync", library, *adapter, cwd=tmp_path).returncode == 0
    printed = screen(tmp_path, int(columns), *arguments.split()).text
    assert " ".join(text.split()) in " ".join(printed.split())


@pytest.mark.browser
@pytest.mark.parametrize(("word", "address"), [("surrogate", "config.html"), ("Pareto", "read-a-report.html")])
def test_search_finds_a_page_without_a_server(browser: Any, site: Path, word: str, address: str) -> None:
    from selenium.webdriver.common.by import By

    for log in ("browser", "performance"):
        browser.get_log(log)  # drop an earlier page's messages
    browser.get((site / "index.html").as_uri())
    field = browser.find_element(By.CSS_SELECTOR, "[data-md-component=search-query]")
    browser.execute_script("arguments[0].focus()", field)
    field.send_keys(word)
    links: list[str] = []
    end = time.monotonic() + ANSWERED_WITHIN_S
    while not any(address in link for link in links):
        assert time.monotonic() < end, f"{word!r} finds {links}; the browser says {browser.get_log('browser')}"
        time.sleep(0.1)
        results = browser.find_elements(By.CSS_SELECTOR, ".md-search-result__link")
        links = [str(result.get_attribute("href")) for result in results]
    browser.get(next(link for link in links if address in link))
    assert word.lower() in browser.find_element(By.TAG_NAME, "article").text.lower()
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
    assert [url for url in requested_addresses(browser) if not url.startswith(("file:", "data:", "about:"))] == []


@pytest.mark.browser
def test_home_shows_the_chart_of_the_palette(browser: Any, site: Path) -> None:
    for scheme, chart in (("light", "quick-light"), ("dark", "quick-dark")):
        media = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": media})
        browser.get((site / "index.html").as_uri())
        shown = "return [...document.querySelectorAll('article img')].filter(i => i.offsetWidth).map(i => i.src)"
        (source,) = browser.execute_script(shown)
        assert chart in source
        assert browser.execute_script("return document.querySelector('article img').naturalWidth") > 100
