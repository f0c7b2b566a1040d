"""Tests of the size from which a GPU pays, on times whose crossing is known."""

import pytest

from snnbench.analysis.crossover import Crossover, crossovers
from snnbench.analysis.results import results_by_case
from snnbench.recording.record import Record
from snnbench.report.page.outline import outline
from snnbench.report.text import crossover_table
from tests.fakes import CASE
from tests.recordings import deviating, recording, reported, timed

SIZES = (64, 256, 1024)


def times(name: str, device: str, *ms: float, make: object = timed) -> list[Record]:
    """A contender's training pass at each of SIZES."""
    return [
        make(name, case=CASE.with_(device=device, neurons=size), train=each)  # type: ignore[operator]
        for size, each in zip(SIZES, ms, strict=False)
    ]


def crossing(*records: Record) -> list[Crossover]:
    return crossovers(results_by_case(records), "train")


def test_crossing_lies_on_a_straight_line_of_logarithms() -> None:
    """4 to 1 at 64, 1 to 4 at 256: even in the middle of their logarithms, at 128."""
    cpu, cuda = times("lib", "cpu", 1.0, 4.0, 64.0), times("lib", "cuda", 4.0, 1.0, 1.0)
    (of_lib,) = crossing(*cpu, *cuda)
    assert of_lib.pays_from == pytest.approx(128) and of_lib.is_bracketed
    assert of_lib.ratios == ((64, 4.0), (256, 0.25), (1024, 1 / 64))


@pytest.mark.parametrize(
    ("gpu", "pays_from", "bracketed"),
    [
        ((2.0, 2.0, 2.0), None, False),
        ((0.5, 0.5, 0.5), 64, False),
        ((0.5, 2.0, 0.5), 512, True),  # the last crossing counts
        ((0.5, 0.5, 2.0), None, False),
    ],
)
def test_gpu_pays_at_all_larger_sizes_or_not(gpu: tuple[float, ...], pays_from: float | None, bracketed: bool) -> None:
    (of_lib,) = crossing(*times("lib", "cpu", 1.0, 1.0, 1.0), *times("lib", "cuda", *gpu))
    assert of_lib.pays_from == (None if pays_from is None else pytest.approx(pays_from))
    assert of_lib.is_bracketed is bracketed


def test_fastest_contenders_of_a_library_count() -> None:
    records = [
        *(*times("lib/a", "cpu", 9.0, 9.0, 9.0), *times("lib/b", "cpu", 1.0, 1.0, 1.0)),
        *(*times("lib/triton", "cuda", 0.5, 0.5, 0.5), *times("lib/slow", "cuda", 7.0, 7.0, 7.0)),
        *times("lib/defaults", "cuda", 0.1, 0.1, 0.1, make=deviating),
    ]
    (of_lib,) = crossing(*records)
    assert (of_lib.library, of_lib.cpu, of_lib.cuda) == ("lib", "lib/b", "lib/triton")
    assert {ratio for _, ratio in of_lib.ratios} == {0.5}


def test_library_without_two_common_sizes_has_no_crossing() -> None:
    assert not crossing(*times("lib", "cpu", 1.0, 1.0, 1.0), *times("lib", "cuda", 1.0))
    assert not crossing(*times("lib", "cpu", 1.0, 1.0, 1.0), *times("other", "cuda", 1.0, 1.0, 1.0))


def test_table_names_the_work_only_where_there_are_several() -> None:
    zero = {"reset": "zero", "detach_reset": True}
    cases = [(device, size) for device in ("cpu", "cuda") for size in SIZES]
    subtract = [timed("lib", case=CASE.with_(device=device, neurons=size), train=1.0) for device, size in cases]
    other = [timed("lib", case=CASE.with_(device=device, neurons=size, **zero), train=1.0) for device, size in cases]
    alone = crossover_table.table(results_by_case(subtract), "train")
    both = crossover_table.table(results_by_case([*subtract, *other]), "train")
    assert alone.columns[0] == "library" and len(alone.rows) == 1
    assert both.columns[0] == "work" and {row[0] for row in both.rows} == {"reset by subtraction", "reset to zero"}


def test_report_and_page_have_the_table_for_both_devices_only() -> None:
    cpu, cuda = times("lib", "cpu", 1.0, 4.0, 64.0), times("lib", "cuda", 4.0, 1.0, 1.0)
    never = [*times("never", "cpu", 1.0, 1.0, 1.0), *times("never", "cuda", 2.0, 2.0, 2.0)]
    both = recording(*cpu, *cuda, *never)
    text = reported(both)
    assert "| lib | about N=128 | 4.00 at 64 | 0.02 at 1,024 |" in text
    assert "| never | no size up to N=1,024 | 2.00 at 64 | 2.00 at 1,024 |" in text
    assert "crossover" in [section.name for section in outline(both)]
    assert "From which size a GPU pays" not in reported(recording(*cpu))
    assert "crossover" not in [section.name for section in outline(recording(*cpu))]
