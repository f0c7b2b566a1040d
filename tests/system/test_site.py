"""Tests of the site as files: every link leads somewhere, every table has its data, and addresses stay the same."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pyarrow.parquet as pq
import pytest
from jsonschema import Draft202012Validator

from snnbench.recording.reading import Recording
from snnbench.report import tidy
from snnbench.report.site import site
from snnbench.report.site.catalogue import Catalogue, NoRecordings, asks, cell_name, file_name, load
from tests.fakes import CASE
from tests.hostile import SCRIPT, hostile
from tests.recordings import failed, recording, timed, trials
from tests.sample import sample


def dated(made: Recording, day: str, name: str, question: str = "quick") -> Recording:
    """The recording as if it had been made on this day for this config."""
    analysis = "Which library is fast? All do the same work."
    config = made.config | {"config": made.config["config"] | {"name": question, "analysis": analysis}}
    records = [replace(record, started=f"{day}T12:00:00+00:00") for record in made.records]
    return replace(made, folder=made.folder.with_name(name), config=config, records=records)


def steady(ms: float, **fields: object) -> Recording:
    """A recording of two contenders, of which one takes this time."""
    return recording(
        *trials("fast/loop", [ms, 1.01 * ms, 0.99 * ms, ms], **fields), *trials("other", [3.0] * 4, **fields)
    )


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    floors = {"floors_ms": {"train": 0.5}}
    return Catalogue(
        [
            dated(steady(1.0, **floors), "2026-11-20", "old"),
            dated(steady(2.0, **floors), "2026-11-22", "new"),
            dated(sample(neurons=(64, 128, 1024), steps=()), "2026-11-21", "sweep", "core"),
            dated(hostile(), "2026-11-19", "a" + SCRIPT.replace("/", "\u2215"), SCRIPT),
        ]
    )


@pytest.fixture(scope="module")
def files(catalogue: Catalogue) -> dict[str, bytes]:
    return dict(site.files(catalogue))


class Links(HTMLParser):
    """The addresses that a page links to, and the anchors in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("id"):
            self.anchors.add(str(given["id"]))
        if tag in ("a", "link") and given.get("href"):
            self.addresses.append(str(given["href"]))


def pages(files: dict[str, bytes]) -> Iterator[tuple[str, Links]]:
    for address, content in files.items():
        if address.endswith(".html"):
            yield address, Links(content.decode())


def test_every_link_leads_to_a_file_or_an_anchor_of_the_site(files: dict[str, bytes]) -> None:
    linked = set()
    for address, page in pages(files):
        for link in page.addresses:
            where, _, anchor = link.partition("#")
            if not where:
                assert unquote(anchor) in page.anchors, (address, link)
                continue
            target = (Path("/") / Path(address).parent / unquote(where)).resolve().relative_to("/")
            assert str(target) in files, (address, link)
            linked.add(str(target))
    assert linked == set(files), "every file is linked from a page"


def test_no_page_names_another_host(files: dict[str, bytes]) -> None:
    for address, page in pages(files):
        assert not [link for link in page.addresses if re.match(r"[a-z]+:|//", link)], address


def test_text_of_a_stranger_stays_text(files: dict[str, bytes]) -> None:
    for address, content in files.items():
        if address.endswith((".html", ".svg", ".xml")):
            assert SCRIPT.encode() not in content, address
        assert not re.search(r"[^A-Za-z0-9._+/-]", address), "an address is made of safe characters"
        assert not {"..", "."} & set(Path(address).parts) and not address.startswith("/")


def test_question_has_its_newest_answer_and_all_recordings(files: dict[str, bytes], catalogue: Catalogue) -> None:
    name = "quick"
    assert f'href="questions/{name}.html"' in files["questions.html"].decode()
    text = files[f"questions/{name}.html"].decode()
    assert "Which library is fast?" in text and "As published" not in text
    assert "a laptop, 2026-11-22" in text and "a laptop, 2026-11-20" not in text
    assert 'href="../recordings/old.html"' in text, "an older recording is listed"


def test_published_numbers_stand_beside_the_newest_recording() -> None:
    case = CASE.with_(neurons=512, batch=16, time_steps=500, input_kind="gaussian")
    records = [*trials("spikingjelly/auto", [10.0], case=case), *trials("norse/box", [15.0], case=case)]
    chart = dated(recording(*records), "2026-11-22", "chart", "open-neuromorphic")
    text = dict(site.files(Catalogue([chart])))["questions/open-neuromorphic.html"].decode()
    assert "Here: reset by subtraction, CPU, 512 neurons, batch 16, 500 steps, on a laptop" in text
    rows = [re.findall(r"<t[dh].*?</t[dh]>", row, re.DOTALL) for row in text.split("<tr") if "norse/box" in row]
    cells = [[re.sub(r"<[^>]*>", "", cell).strip() for cell in row] for row in rows]
    assert ["Norse v1.0.0", "0.109", "0.0816", "norse/box", "15", "1.5", "exact"] in [row[:7] for row in cells]


def test_data_beside_a_table_are_the_tidy_rows_behind_it(files: dict[str, bytes], catalogue: Catalogue) -> None:
    (entries,) = (entries for entries in catalogue.by_cell.values() if entries[0].result.contender == "fast/loop")
    address = f"cells/{entries[0].name}"
    rows = json.loads(files[f"{address}.json"])
    values = [row["value"] for row in rows if row.get("metric") == "time"]
    assert sorted(round(value / 1e6, 2) for value in values) == [0.99, 1.0, 1.0, 1.01, 1.98, 2.0, 2.0, 2.02]
    assert {row["recording"] for row in rows} == {"old", "new"} and {row["library"] for row in rows} == {"fast"}
    for name in files:
        if name.endswith(".json") and not name.startswith(("schemas/", "cells/")):
            parquet = pq.read_table(io(files[name.replace(".json", ".parquet")]))
            assert parquet.num_rows == len(json.loads(files[name])) and parquet.column_names == tidy.COLUMNS


def io(content: bytes) -> object:
    import pyarrow as pa

    return pa.BufferReader(content)


def test_address_of_a_cell_does_not_depend_on_the_recordings(catalogue: Catalogue) -> None:
    case = timed("fast/loop").case
    assert cell_name(case, "fast/loop") in catalogue.by_cell
    alone = Catalogue([dated(steady(5.0), "2027-01-01", "later", "another")])
    assert cell_name(case, "fast/loop") in alone.by_cell
    assert cell_name(case, "fast/loop") != cell_name(case, "other")


def test_library_page_names_a_change_and_its_words(files: dict[str, bytes]) -> None:
    text = files["libraries/fast.html"].decode()
    assert "1 time of 1 changed" in text and ">slower<" in text and "2026-11-20 to 2026-11-22" in text
    assert "0 times of 1 changed" in files["libraries/other.html"].decode()


def test_history_says_which_recordings_cannot_be_compared() -> None:
    other = dated(recording(*trials("fast/loop", [1.0] * 4), repetitions=5), "2026-11-23", "unlike")
    made = dict(site.files(Catalogue([dated(steady(1.0), "2026-11-20", "old"), other])))
    assert "old and unlike: old and unlike are not comparable" in made["libraries/fast.html"].decode()
    assert "old and unlike" not in made["libraries/other.html"].decode(), "that library is in one of them only"


def test_growth_is_on_the_page_of_a_library_that_was_swept(files: dict[str, bytes]) -> None:
    text = files["libraries/gamma.html"].decode()
    assert "<dt>neurons N, 64 to 1024</dt>" in text and 'id="growth-1-time-1"' in text
    assert "sweep. Exponent in neurons N, 64 to 1024: reset by subtraction, GPU" in text
    assert "No recording sweeps a size" in files["libraries/fast.html"].decode()


def test_failure_has_a_page_and_no_time(catalogue: Catalogue, files: dict[str, bytes]) -> None:
    entries = next(entries for entries in catalogue.by_cell.values() if entries[0].result.contender == "zeta")
    text = files[f"cells/{entries[0].name}.html"].decode()
    assert "3 of 100 spikes differ" in text and ">failed<" in text


def test_results_have_a_row_for_each_entry(files: dict[str, bytes], catalogue: Catalogue) -> None:
    text = files["results.html"].decode()
    assert text.count("link to this row") == len(catalogue.entries) > 30


@pytest.mark.parametrize("text", ["..", ".", "", "a/b", "../../x", "CON|", "é", " "])
def test_unsafe_name_becomes_a_safe_one(text: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9-][A-Za-z0-9._+-]*", file_name(text)) and len(file_name(text)) >= 16
    assert file_name(text) != file_name(text + "x") and file_name("quick_4.1") == "quick_4.1"


def test_first_sentence_is_the_question() -> None:
    made = recording(failed("a", "crash", "no"))
    assert asks(made) == ""
    config = {"config": {"analysis": "Which is fast at N = 2.5 or more? It says\nhow."}}
    assert asks(replace(made, config=config)) == "Which is fast at N = 2.5 or more?"


def test_data_of_the_site_match_its_schema(files: dict[str, bytes]) -> None:
    tidy_schema = json.loads(files["schemas/tidy.json"])
    validator = Draft202012Validator(tidy_schema)
    Draft202012Validator.check_schema(tidy_schema)
    rows = json.loads(files["results.json"])
    assert len(rows) > 100
    validator.validate(rows)
    for change in ({"value": "fast"}, {"trial": 1.5}, {"invented": 1}):
        assert not validator.is_valid([rows[0] | change]), change


def test_long_name_is_shortened() -> None:
    names = [file_name(letter * 250) for letter in "ab"]
    assert len(set(names)) == 2 and max(map(len, names)) < 200


def test_folder_without_recordings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoRecordings, match="no recording in this folder"):
        load(tmp_path)


def test_site_is_written_twice_with_the_same_files(tmp_path: Path) -> None:
    catalogue = Catalogue([dated(steady(1.0), "2026-11-20", "old")])
    seen: list[tuple[int, int]] = []
    count = site.write(catalogue, tmp_path, lambda done, of: seen.append((done, of)))
    written = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()}
    assert len(written) == count and seen[-1][0] == seen[-1][1]
    (tmp_path / "cells" / "older.html").write_text("stays")
    assert site.write(catalogue, tmp_path) == count
    assert (tmp_path / "cells" / "older.html").read_text() == "stays"
