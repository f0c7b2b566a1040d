"""Tests of the page of a library in a browser: it fits every width, its code is copied, and its long parts unfold."""

from pathlib import Path
from typing import Any

import pytest

from snnbench.report.page import page as documents
from snnbench.report.site import history
from snnbench.report.site.catalogue import Catalogue, load
from snnbench.report.site.library_page import library
from tests.processes import within
from tests.report.test_history import catalogue as nightly
from tests.shipped import RESULTS
from tests.system.test_browser import show
from tests.system.test_page import BOXES, LOOKS, UNFOLD


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The page of a library in the recordings of results/, and of one in sixty nights."""
    folder, catalogues = tmp_path_factory.mktemp("libraries"), {"snntorch": load(RESULTS), "lib": nightly()}
    return {name: written(name, catalogue, folder) for name, catalogue in catalogues.items()}


def written(name: str, catalogue: Catalogue, folder: Path) -> Path:
    made = library(catalogue, name, history.pairs(catalogue))
    part = documents.Part(made.sections, folded=made.folded)
    path = folder / f"{name}.html"
    path.write_text(documents.document(made.title, [part]), encoding="utf-8")
    return path


@pytest.mark.browser
@pytest.mark.parametrize(("width", "scheme"), LOOKS)
@pytest.mark.parametrize("name", ["snntorch", "lib"])
def test_nothing_is_cut_and_no_text_overlaps(
    browser: Any, paths: dict[str, Path], name: str, width: int, scheme: str
) -> None:
    show(browser, paths[name], width, scheme)
    browser.execute_script(UNFOLD)
    within(5, lambda: browser.execute_script(BOXES)[1:] == [[], [], []])
    texts, *wrong = browser.execute_script(BOXES)
    assert texts > 100 and wrong == [[], [], []] and browser.get_log("browser") == []


@pytest.mark.browser
def test_code_is_copied_from_a_file(browser: Any, paths: dict[str, Path]) -> None:
    show(browser, paths["snntorch"], 1280, "light")
    browser.execute_script("window.copied = []; document.execCommand = () => copied.push(String(getSelection()))")
    browser.execute_script("navigator.clipboard && (navigator.clipboard.writeText = () => Promise.reject())")
    browser.execute_script("document.querySelector('#code .copy button').click()")
    (code,) = browser.execute_async_script("setTimeout(() => arguments[0](window.copied), 300)")
    assert "import snntorch" in code and code.strip().endswith('spikes a step")')
    assert browser.execute_script("return document.querySelector('#code output').textContent") == "copied"


@pytest.mark.browser
def test_long_parts_are_folded_until_a_reader_opens_them(browser: Any, paths: dict[str, Path]) -> None:
    show(browser, paths["snntorch"], 1280, "light")
    is_shown = "return document.querySelector('#times table').checkVisibility()"
    assert not browser.execute_script(is_shown)
    browser.execute_script("document.querySelector('#times').closest('details').querySelector('summary').click()")
    assert browser.execute_script(is_shown)
