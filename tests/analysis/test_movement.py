"""Tests of movement: the part of two recordings' ratios that the machine explains."""

import json
from collections.abc import Iterable
from dataclasses import replace
from math import log
from typing import Any

import numpy as np
import pytest

from snnbench.analysis.compare import Comparisons, compare
from snnbench.analysis.comparisons import Comparison
from snnbench.analysis.decision import Thresholds
from snnbench.measures.probes.levels import levels
from snnbench.recording.record import Record
from snnbench.report.text import change_table
from snnbench.report.text.markdown import markdown
from tests.recordings import recording, trials

BASE = (0.98, 0.99, 1.0, 1.01, 1.02)
KINDS = ("interpreter", "calls", "copy", "product")


def probes(*factors: float) -> dict[str, Any]:
    """Probes with fastest repetitions of 1 ms times the factor of their kind, in both looks."""
    kinds = dict(zip(KINDS, factors or (1.0,) * len(KINDS), strict=True))
    return {kind: {"looks_ns": [[round(1e6 * f), round(9e6 * f)]] * 2} for kind, f in kinds.items()}


def probed(records: Iterable[Record], *factors: float, version: str = "1.0") -> list[Record]:
    """These records with such probes beside them."""
    settings = {"python": "3.12.1"}
    return [replace(one, probes=probes(*factors), version=version, settings=settings) for one in records]


def slowed(name: str, factor: float, *factors: float, version: str = "1.0") -> list[Record]:
    """Five trials at `factor` times BASE, with probes at `factors`."""
    return probed(trials(name, [factor * ms for ms in BASE]), *factors, version=version)


def compared(base: list[Record], new: list[Record], baseline: str = "", **more: Any) -> Comparisons:
    """The comparison of two such recordings."""
    old, other = (recording(*each, name=name, baseline=baseline) for name, each in (("old", base), ("new", new)))
    return compare(old, other, Thresholds(), **more)


def of(comparison: Comparisons, name: str) -> Comparison:
    """The cell of a contender."""
    (cell,) = (cell for cell in comparison.each if cell.contender == name)
    return cell


def test_change_explained_by_probes_is_inconclusive() -> None:
    comparison = compared(slowed("a", 1.0), slowed("a", 1.5, 1.6, 1.5, 1.2, 1.2))
    cell = of(comparison, "a")
    assert (cell.word, cell.ratio) == ("inconclusive", pytest.approx(1.5))
    assert cell.reason == "the machine moved, which explains 0.87 to 1.85"  # as far again as half of log(1.6 / 1.2)
    assert comparison.movement is not None and comparison.movement.sentence() == (
        "in NEW the machine was 1.60 times slower for Python loops, 1.50 for calls of a framework, 1.20 for copies, "
        "1.20 for matrix products"
    )


@pytest.mark.parametrize("factor", [1.88, 1 / 1.88])
def test_change_within_the_floor_of_the_movement_is_inconclusive(factor: float) -> None:
    """The machine explains up to 1.85, and 5 % more are within the floor."""
    moved = [each if factor > 1 else 1 / each for each in (1.6, 1.5, 1.2, 1.2)]
    assert of(compared(slowed("a", 1.0), slowed("a", factor, *moved)), "a").word == "inconclusive"


@pytest.mark.parametrize(("factor", "word"), [(2.0, "slower"), (1 / 2.0, "faster"), (1.0, "inconclusive")])
def test_change_beyond_the_movement_is_reported(factor: float, word: str) -> None:
    """If the machine moved, an unchanged time is inconclusive, not the same."""
    moved = (1.5, 1.5, 1.5, 1.5)
    comparison = compared(slowed("a", 1.0), slowed("a", factor, *(moved if factor >= 1 else (1 / 1.5,) * 4)))
    assert of(comparison, "a").word == word


def test_steady_machine_changes_no_word() -> None:
    still = (1.01, 0.99, 1.0, 1.02)
    for factor, word in ((1.3, "slower"), (1 / 1.3, "faster"), (1.0, "same")):
        assert of(compared(slowed("a", 1.0), slowed("a", factor, *still)), "a").word == word


def test_changed_library_leaves_only_the_interpreter_probe() -> None:
    """Calls that take twice as long may be the framework's own fault."""
    base, new = slowed("a", 1.0), slowed("a", 2.0, 1.0, 2.0, 1.0, 1.0, version="2.0")
    comparison = compared(base, new)
    assert of(comparison, "a").word == "slower"
    assert comparison.movement is not None and comparison.movement.probes == {"interpreter": 1.0}
    other_python = [replace(one, settings={"python": "3.13.0"}) for one in new]
    assert of(compared(base, other_python), "a").explained is None


def test_unchanged_contenders_are_controls() -> None:
    """The baseline is the preferred control; without a baseline it is the geometric mean of all."""
    names = {"fused": 1.9, "b": 2.6, "c": 3.1}
    base = [one for name in (*names, "a") for one in trials(name, BASE)]
    new = [one for name, factor in names.items() for one in trials(name, [factor * ms for ms in BASE])]
    new += [replace(one, version="2.0") for one in trials("a", [3.3 * ms for ms in BASE])]
    cell = of(compared(base, new, baseline="fused"), "a")
    assert cell.word == "inconclusive"
    assert cell.reason.startswith("the machine moved, which explains 0.78 to 3.96, and this is 1.74 of the control")
    assert of(compared(base, new), "a").explained != cell.explained  # without a baseline: the geometric mean of all


def test_change_within_the_spread_of_controls_is_inconclusive() -> None:
    generator = np.random.default_rng(1)
    factors = dict(zip("bcdefghij", np.exp(generator.normal(np.log(2.0), 0.05, 9)), strict=True))
    base = [one for name in (*factors, "a") for one in trials(name, BASE)]
    same = [one for name, factor in factors.items() for one in trials(name, [factor * ms for ms in BASE])]
    for factor, word in ((2.2, "inconclusive"), (4.0, "slower")):
        new = same + [replace(one, version="2.0") for one in trials("a", [factor * ms for ms in BASE])]
        comparison = compared(base, new)
        assert of(comparison, "a").word == word
        assert {cell.word for cell in comparison.each if cell.contender != "a"} == {"inconclusive"}


def test_contended_time_is_not_a_control() -> None:
    base = [*trials("a", BASE), *trials("b", BASE)]
    new = [replace(one, version="2.0") for one in trials("a", BASE)]
    new += [replace(one, flags=["contended"]) for one in trials("b", [2 * ms for ms in BASE])]
    assert of(compared(base, new), "a").word == "same"


def test_edited_adapter_is_not_a_control() -> None:
    base = [*trials("a", BASE), *trials("b", BASE)]
    new = [replace(one, adapter="other") for one in trials("b", [2 * ms for ms in BASE])] + trials("a", BASE)
    comparison = compared(base, new)
    assert of(comparison, "b").word == "slower"
    assert of(comparison, "a").explained is None


def test_movement_is_unknown_without_probes_and_controls() -> None:
    comparison = compared(trials("a", BASE), trials("a", [1.5 * ms for ms in BASE]))
    assert of(comparison, "a").word == "slower"
    assert comparison.movement is not None
    assert comparison.movement.sentence() == "nothing tells whether the machine moved"


def test_allowed_drift_is_stated() -> None:
    comparison = compared(slowed("a", 1.0), slowed("a", 1.5, 1.5, 1.5, 1.5, 1.5), allowed=["drift"])
    assert of(comparison, "a").word == "slower"
    assert comparison.allowed == ["drift: words may be the machine's movement"]
    assert of(comparison, "a").explained is not None


def test_level_of_a_probe_is_the_mean_of_its_fastest_times() -> None:
    assert levels({"copy": {"looks_ns": [[100, 400], [900, 500]]}}) == {"copy": pytest.approx(log(100 * 500) / 2)}


def test_every_format_states_the_movement_and_the_ab_command() -> None:
    old = slowed("a", 1.0)
    new = slowed("a", 1.5, 1.5, 1.5, 1.5, 1.5, version="2.0")
    old += slowed("b", 1.0)
    new += slowed("b", 1.5, 1.5, 1.5, 1.5, 1.5)
    comparison = compared(old, new)
    command = "snnbench ab --config CONFIG --base a==1.0 --new a==2.0"
    assert comparison.ab_command == command
    text = markdown(change_table.report(comparison))
    assert text.splitlines()[2].startswith("- in NEW the machine was 1.50 times slower for Python loops")
    assert text.rstrip().endswith(f"To decide, run both versions in one A/B test: `{command}`")
    document = json.loads(change_table.to_json(comparison))
    assert document["movement"]["probes"]["interpreter"] == 1.5
    assert document["ab_command"] == command
    assert document["comparisons"][0]["explained"] and document["comparisons"][0]["control"]
    header, row, *_ = change_table.csv(comparison).splitlines()
    assert "control,explained_low,explained_high" in header and "1.5" in row
    assert "1.50 times slower" in change_table.junit(comparison)
    assert "the machine explains" in change_table.explanation(comparison.each[0])


def test_ab_command_has_placeholders_if_no_version_changed() -> None:
    comparison = compared(slowed("a", 1.0), slowed("a", 1.5, 1.5, 1.5, 1.5, 1.5))
    assert comparison.ab_command == "snnbench ab --config CONFIG --base CHANGE --new CHANGE"
