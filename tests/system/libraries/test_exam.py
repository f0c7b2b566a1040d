"""Tests of every library in the exam, in its managed environment: each verdict is as declared.

torch compiles a network for most of a minute. So .ci/run compiles few networks of the config `exam`, and runs one
of its formats of 16 bits. `SNNBENCH_TEST_EXAM=whole` runs the whole config.
"""

import json
import os
from collections import defaultdict
from collections.abc import Iterator

import pytest

from snnbench import workloads
from snnbench.adapter.contender import label
from snnbench.adapter.declaration import Adapter, Variant
from snnbench.adapter.discovery import discover
from snnbench.cases.outcome import SKIPS
from snnbench.machine import gpus
from snnbench.recording.record import Record
from tests.managed import ROOT, recorded, snnbench

pytestmark = pytest.mark.libraries

WHOLE = os.environ.get("SNNBENCH_TEST_EXAM") == "whole"
COMPILED = ("compile", "compile-cell")
"""Variants that torch compiles. The harness compiles a whole network in one way for all libraries."""
FEWER: dict[str, object] = {
    "one-layer.libraries": ["fused/cpu", "torch-loop", "jax-scan", "spyx/*", "!spyx/defaults", "spyx-haiku/time-major"],
    "compiled.libraries": ["spyx-haiku/documented"],
    "compiled-zero.libraries": ["snntorch/compile-cell"],
    "compiled-steps.profile": "zero",
    "compiled-steps.libraries": ["torch-compile/scan"],
    "compiled-stack.libraries": ["torch-compile/step"],
    "mixed.dtype": "bfloat16",
    "half.dtype": "bfloat16",
    "neuron-alone.libraries": ["*", "!spyx-haiku", "!torch-compile"],
}
"""Changes of the exam's sweeps. A case of two layers includes the exam of one layer, so one layer is for variants that
cannot be stacked, and for one contender of each framework. test_networks compiles a whole network of torch-loop."""


@pytest.fixture(scope="module")
def exam(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """The exam's records of every adapter, and of every variant and profile but those that take long."""
    changes = [] if WHOLE else [f"sweep.{key}={json.dumps(value)}" for key, value in FEWER.items()]
    return recorded("exam", tmp_path_factory.mktemp("exam") / "recording", *changes)


@pytest.fixture(scope="module")
def adapters() -> dict[str, Adapter]:
    return discover()


def by_contender(records: list[Record], verdict: str) -> dict[str, set[str]]:
    """Contender -> profiles in which it got this verdict."""
    profiles: dict[str, set[str]] = defaultdict(set)
    for record in records:
        if record.outcome.verdict == verdict:
            profiles[label(record.library, record.variant)].add(record.case.profile)
    return profiles


def is_slow(contender: str) -> bool:
    """Whether torch compiles a contender."""
    library, _, variant = contender.partition("/")
    return library == "torch-compile" or variant in COMPILED


def here(adapters: dict[str, Adapter]) -> Iterator[tuple[str, str, Variant]]:
    """(library, contender, declared variant) of all variants that run on a CPU with packages from package indexes."""
    for adapter in adapters.values():
        for name, variant in adapter.variants.items():
            if "cpu" in variant.devices and not variant.needs:
                yield adapter.name, label(adapter.name, name), variant


def test_state_of_libraries_without_a_reset(exam: list[Record]) -> None:
    states = {label(one.library, one.variant): one.settings.get("state") for one in exam if one.status == "measured"}
    assert {states[name] for name in ("sinabs", "spikingjelly/auto")} == {"continues"}
    assert states["rockpool/torch"] == "neither", "it keeps the state of the batch's first sample for all"
    assert states["torch-loop/unbind"] is None


def test_each_library_is_exact_in_its_declared_profiles_only(exam: list[Record], adapters: dict[str, Adapter]) -> None:
    for record in exam:
        assert record.status in ("measured", "skipped"), (record.library, record.variant, record.outcome)
        assert record.status == "measured" or (record.outcome.kind in SKIPS and record.outcome.reason)
    exact = by_contender(exam, "exact")
    declared = {name: variant for _, name, variant in here(adapters)}
    whole = {name: set(v.exact) for name, v in declared.items() if v.exact and v.way != "amp" and not is_slow(name)}
    assert {name: profiles for name, profiles in exact.items() if not is_slow(name)} == whole
    compiled = {name: profiles for name, profiles in exact.items() if is_slow(name)}
    in_one_profile = {name for name in declared if is_slow(name) and not name.startswith("torch-compile/")}
    stepwise = {"torch-compile/scan", "torch-compile/step"}
    assert compiled.keys() == stepwise | (in_one_profile if WHOLE else {"snntorch/compile-cell"})
    for name, profiles in compiled.items():
        assert profiles <= set(declared[name].exact)
        expected = len(declared[name].exact) if WHOLE and name in stepwise else 1
        assert len(profiles) == expected, name


def test_16_bits_are_equivalent_and_never_exact(exam: list[Record], adapters: dict[str, Adapter]) -> None:
    equivalent = by_contender(exam, "equivalent")
    own = {"torch-loop/unbind", "jax-scan", "spikingjelly/auto", "spyx/linear-outside", "spyx/run"}
    own.add("spyx-haiku/time-major")
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
    declared = {name for _, name, variant in here(adapters) if variant.deviation and not name.endswith("/defaults")}
    assert deviating.keys() == declared
    for record in exam:
        if record.outcome.verdict == "deviates" and record.library == "fused":
            for name, check in record.checks.items():
                assert check["differing"] == 0, name
                errors = check["gradient_errors"].values()
                assert 1e-5 < max(errors, default=1e-4) < 5e-3, (name, errors)


def test_list_names_the_needs_of_missing_contenders(exam: list[Record], adapters: dict[str, Adapter]) -> None:
    ran = {label(one.library, one.variant) for one in exam if one.status == "measured"}
    printed = snnbench("list", cwd=ROOT).stdout
    for adapter in adapters.values():
        for name, variant in adapter.variants.items():
            contender = label(adapter.name, name)
            (row,) = (line for line in printed.splitlines() if line.startswith(f"| {contender} |"))
            state = row.split(" | ")[4]
            if variant.needs:
                assert state.startswith(f"needs {variant.needs}")
            elif "cpu" not in variant.devices:
                assert "snnbench env sync" in state or gpus.has_cuda()
            elif name != "defaults":
                assert state == "ready" and (contender in ran or (is_slow(contender) and not WHOLE)), row


def test_exact_contender_has_spikes_and_gradients_compared(exam: list[Record], adapters: dict[str, Adapter]) -> None:
    measured = [record for record in exam if record.outcome.verdict == "exact"]
    assert len(measured) > 60
    for record in measured:
        checks = record.checks
        assert checks["exam-1"]["compared"] == 3 * 8 * 5 * 37
        assert checks["exam-1"]["differing"] == 0
        if adapters[record.library].variants[record.variant].inference_only:
            assert record.outcome.inference_only and "spot-train" not in checks
            continue
        gradients = {*workloads.of(record.case).PARAMETERS, "input"}
        assert {name.split(" ")[0] for name in checks["exam-1"]["gradient_errors"]} == gradients
        assert {name.split(" ")[0] for name in checks["spot-train"]["gradient_errors"]} == gradients
