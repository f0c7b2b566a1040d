"""Tests of results/README.md: it is that of the recordings which are there."""

from pathlib import Path

from tests.results_index import INDEX, index


def test_index_is_up_to_date() -> None:
    assert INDEX.read_text(encoding="utf-8") == index(), "python -m tests.results_index writes it"


def test_every_recording_is_in_the_index() -> None:
    text = index()
    for folder in (path.parent for path in Path(INDEX.parent).glob("*/records.jsonl")):
        assert text.count(f"[{folder.name}]({folder.name})") == 1
