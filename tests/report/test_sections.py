"""Tests of the sections that are tables: contenders of the same work, failures, steadiness, and provenance."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from snnbench.report.overview import Overview, find
from snnbench.report.page import citation, matrix, noise, page, provenance, sections
from snnbench.report.page.outline import outline
from tests.fakes import CASE
from tests.recordings import deviating, failed, recording, skipped, timed
from tests.sample import sample

ZERO = CASE.with_(reset="zero", detach_reset=True)


def overview(*records: Any, **about: Any) -> Overview:
    return find(recording(*records, **about))


def test_matrix_comes_after_the_answer_its_chart_and_its_numbers() -> None:
    names = [section.name for section in outline(sample(neurons=(64, 128), steps=()))]
    assert names == [
        *(
            "answer",
            "time",
            "cells",
            "matrix",
            "memory",
            "pareto",
            "split",
            "first-call",
            "crossover",
            "scaling",
            "ratio",
            "failures",
        ),
        *("noise", "provenance"),
    ]


def test_matrix_has_a_word_for_every_contender_and_setting() -> None:
    records = [timed("a", train=1.0), timed("a", case=ZERO, train=1.0), deviating("b", train=1.0)]
    records += [failed("c", "incorrect", "wrong"), skipped("d", "unsupported", "no reset", case=ZERO)]
    records += [timed("e", train=1.0), failed("e", "oom-host", "full", trial=1)]
    table, *_ = matrix.section(overview(*records)).tables
    assert list(table.columns) == ["library", "reset by subtraction, CPU", "reset to zero, CPU"]
    assert [[cell.replace("\u00a0", " ") for cell in row] for row in table.rows] == [
        ["a", "\u2713 exact", "\u2713 exact"],
        ["b", "\u2260 deviates", ""],
        ["c", "\u2717 incorrect", ""],
        ["d", "", "\u2212 unsupported"],
        ["e", "\u2713 1 exact, ! 1 failed (oom-host)", ""],
    ]


def test_row_of_the_matrix_is_a_library_with_its_variants() -> None:
    records = [timed(f"a/{variant}", train=1.0) for variant in "xy"] + [deviating("a/z", train=1.0)]
    records += [timed(f"a/{variant}", case=ZERO, train=1.0) for variant in "xyz"]
    table, *_ = matrix.section(overview(*records)).tables
    (row,) = ([cell.replace("\u00a0", " ") for cell in row] for row in table.rows)
    assert row == ["a: x, y, z", "\u2713 exact: x, y; \u2260 deviates: z", "\u2713 exact"]


def part(neurons: int, samples: int, seed: int | None) -> dict[str, Any]:
    """The checks of a record: one check of so many neurons and samples."""
    return {"spot-train": {"neurons": neurons, "samples": samples, "seed": seed}}


def test_full_coverage_is_stated_once() -> None:
    whole = [timed(name, case=case, train=1.0, checks=part(48, 7, None)) for name in "ab" for case in (CASE, ZERO)]
    assert matrix.section(overview(*whole)).remarks == ["Checked: all."]
    assert matrix.section(overview(timed("a", train=1.0))).remarks == []
    assert "<li>Checked: all.</li>" in page.html([recording(*whole)])


def test_partial_coverage_names_work_and_contender() -> None:
    sizes = [CASE.with_(neurons=neurons) for neurons in (480, 960)]
    records = [timed(name, train=1.0, checks=part(48, 7, None)) for name in "ab"]
    records += [timed("a", case=sizes[0], train=1.0, checks=part(240, 2, 1))]
    records += [timed("b", case=sizes[0], train=1.0, checks=part(48, 1, 2))]
    records += [timed("a", case=sizes[1], train=1.0, checks=part(960, 7, None))]
    records += [timed("a", case=ZERO, train=1.0, checks=part(24, 1, 3)), failed("c", "incorrect", "wrong")]
    assert matrix.section(overview(*records)).remarks == [
        "Checked in reset by subtraction, CPU, N=48 and N=960: all.",
        "Checked in reset by subtraction, CPU, N=480: 50% of neurons, 2 of 7 samples (a).",
        "Checked in reset by subtraction, CPU, N=480: 10% of neurons, 1 of 7 samples (b).",
        "Checked in reset to zero, CPU: 50% of neurons, 1 of 7 samples.",
    ]


def test_every_sign_has_a_meaning_beside_the_matrix() -> None:
    ((_, meanings),) = matrix.section(overview(timed("a", train=1.0))).folded
    assert all(f"{word}: " in meanings for word in matrix.SIGNS if word != "failed")


def test_failure_has_reason_log_and_replay_command() -> None:
    broken = failed("a", "crash", "died of SIGSEGV", log="loading\nTraceback:\n  boom\n\n")
    (table,) = sections.failures(overview(broken, name="monday")).tables
    (row,) = table.rows
    assert list(row) == [
        *("a", "crash", "reset by subtraction, CPU: 48 neurons, batch 7, 20 steps", "died of SIGSEGV", "boom"),
        f"snnbench show {broken.cell} --in results/monday --replay",
    ]


def test_equal_failures_are_one_row_with_a_count() -> None:
    records = [failed("a", "crash", "died", trial=trial) for trial in range(3)] + [failed("a", "timeout", "late")]
    (table,) = sections.failures(overview(*records)).tables
    assert [(row[1], row[2]) for row in table.rows] == [
        ("crash", "reset by subtraction, CPU: 48 neurons, batch 7, 20 steps, and 2 cells more"),
        ("timeout", "reset by subtraction, CPU: 48 neurons, batch 7, 20 steps"),
    ]


def test_command_is_quoted_for_a_shell() -> None:
    (table,) = sections.failures(overview(failed("a", "crash", "died"), name="two words; rm")).tables
    assert "'results/two words; rm'" in table.rows[0][5]


def test_noise_lists_the_noisiest_first_with_its_flags() -> None:
    records = [timed("a", trial, train=ms) for trial, ms in enumerate((10.0, 11.0, 10.0))]
    records += [timed("b", trial, train=ms, flags=["contended"]) for trial, ms in enumerate((10.0, 15.0))]
    records += [timed("c", train=1.0)]
    section = noise.section(overview(*records))
    (table,) = section.tables
    where = "reset by subtraction, CPU: 48 neurons, batch 7, 20 steps"
    assert [list(row) for row in table.rows] == [
        ["b", where, "contended 2", "40.0%", "40.0%"],  # (15 - 10) / 12.5
        ["a", where, "-", "10.0%", "10.0%"],
        ["c", "one trial only", "-", "-", "-"],
    ]
    assert [chart.title.split(":")[0] for chart in section.charts] == ["b", "a"]


def test_provenance_names_machine_versions_and_config(tmp_path: Path) -> None:
    made = recording(timed("a", train=1.0, version="2.1", adapter="cafe", settings={"torch": "2.13"}), model="a laptop")
    made = replace(
        made, folder=tmp_path, machine={"model": "a laptop", "cpu": {"cores": 4}, "gpus": [{"name": "H200"}]}
    )
    made = replace(made, environments={"beef": {"torch": "2.13.0"}})
    section = provenance.section(find(made))
    about, machine, versions = section.tables
    assert ["recording", tmp_path.name] in [list(row) for row in about.rows]
    assert [list(row) for row in machine.rows] == [["model", "a laptop"], ["cpu cores", "4"], ["gpus 0 name", "H200"]]
    assert [list(row) for row in versions.rows] == [["a", "2.1", "torch 2.13", "cafe", "-"]]
    folded = dict(section.folded)
    assert '"trials": 3' in folded["The resolved config"]
    assert "2.13.0" in folded["Everything installed, by environment"]
    assert folded["How to cite it"].startswith("@misc{")


def test_citation_escapes_tex_and_yaml() -> None:
    import yaml

    made = recording(timed("a", train=1.0, started="2026-11-21T10:00:00+00:00"), name="a_b}", model='50% & "more"\nx')
    assert citation.bibtex([made]) == (
        "@misc{a_b-,\n  author = {{The snnbench authors}},\n  title = {{snnbench} recording a\\_b\\}},\n"
        '  note = {snnbench of an unknown version, 50\\% \\& "more" x},\n  year = {2026}\n}\n'
    )
    read = yaml.safe_load(citation.cff([made]))
    assert read["date-released"] == "2026-11-21"
    assert read["abstract"] == 'a_b}: 50% & "more"\nx'
    assert {"cff-version", "message", "title", "authors", "type"} <= read.keys()
