"""Tests of every recording in results/: it keeps the rules of measurement, and its ranks have one word each."""

from pathlib import Path

import pytest

from snnbench import checking
from snnbench.analysis.decision import Thresholds
from snnbench.analysis.rank import rank
from snnbench.recording.reading import read
from tests.shipped import OLDER, RESULTS


@pytest.mark.parametrize("folder", sorted(path.parent for path in RESULTS.glob("*/records.jsonl")), ids=str)
def test_ranks_of_shipped_recordings_have_one_word_each(folder: Path) -> None:
    """Each contender is the baseline in turn."""
    real = read(folder)
    for name in sorted({record.label for record in real.records}):
        for ranking in rank(real, name, Thresholds()).rankings:
            words: dict[int, set[str]] = {}
            for entry in ranking.entries:
                if entry.rank:
                    word = entry.comparison.word if entry.comparison else "inconclusive"
                    words.setdefault(entry.rank, set()).add(word if word in ("slower", "faster") else "neither")
            assert all(len(of_rank) == 1 for of_rank in words.values()), (folder.name, name, ranking.phase, words)


@pytest.mark.parametrize(
    "folder",
    sorted(each for each in (*RESULTS.iterdir(), *OLDER.iterdir()) if each.is_dir()),
    ids=lambda path: path.name,
)
def test_shipped_recording_keeps_the_rules(folder: Path) -> None:
    assert checking.check(folder) == []
