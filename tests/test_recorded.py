"""Tests of the numbers, sentences and tables that the documentation takes from the code and from recordings."""

import json
import re
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from snnbench import measures
from snnbench.analysis.results import Result, results_by_case
from snnbench.cases.case import Case
from snnbench.recording.record import Record
from tests.documents import DOCUMENTS, ROOT, hook, written
from tests.fakes import CASE, profile
from tests.recordings import deviating, timed, weighed

fill: Any = hook("fill")
explanations: Any = hook("explanations")
recordings: Any = hook("recordings")
TIME, PEAK = ("train", "time"), ("train", "host_peak")


def known(*records: Record) -> dict[tuple[Case, str], Result]:
    """The results of made records, as a hook has those of a recording."""
    return {(case, each.contender): each for case, group in results_by_case(records).items() for each in group}


def trials(recording: str, phase: str, **expected: Any) -> list[float]:
    """Milliseconds of a phase in each trial of one contender in one case, from the lines of the recording alone."""
    ms = []
    for line in (recordings.RESULTS / recording / "records.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if expected.items() <= {**record, **record["case"]}.items() and phase in record["phases"]:
            timing = record["phases"][phase]
            ms.append(median(timing["repetitions_ns"]) / timing["passes"] / 1e6)
    return ms


def cells(table: str, *first: str) -> list[str]:
    """The cells of the row of a table that begins so."""
    (row,) = (line for line in fill.texts()[table].splitlines() if line.startswith(f"| {' | '.join(first)} |"))
    return [cell.strip() for cell in row.split("|")[1:-1]]


@pytest.mark.parametrize("path", fill.PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_page_has_its_generated_parts_as_the_code_and_the_recordings_have_them_now(path: Path) -> None:
    assert fill.filled(written(path)) == written(path), "python docs/hooks/fill.py writes it"


def test_every_text_is_on_a_page() -> None:
    assert fill.unused(map(written, fill.PAGES)) == []
    assert not [name for name, text in fill.texts().items() if not text or "nan" in text.lower().split()]


def test_no_page_denies_a_measure_that_a_recording_has() -> None:
    """For a month four pages said that nobody had measured an energy, beside a recording with joules."""
    lines = (line for path in recordings.RESULTS.glob("*/records.jsonl") for line in path.open(encoding="utf-8"))
    keys = {key for line in lines for timing in json.loads(line).get("phases", {}).values() for key in timing}
    measured = [name.replace("_", " ") for name in measures.asked_for() if name in keys]
    assert "energy" in measured
    denial = re.compile(r"\b(no|nobody|none)\b[^.]*\b(yet|has measured)\b", re.IGNORECASE)
    for path in (*DOCUMENTS, ROOT / "WANTED.md", ROOT / "CHANGELOG.md"):
        for section in re.split(r"^#+ ", written(path), flags=re.MULTILINE):
            heading, _, body = section.partition("\n")
            for paragraph in re.split(r"\n\n|\n(?=- )", body):
                about = f"{heading} {paragraph}".lower()
                denied = [name for name in measured if name in about]
                assert not (denied and denial.search(paragraph)), f"{path}: {paragraph}"


def test_part_is_filled_once_and_an_unknown_one_is_an_error() -> None:
    line, made = fill.filled("It waits {{\nconstant.busy }}."), '<span data-made="constant.busy">200 ms</span>'
    assert line == f"It waits {made}."
    table = fill.filled("{{ profiles }}\n")
    assert table.startswith("<!-- made: profiles -->\n\n| profile |") and table.endswith("|\n\n<!-- end -->\n")
    assert fill.filled(line) == line and fill.filled(table) == table
    assert fill.filled(line.replace("200", "300")) == line
    for part in ("{{ invented.busy }}", "{{ constant.invented }}", '<span data-made="busy">1</span>'):
        with pytest.raises(KeyError):
            fill.filled(part)


def test_text_on_no_page_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fill, "texts", lambda: {"depth.times": "1 to 2", "depth.invented": "3"})
    assert fill.unused(["{{ depth.times }}"]) == ["depth.invented"]
    with pytest.raises(ValueError, match=r"made for no page: depth\.invented"):
        fill.write()


def test_missing_recording_and_broken_words_are_errors() -> None:
    with pytest.raises(ValueError, match="no recording of invented"):
        recordings.newest("invented")
    recordings.require(True, "All are exact.")
    with pytest.raises(ValueError, match="does not bear out: All are"):
        recordings.require(False, "All are exact.")


def test_span_has_the_least_and_the_largest() -> None:
    assert explanations.span([2, 10.004, 0.5]) == "0.50 to 10.00"
    assert explanations.span([3.25], digits=1) == "3.2"
    assert [explanations.percent(share) for share in (0.0005, 0.01, 0.9)] == ["0.05 %", "1 %", "90 %"]


def test_growth_is_of_one_contender_in_one_kind_of_case() -> None:
    deep, zero = CASE.with_(layers=16), profile("zero")
    made = known(
        *(timed("norse", train=2.0, case=CASE), timed("norse", train=40.0, case=deep)),
        *(timed("sinabs", train=1.0, case=CASE), timed("sinabs", train=15.0, case=deep)),
        *(timed("sinabs", train=5.0, case=CASE.with_(**zero)), timed("sinabs", train=50.0, case=deep.with_(**zero))),
        *(weighed("norse", host_mib=8), weighed("norse", deep, host_mib=32)),
    )
    assert sorted(explanations.grown(made, TIME)) == [10, 15, 20]
    assert explanations.grown({key: made[key] for key in made if key[1] == "norse"}, PEAK) == [4]


def test_ratio_to_fused_is_of_cases_with_enough_steps() -> None:
    short, long = CASE.with_(time_steps=2), CASE.with_(time_steps=8)
    made = known(
        *(timed("fused/cpu", train=1.0, case=short), timed("serial/torch", train=3.0, case=short)),
        *(timed("fused/cpu", train=2.0, case=long), timed("serial/torch", train=9.0, case=long)),
    )
    assert explanations.over_fused(made, "serial/torch") == [3, 4.5]
    assert explanations.over_fused(made, "serial/torch", least_steps=4) == [4.5]
    assert explanations.exact(made)
    assert not explanations.exact(known(timed("norse", train=1.0), deviating("lava-dl", train=1.0)))


def test_ratio_of_an_epoch_is_that_of_its_recorded_durations() -> None:
    loading = recordings.newest("loading").name
    naive, cached = (
        median(trials(loading, "epoch", library="sinabs", workers=0, strategy=strategy)) / 1e3
        for strategy in ("naive", "memory")
    )
    row = cells("findings.loading", "sinabs")
    assert (row[1], row[-1]) == (f"{naive:.2f}", f"{naive / cached:.2f}")
    assert cells("loading.table", "2 CPUs", "sinabs")[-1] == fill.texts()["loading.sinabs"] == row[-1]


def test_gain_of_compiling_is_that_of_its_recorded_durations() -> None:
    ways = recordings.newest("ways").name
    eager, compiled = (
        median(trials(ways, "train", library="torch-loop", variant=variant, reset="zero", dtype="float32"))
        for variant in ("unbind", "compile")
    )
    row = cells("findings.compiling", "torch-loop", "zero")
    assert row[2:5] == [f"{eager:.1f}", f"{compiled:.1f}", f"{eager / compiled:.2f}"]


def test_published_ratios_are_those_of_the_published_seconds() -> None:
    """Published are 160.59 s, 71.17 s and 68.11 s."""
    assert cells("table_1.table", "ResNet18")[1:3] == ["2.36", "1.04"]
    assert cells("loading.table", "RTX 3080", "EXODUS")[2:] == ["90.73", "6.36", "10.24", "-"]
