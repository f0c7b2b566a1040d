"""Tests of claims about the real libraries, by the recording of the exam: defaults, settings, layers and mistakes."""

import pytest

from snnbench.adapter.declaration import Adapter
from snnbench.cases.outcome import Outcome
from snnbench.recording.record import Record
from tests.system.libraries.wrong import EDITS

GRADED = {"tracetorch"}
"""Libraries whose default output is no spike, so no rule describes it."""


def test_defaults_are_the_neuron_that_their_adapter_declares(exam: list[Record], adapters: dict[str, Adapter]) -> None:
    records = [record for record in exam if record.variant == "defaults"]
    for record in records:
        assert record.outcome.verdict == "deviates", (record.library, record.outcome)
        if record.library in GRADED:
            assert not record.outcome.own_rule and record.checks["common-train"]["differing"] > 0
            continue
        held = [check["correct"] for name, check in record.checks.items() if not name.startswith("common-")]
        assert record.outcome.own_rule and all(held), record.library
        inference_only = adapters[record.library].variants[record.variant].inference_only
        common = record.checks["common-inference" if inference_only else "common-train"]
        assert common["differing"] > 0.005 * common["compared"], "or the defaults are the common neuron"
        assert inference_only or -1 < common["cosines"]["weight"] < 0.95
    assert {record.library for record in records} == {
        adapter.name for adapter in adapters.values() if "defaults" in adapter.variants
    }


def test_versions_and_settings_are_read_back(exam: list[Record], adapters: dict[str, Adapter]) -> None:
    measured = [record for record in exam if record.status == "measured"]
    for record in measured:
        pinned = adapters[record.library].variants[record.variant].pins.version
        assert str(record.version).partition("+")[0] == pinned, record.library
        assert record.settings["provider"]
        if "torch" in record.settings:
            assert record.settings["threads"] == record.case.threads
            assert record.settings["matmul_precision"] == "ieee"
    providers = {record.settings["provider"] for record in measured if record.library == "spikingjelly"}
    assert "torch-reference" in providers


def test_the_adapter_in_the_tutorial_is_exact(exam: list[Record], adapters: dict[str, Adapter]) -> None:
    assert len(adapters["mylif"].path.read_text(encoding="utf-8").splitlines()) < 60
    verdicts = {record.outcome.verdict for record in exam if record.library == "mylif" and record.status == "measured"}
    assert verdicts == {"exact"}


@pytest.mark.parametrize(
    ("library", "variant", "dtype"),
    [
        ("torch-loop", "unbind", "bfloat16"),
        ("spikingjelly", "auto", "float16"),
        ("snntorch", "amp", "bfloat16"),
        ("sinabs", "amp", "float16"),
        ("jax-scan", "default", "bfloat16"),
        ("fused", "cpu", "float16"),
    ],
)
def test_several_layers_in_16_bits_are_judged_layer_by_layer(
    library: str, variant: str, dtype: str, exam: list[Record]
) -> None:
    works = [one for one in exam if getattr(one.case, "layers", 0) == 3 and one.case.dtype == dtype]
    (record,) = (one for one in works if (one.library, one.variant) == (library, variant))
    assert record.outcome == Outcome(status="measured", verdict="equivalent")


@pytest.mark.parametrize("name", EDITS)
def test_library_with_a_wrong_setting_is_incorrect(name: str, wrong: dict[str, Record]) -> None:
    outcome = wrong[name].outcome
    assert outcome.status == "failed" and outcome.kind == "incorrect", outcome
    assert "differ" in outcome.reason or "off by" in outcome.reason, outcome
