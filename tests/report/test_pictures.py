"""Tests that the README's pictures say what the recording says, and ask nothing of a network."""

from pathlib import Path

import pytest

from tests import pictures


@pytest.mark.parametrize("name", [*pictures.CHARTS, "terminal.svg"])
def test_picture_is_of_the_committed_recording(name: str, tmp_path: Path) -> None:
    """`python -m tests.pictures` draws the pictures anew."""
    drawn = pictures.terminal(tmp_path) if name == "terminal.svg" else pictures.charts(tmp_path)[name]
    text = (pictures.IMAGES / name).read_text(encoding="utf-8")
    assert pictures.words(text) == pictures.words(drawn)
    assert "fused/cpu" in text and "url(http" not in text


def test_light_and_dark_charts_differ_in_colours_only() -> None:
    light, dark = ((pictures.IMAGES / name).read_text(encoding="utf-8") for name in pictures.CHARTS)
    assert light != dark and pictures.words(light) == pictures.words(dark)
