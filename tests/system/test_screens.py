"""Tests of what commands draw on real terminals of several widths: fitted, without Markdown, answer first."""

import re
from pathlib import Path

import pytest

from tests.screens import Screen, screen
from tests.shipped import OLDER, QUICK, RESULTS
from tests.sweep import Workspace, run_arguments
from tests.whole import WHOLE

NEW = RESULTS / QUICK
TWICE = OLDER / "2026-11-21_quick_epyc-2cpu", OLDER / "2026-11-21_quick_epyc-2cpu_4"
"""The same work, recorded twice."""
WIDTHS = (80, 120, 200) if WHOLE else (80,)


def assert_fits(shown: Screen) -> None:
    assert shown.widest() <= shown.columns, [line for line in shown.lines if len(line) > shown.columns]
    assert not [line for line in shown.lines if line.startswith("|")], "raw Markdown"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace(tmp_path_factory.mktemp("screens"))


@pytest.mark.parametrize("columns", WIDTHS)
def test_run_ends_with_answer_table_and_next_commands(workspace: Workspace, columns: int) -> None:
    arguments = run_arguments(workspace.config, workspace.adapters, "-o", f"at{columns}")
    shown = screen(workspace.folder, columns, *arguments)
    assert shown.status == 0
    assert_fits(shown)
    words = " ".join(shown.text.split())  # the name of a CPU may break a line anywhere
    for part in ("of 6 done, 1 running", "now: good subtract", "6 of 6 cells measured", "✓ exact"):
        assert part in words
    assert any(word in shown.text for word in ("Too close to call", "leads.", "lead;"))
    assert f"snnbench rank at{columns}" in shown.text and f"recorded in at{columns}" in shown.text
    assert shown.text.index("Too close" if "Too close" in shown.text else " lead") < shown.text.index("train ms")


def test_quiet_run_prints_the_folder_alone(workspace: Workspace) -> None:
    arguments = run_arguments(workspace.config, workspace.adapters, "-o", "quiet", "--quiet")
    shown = screen(workspace.folder, 80, *arguments)
    assert (shown.status, shown.raw) == (0, "quiet\r\n")


@pytest.mark.parametrize("columns", WIDTHS)
def test_report_draws_every_case_within_the_width(tmp_path: Path, columns: int) -> None:
    shown = screen(tmp_path, columns, "report", NEW)
    assert shown.status == 0
    assert_fits(shown)
    assert re.search(r"[\w/-]+ \([\d.]+ ms\) and [\w/-]+ \([\d.]+ ms\) lead", " ".join(shown.text.split()))
    assert shown.text.count("torch-loop/unbind") >= 2 and "█" in shown.text
    left_out = f"{columns} columns leave out: " in shown.text
    assert left_out is (columns < 200)
    assert ("retained MiB" in shown.text.split("leave out")[0]) is not left_out


@pytest.mark.parametrize("columns", WIDTHS)
def test_rank_draws_one_table_a_case(tmp_path: Path, columns: int) -> None:
    shown = screen(tmp_path, columns, "rank", NEW)
    assert shown.status == 0
    assert_fits(shown)
    headings = [line for line in shown.lines if line in ("train, reset by subtraction", "train, reset to zero")]
    assert len(headings) == 2 and "inference" not in shown.text and "geometric mean" not in shown.text
    assert "▲ slower" in shown.text and "▼ faster" in shown.text


def test_rank_of_a_named_phase(tmp_path: Path) -> None:
    shown = screen(tmp_path, 120, "rank", NEW, "--phase", "inference")
    assert "inference, reset to zero" in shown.lines and "train, reset to zero" not in shown.lines


@pytest.mark.parametrize("columns", WIDTHS)
def test_compare_draws_changes_first_and_counts_once(tmp_path: Path, columns: int) -> None:
    shown = screen(tmp_path, columns, "compare", *TWICE, "--allow", "contended,drift")
    assert_fits(shown)
    assert shown.text.count("75 comparisons: ") == 1 and " ".join(shown.lines).count("inconclusive: these trials") == 1
    words = [word for line in shown.lines if (word := line[2:].split(" ")[0]) in ("missing", "inconclusive")]
    assert words == sorted(words, reverse=True), "missing cells stand before inconclusive ones"


@pytest.mark.parametrize("columns", WIDTHS)
def test_list_has_a_line_for_each_library(tmp_path: Path, columns: int) -> None:
    shown = screen(tmp_path, columns, "list")
    assert shown.status == 0
    assert_fits(shown)
    assert sum(line.startswith("norse ") for line in shown.lines) == 1
    assert "snnbench env sync" in shown.text, "nothing is installed in this home"


def test_list_of_a_library_has_a_line_for_each_variant(tmp_path: Path) -> None:
    shown = screen(tmp_path, 80, "list", "norse")
    assert_fits(shown)
    assert "norse/box " in shown.text and "norse/box: Lift(LIFBoxCell)" in shown.text and "sinabs" not in shown.text
    assert "sinabs/defaults" in screen(tmp_path, 80, "list", "--all").text


@pytest.mark.parametrize("columns", WIDTHS)
def test_verify_draws_a_matrix(workspace: Workspace, columns: int) -> None:
    files = [part for adapter in workspace.adapters for part in ("--adapter", adapter)]
    shown = screen(workspace.folder, columns, "verify", "--config", workspace.config, "--env", "current", *files)
    assert shown.status == 0
    assert_fits(shown)
    assert ["library", "version", "subtract"] in [line.split() for line in shown.lines]
    assert_exact(shown, "good")
    assert_exact(shown, "other")
    assert "2 cases: 2 exact" in shown.text


def assert_exact(shown: Screen, name: str) -> None:
    (row,) = [line.split() for line in shown.lines if line.startswith(f"{name} ")]
    assert row[0] == name and row[-2:] == ["✓", "exact"]


@pytest.mark.parametrize("columns", WIDTHS)
def test_doctor_counts_problems_warnings_and_the_rest(tmp_path: Path, columns: int) -> None:
    shown = screen(tmp_path, columns, "doctor")
    assert_fits(shown)
    assert shown.lines[-2].split(", ")[-1].endswith(" ok")
    assert "✓ ok       threads: " in shown.text


@pytest.mark.parametrize("columns", WIDTHS)
def test_dry_run_draws_a_table_for_each_case(tmp_path: Path, columns: int) -> None:
    (tmp_path / "results").symlink_to(RESULTS)
    shown = screen(tmp_path, columns, "run", "--config", "quick", "--set", "case.threads=1", "--dry-run")
    assert shown.status == 0
    assert_fits(shown)
    assert len([line for line in shown.lines if line in ("reset by subtraction", "reset to zero")]) == 2
    assert "13 cells" in shown.text and "a race: contenders that may lead have up to 12 trials" in " ".join(
        shown.text.split()
    )


def test_show_draws_a_card(tmp_path: Path) -> None:
    from snnbench.recording.reading import read

    record = read(NEW).records[0]
    shown = screen(tmp_path, 80, "show", record.cell, "--in", NEW)
    assert_fits(shown)
    assert shown.text.startswith("╭─ ") and record.label in shown.lines[0] and "✓ exact" in shown.text


def test_snnbench_alone_answers_in_ten_lines(tmp_path: Path) -> None:
    shown = screen(tmp_path, 80)
    assert_fits(shown)
    assert "Which library is the fastest" in shown.text


def test_words_read_without_colour_and_without_symbols(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    shown = screen(tmp_path, 80, "report", NEW)
    assert shown.status == 0 and shown.raw.isascii()
    assert "exact" in shown.text and "fused/cpu" in shown.text
