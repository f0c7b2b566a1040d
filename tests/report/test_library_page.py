"""Tests of the page of a library: what it claims of its standing and variants, its verdicts, caveats and code."""

from itertools import combinations
from typing import Any

import pytest

from snnbench.report.section import Section
from snnbench.report.site import caveats, explorer_data, history, standing, tables
from snnbench.report.site.catalogue import Catalogue
from snnbench.report.site.library_page import library
from tests.fakes import CASE
from tests.recordings import deviating, failed, recording, skipped, trials, weighed

NOISE = (0.99, 1.0, 1.01, 1.0)
WIDE = CASE.with_(neurons=96)


def timed(name: str, ms: float, **fields: Any) -> list[Any]:
    """Four trials near this time."""
    return trials(name, [ms * factor for factor in NOISE], **fields)


def sections(name: str, *records: Any) -> dict[str, Section]:
    """The sections of a library's page, by their names."""
    catalogue = Catalogue([recording(*records)])
    return {each.name: each for each in library(catalogue, name, history.pairs(catalogue)).sections}


def test_standing_names_how_far_a_library_is_behind_and_where() -> None:
    records = [
        *timed("fast", 1.0),
        *timed("lib/a", 2.0),
        *timed("fast", 1.0, case=WIDE),
        *timed("lib/a", 4.0, case=WIDE),
    ]
    ((machine, words),) = sections("lib", *records)["answer"].answers
    assert machine == "CPU: a laptop"
    assert words == (
        "In training passes it takes 2 to 4 times as long as the fastest contender. It is nearest in reset by "
        "subtraction, 48 neurons, batch 7, 20 steps (2), and farthest in reset by subtraction, 96 neurons, batch 7, 20 "
        "steps (4, behind fast)."
    )


@pytest.mark.parametrize(("ms", "words"), [([1.0], "which no test confirms"), ([1.0, 1.9, 0.8], "no other contender")])
def test_standing_claims_nothing_that_no_test_shows(ms: list[float], words: str) -> None:
    records = [*trials("fast", ms), *trials("lib", [1.05 * each for each in ms])]
    assert words in sections("lib", *records)["answer"].answers[0][1]


def test_contended_times_claim_nothing() -> None:
    records = [*timed("fast", 1.0), *timed("next", 1.5), *timed("lib", 10.0, flags=["contended"])]
    ((_, words),) = sections("lib", *records)["answer"].answers
    assert "which no test confirms" in words and "10 times" in words


def test_best_way_is_the_variant_that_the_test_puts_in_front() -> None:
    records = [*timed("lib/a", 2.0), *timed("lib/b", 1.0), *timed("lib/c", 1.01), *timed("fast", 0.5)]
    variants = sections("lib", *records)["variants"]
    ((_, words),) = variants.answers
    assert words == "Begin with lib/b: no other variant is shown to be faster, in its one case."
    assert [[row[0], *row[2:]] for row in variants.tables[0].rows] == [
        ["lib/b", "1 of 1", "1"],
        ["lib/c", "1 of 1", "1.01"],
        ["lib/a", "0 of 1", "2"],
    ]


def test_variant_that_is_faster_in_one_case_is_named_with_it() -> None:
    records = [*timed("lib/a", 1.0), *timed("lib/b", 2.0), *timed("fast", 0.5)]
    for neurons, a_ms in ((96, 1.0), (200, 3.0)):
        wide = CASE.with_(neurons=neurons)
        records += [*timed("lib/a", a_ms, case=wide), *timed("lib/b", 1.5, case=wide), *timed("fast", 0.5, case=wide)]
    words = sections("lib", *records)["variants"].answers[0][1]
    assert words == (
        "Begin with lib/a: no other variant is shown to be faster in 2 of 3 cases. Faster is lib/b in 1 case (2 times "
        "as fast, in reset by subtraction, 200 neurons, batch 7, 20 steps)."
    )


def test_variants_have_the_words_of_the_whole_case() -> None:
    """Apart from the other contenders, the test would have fewer trials to tell the spread of the machine by."""
    others = [one for n in range(6) for one in trials(f"other{n}", [1.0 + n, 1.9 + n, 0.6 + n, 1.4 + n])]
    catalogue = Catalogue(
        [recording(*trials("lib/a", [1.0, 1.1, 0.9, 1.0]), *trials("lib/b", [1.2, 1.3, 1.1, 1.2]), *others)]
    )
    (view,) = explorer_data.views(catalogue)
    names = combinations([entry.contender for entry in view.ranking.entries], 2)
    words = {pair: word for pair, (word, *_) in zip(names, view.differences, strict=True)}
    ((race,),) = [standing.races(places, "lib") for places in standing.places(catalogue, "lib").values()]
    assert ("lib/b" in race.leaders) is (words["lib/a", "lib/b"] != "slower")
    assert words["lib/a", "lib/b"] != "slower", "alone, the two would be told apart"
    alone = Catalogue([recording(*trials("lib/a", [1.0, 1.1, 0.9, 1.0]), *trials("lib/b", [1.2, 1.3, 1.1, 1.2]))])
    assert explorer_data.views(alone)[0].differences[0][0] == "slower"


def test_verdicts_have_a_row_for_each_kind_of_work_and_format() -> None:
    half = CASE.with_(dtype="bfloat16")
    zero = CASE.with_(reset="zero", detach_reset=True)
    records = [*timed("lib/a", 1.0), deviating("lib/b", train=1.0), *timed("lib/a", 1.0, case=half)]
    records += [failed("lib/a", "incorrect", "exam: no", case=zero)]
    page = sections("lib", *records)
    assert page["verdicts"].tables[0].rows == [
        ["linear layers and neurons, reset by subtraction, bfloat16", "a", ""],
        ["linear layers and neurons, reset by subtraction", "a", "b deviates"],
        ["linear layers and neurons, reset to zero", "none", "a failed"],
    ]
    assert page["answer"].sentences == [
        "Exact in 2 of 3 recorded kinds of work. Neither in: linear layers and neurons, reset to zero."
    ]


def test_kinds_of_one_workload_share_a_row() -> None:
    kinds = {f"graph {name}": {"lib/a": "exact", "lib/b": "failed" if name == "x" else "exact"} for name in "vwxyz"}
    assert tables.verdicts([tables.Work("graphs", "zero", "tf32", kinds)]).rows == [
        ["graph (5 kinds), reset to zero, tf32", "a, b (4 of 5)", "b failed in graph x"]
    ]


def test_caveats_say_each_thing_once() -> None:
    records = [*timed("fast", 1.0), weighed("fast", host_mib=2), weighed("lib/a", host_mib=6), *timed("lib/a", 1.0)]
    records += [deviating("lib/b", train=1.0), deviating("lib/b", differing=5, train=1.0, case=WIDE)]
    records += [skipped("lib/c", "unsupported", "lif1: has no reset", case=case) for case in (CASE, WIDE)]
    records += [failed("lib/d", "crash", "killed by SIGSEGV", case=WIDE)]
    catalogue = Catalogue([recording(*records)])
    section = caveats.section(catalogue, "lib", None)
    answers = dict(section.answers)
    assert answers["lib/b is another neuron"] == (
        "Fires a step late: 3 to 5 % of the spikes differ, and gradients by up to 2 %."
    )
    assert answers["Failed: crashed"].endswith("N=96, B=7, T=20: killed by SIGSEGV")
    assert answers["Memory of the host"].startswith("The peak of its leanest variant is 3 times that of the leanest")
    assert section.tables[0].rows == [["lib/c", "has no reset"]]


def test_page_has_the_notes_and_the_code_of_its_adapter() -> None:
    page = sections("norse", *timed("norse/box", 1.0))
    notes = page["caveats"].tables[0]
    assert notes.targets and all(target.startswith("https://") for target in notes.targets)
    assert "import norse" in page["code"].text and "def network(x)" in page["code"].text
    assert "code" not in sections("lib", *timed("lib", 1.0))
