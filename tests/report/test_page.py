"""Tests of the page as text: one file without requests, in which every text from a stranger stays text."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import pytest

from snnbench.report.page import page
from tests.hostile import MARK, SCRIPT, hostile
from tests.recordings import record, recording, timed
from tests.sample import sample

LIMIT_BYTES = 3_000_000
VOID = {"meta", "br", "img", "link", "input", "hr"}


class Elements(HTMLParser):
    """The page as a browser parses it: every element with its attributes, and the text of scripts and cells."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.words: list[str] = []
        self.stack: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        if self.stack and self.stack[-1] == "script":
            self.scripts[-1] += data
        elif data.strip():
            self.words.append(data.strip())

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def text() -> str:
    return page.html([sample(neurons=(64, 128, 256), steps=(25, 50, 100))])


@pytest.fixture(scope="module")
def hostile_text() -> str:
    return page.html([hostile()])


def test_page_is_small_and_self_contained(text: str) -> None:
    assert len(text.encode()) < LIMIT_BYTES
    elements = Elements(text)
    assert not elements.stack
    for tag, attributes in elements.elements:
        assert tag not in ("link", "iframe", "img", "object", "embed", "base", "form")
        assert "src" not in attributes
        assert all(value.startswith("#") for name, value in attributes.items() if name == "href" and value)


def test_policy_allows_only_the_pages_own_scripts(text: str) -> None:
    elements = Elements(text)
    (policy,) = [m["content"] or "" for m in elements.named("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ") and "unsafe-eval" not in policy
    data, *scripts = elements.scripts
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    assert re.findall(r"'sha256-([^']+)'", policy) == hashes and len(hashes) == 3
    assert json.loads(data).keys() == {"configuration", "specifications"}


def test_every_chart_has_a_container_a_label_and_numbers(text: str) -> None:
    elements = Elements(text)
    containers = {a["id"]: a for a in elements.named("div") if a.get("class") == "chart"}
    assert containers.keys() == json.loads(elements.scripts[0])["specifications"].keys()
    assert all(container["role"] == "img" and container["aria-label"] for container in containers.values())
    assert len(elements.named("figure")) == len(containers) > 15
    assert len(elements.named("details")) > len(containers)


def test_contents_link_to_every_section_and_anchors_are_unique(text: str) -> None:
    elements = Elements(text)
    ids = [attributes["id"] for _, attributes in elements.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = [(a["href"] or "").removeprefix("#") for a in elements.named("a")]
    sections = [target for target in targets if "cell-" not in target]
    assert sections == [a["id"] for a in elements.named("section")] and len(sections) == 14
    cells = [target for target in targets if "cell-" in target]
    assert cells == [a["id"] for a in elements.named("tr") if "id" in a] and cells


def test_answer_chart_numbers_and_verdicts_are_open_and_the_rest_says_what_is_inside(text: str) -> None:
    body = text.partition("<main>")[2]
    folded = dict(re.findall(r'<details class="rest"><summary><h2 id="r1-(.+?)-title">.*?</h2> (.*?)</summary>', body))
    in_order = re.findall(r'<section id="r1-(.+?)"', body)
    assert in_order[:4] == ["answer", "time", "cells", "matrix"] and list(folded) == in_order[4:]
    assert folded["memory"] == "what one pass keeps, and its peak (4 charts)"


def test_section_that_is_left_out_needs_no_unfolding() -> None:
    body = page.html([recording(timed("a", train=1.0))])
    assert re.search(r'<section id="r1-scaling"[^>]* class="rest">\s*<h2[^>]*>[^<]*</h2>\s*<p>Left out: ', body)


def test_headings_go_down_one_step_at_a_time() -> None:
    for recordings in ([sample(neurons=(64,), steps=())], [recording(name="a"), recording(name="b")]):
        levels = [int(tag[1]) for tag, _ in Elements(page.html(recordings)).elements if re.fullmatch(r"h\d", tag)]
        assert levels[0] == 1 and levels.count(1) == 1
        assert all(after - before <= 1 for before, after in pairwise(levels))


def test_several_recordings_have_separate_anchors() -> None:
    elements = Elements(page.html([recording(timed("a", train=1.0), name=name) for name in ("monday", "tuesday")]))
    assert {"r1-top", "r2-top", "r1-time", "r2-time", "r1-time-1", "r2-time-1"} <= {
        attributes.get("id") for _, attributes in elements.elements
    }


@pytest.mark.parametrize("records", [[], [record("a", "verify")]])
def test_page_without_charts_is_small(records: list[Any]) -> None:
    text = page.html([recording(*records)])
    assert len(Elements(text).scripts) == 1 and len(text) < 50_000
    assert text.count("Left out: ") >= 7


def test_hostile_text_never_becomes_markup(hostile_text: str) -> None:
    elements = Elements(hostile_text)
    assert not elements.stack and len(elements.scripts) == 4
    assert not elements.named("img")
    assert not [name for _, attributes in elements.elements for name in attributes if name.startswith("on")]
    assert "<" not in elements.scripts[0], "the data could end its element"
    assert MARK not in "".join(elements.scripts[1:])
    assert MARK not in hostile_text.partition("</style>")[0].partition("<style>")[2]
    assert "49" not in [word for word in elements.words if "7*7" in word]


def test_hostile_text_is_shown_unchanged(hostile_text: str) -> None:
    elements = Elements(hostile_text)
    assert sum(SCRIPT in word for word in elements.words) > 20
    names = {row["library"] for row in _rows(json.loads(elements.scripts[0])) if "library" in row}
    assert any(name.startswith(SCRIPT) for name in names), "JSON gives the name back whole"


def _rows(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        own = [row for rows in value.get("datasets", {}).values() for row in rows]
        return own + [row for inner in value.values() for row in _rows(inner)]
    return []
