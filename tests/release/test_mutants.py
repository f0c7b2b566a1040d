"""Tests of the draw of mutants, and that the list of equivalent mutants is up to date."""

from tests.mutants.__main__ import ROOT, drawn, equivalent
from tests.mutants.edits import edits


def test_seed_draws_the_same_mutants_and_every_module_has_some() -> None:
    modules = ["proof/comparison", "proof/tolerance", "analysis/floors"]
    mutants = drawn(modules, 60, 1)
    assert mutants == drawn(modules, 60, 1) != drawn(modules, 60, 2)
    assert {one.module for one in mutants} == {*modules} and 58 <= len(mutants) <= 62
    assert len({(one.module, one.edit) for one in mutants}) == len(mutants)


def test_every_equivalent_mutant_is_still_an_edit() -> None:
    known = equivalent()
    there = {
        (module, edit.source, edit.change)
        for module in {module for module, *_ in known}
        for edit in edits((ROOT / "snnbench" / f"{module}.py").read_text(encoding="utf-8"))
    }
    assert known <= there
