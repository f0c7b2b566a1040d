"""Tests of every library in the exam, in its managed environment: each verdict is as declared."""

from collections import defaultdict
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from snnbench import workloads
from snnbench.adapter.contender import label
from snnbench.adapter.declaration import Adapter, Variant
from snnbench.cases.outcome import SKIPS
from snnbench.machine import gpus
from snnbench.recording.record import Record
from tests.managed import ROOT, snnbench
from tests.system.libraries.conftest import SLOW
from tests.whole import WHOLE

pytestmark = pytest.mark.libraries

COMPILED = ("compile", "compile-cell")
"""Variants that torch compiles. The harness compiles a whole network in one way for all libraries."""


def by_contender(records: list[Record], verdict: str) -> dict[str, set[str]]:
    """Contender -> profiles in which it got this verdict."""
    profiles: dict[str, set[str]] = defaultdict(set)
    for record in records:
        if record.outcome.verdict == verdict:
            profiles[label(record.library, record.variant)].add(record.case.profile)
    return profiles


def is_compiled(contender: str) -> bool:
    """Whether torch compiles a contender."""
    library, _, variant = contender.partition("/")
    return library == "torch-compile" or variant in COMPILED


def is_left_out(contender: str) -> bool:
    """Whether the recording lacks a contender."""
    return not WHOLE and any(fnmatchcase(contender, name) for name in SLOW)


def here(adapters: dict[str, Adapter]) -> Iterator[tuple[str, str, Variant]]:
    """(library, contender, declared variant) of all variants that run on a CPU with packages from package indexes."""
    for adapter in adapters.values():
        for name, variant in adapter.variants.items():
            if "cpu" in variant.devices and not variant.needs:
                yield adapter.name, label(adapter.name, name), variant


def test_state_of_libraries_without_a_reset(exam: list[Record]) -> None:
    plain = [one for one in exam if one.status == "measured" and not one.case.is_recurrent]
    states = {label(one.library, one.variant): one.settings.get("state") for one in plain}
    assert {states[name] for name in ("sinabs", "spikingjelly/auto")} == {"continues"}
    assert states["rockpool/torch"] == "neither", "it keeps the state of the batch's first sample for all"
    assert states["torch-loop/unbind"] is None


def test_each_library_is_exact_in_its_declared_profiles_only(exam: list[Record], adapters: dict[str, Adapter]) -> None:
    for record in exam:
        assert record.status in ("measured", "skipped"), (record.library, record.variant, record.outcome)
        assert record.status == "measured" or (record.outcome.kind in SKIPS and record.outcome.reason)
    exact = by_contender(exam, "exact")
    declared = {name: v for _, name, v in here(adapters) if v.exact and v.way != "amp" and not is_left_out(name)}
    whole = {name: set(variant.exact) for name, variant in declared.items() if not is_compiled(name)}
    assert {name: profiles for name, profiles in exact.items() if not is_compiled(name)} == whole
    compiled = {name: profiles for name, profiles in exact.items() if is_compiled(name)}
    assert compiled.keys() == declared.keys() - whole.keys()
    for name, profiles in compiled.items():
        assert profiles <= set(declared[name].exact)
        assert len(profiles) == (len(declared[name].exact) if name.startswith("torch-compile/") else 1), name


@pytest.mark.parametrize("carried", [True, False])
def test_sequence_in_chunks_is_exact_where_it_is_declared(
    carried: bool, exam: list[Record], adapters: dict[str, Adapter]
) -> None:
    chunked = [one for one in exam if one.case.chunk_steps and one.case.carried_gradient is carried]
    declared = {name: set(v.exact) for _, name, v in here(adapters) if v.chunks and v.exact and not v.way}
    assert by_contender(chunked, "exact") == declared


def test_16_bits_are_equivalent_and_never_exact(exam: list[Record], adapters: dict[str, Adapter]) -> None:
    equivalent = by_contender(exam, "equivalent")
    own = {"torch-loop/unbind", "jax-scan", "spikingjelly/auto", "spyx/linear-outside", "spyx/run"}
    own |= {"spyx-haiku/time-major", "fused/cpu"}
    assert equivalent.keys() == own | {name for _, name, variant in here(adapters) if variant.way == "amp"}
    for record in exam:
        if record.outcome.verdict == "equivalent":
            errors = [
                error
                for name, check in record.checks.items()
                if "spot" in name
                for error in check["gradient_errors"].values()
            ]
            assert max(errors) > 1e-5, "16 bits show"


def test_deviating_contenders_are_the_declared_ones(exam: list[Record], adapters: dict[str, Adapter]) -> None:
    deviating = by_contender(exam, "deviates")
    declared = {name for _, name, variant in here(adapters) if variant.deviation and not is_left_out(name)}
    assert deviating.keys() == declared
    for record in exam:
        if record.outcome.verdict == "deviates" and record.library == "fused":
            for name, check in record.checks.items():
                assert check["differing"] == 0, name
                errors = check["gradient_errors"].values()
                assert 1e-5 < max(errors, default=1e-4) < 5e-3, (name, errors)


def test_list_names_the_needs_of_missing_contenders(
    exam: list[Record], adapters: dict[str, Adapter], tutorial: Path
) -> None:
    ran = {label(one.library, one.variant) for one in exam if one.status == "measured"}
    printed = snnbench("list", "--adapter", str(tutorial), cwd=ROOT).stdout
    for adapter in adapters.values():
        for name, variant in adapter.variants.items():
            contender = label(adapter.name, name)
            (row,) = (line for line in printed.splitlines() if line.startswith(f"| {contender} |"))
            state = row.split(" | ")[4]
            if variant.needs:
                assert state.startswith(f"needs {variant.needs}")
            elif "cpu" not in variant.devices:
                assert "snnbench env sync" in state or gpus.has_cuda()
            else:
                assert is_left_out(contender) or (state == "ready" and contender in ran), row


def test_exact_contender_has_spikes_and_gradients_compared(exam: list[Record], adapters: dict[str, Adapter]) -> None:
    measured = [record for record in exam if record.outcome.verdict == "exact"]
    assert len(measured) > 60
    for record in measured:
        checks = record.checks
        steps = 6 if record.case.chunk_steps else 8
        assert checks["exam-1"]["compared"] == 3 * steps * 5 * 37
        assert checks["exam-1"]["differing"] == 0
        if adapters[record.library].variants[record.variant].inference_only:
            assert record.outcome.inference_only and "spot-train" not in checks
            continue
        gradients = {*workloads.of(record.case).PARAMETERS, *record.case.trained_constants, "input"}
        assert {name.split(" ")[0] for name in checks["exam-1"]["gradient_errors"]} == gradients
        assert {name.split(" ")[0] for name in checks["spot-train"]["gradient_errors"]} == gradients
