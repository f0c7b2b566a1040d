"""Tests of the history of a library in many recordings: its steps, and the versions at each."""

import json
from dataclasses import replace
from datetime import date, timedelta

import numpy as np

from snnbench.report.site import history
from snnbench.report.site.catalogue import Catalogue
from tests.analysis.test_movement import probed
from tests.recordings import recording, trials
from tests.system.test_site import dated

NIGHTS, RELEASED = 60, 35


def catalogue(slower: float = 1.12) -> Catalogue:
    """A recording each night; from one night on the release 1.1 of `lib` is `slower`."""
    random, made = np.random.default_rng(5), []
    for night in range(NIGHTS):
        late = night >= RELEASED
        records = []
        for name, ms in (("lib/loop", 5.0 * (slower if late else 1.0)), ("other", 2.0), ("third", 3.0)):
            times = ms * np.exp(random.normal(0, 0.02) + random.normal(0, 0.02, 3))
            records += probed(trials(name, times), version="1.1" if late and name == "lib/loop" else "1.0")
        day = date(2026, 9, 1) + timedelta(night)
        made.append(dated(recording(*records), day.isoformat(), f"night-{night:02}", "nightly"))
    return Catalogue(made)


def test_release_that_is_slower_is_named_with_its_day_and_both_versions() -> None:
    nights = catalogue()
    section = history.section(nights, history.pairs(nights), "lib")
    assert section.sentences[0] == "In 60 recordings of nightly on a laptop, 1 of 1 time changed for good."
    ((name, day, ratio, word, changes, _),) = section.tables[0].rows
    assert (name, day, word, changes) == ("lib/loop", "2026-10-06", "slower", "lib: 1.0 -> 1.1")
    assert abs(float(ratio) - 1.12) < 0.03
    (chart,) = section.charts
    assert "times: lib 1.0 -> 1.1" in json.dumps(chart.specification) and len(chart.table.rows) == NIGHTS


def test_library_in_few_of_many_recordings_is_not_called_new() -> None:
    nights = catalogue().recordings
    rare = [replace(one, records=[*one.records, *trials("rare", [4.0, 4.1, 3.9])]) for one in nights[:10]]
    both = Catalogue([*rare, *nights[10:]])
    (words, *_) = history.section(both, history.pairs(both), "rare").sentences
    assert words.startswith("Steps are looked for from 20 comparable recordings")


def test_library_that_did_not_change_has_no_step() -> None:
    nights = catalogue()
    section = history.section(nights, history.pairs(nights), "other")
    assert section.sentences[0].endswith("0 of 1 time changed for good.") and not section.tables
