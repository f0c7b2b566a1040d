"""Tests of the claims about the real libraries, in their managed environments."""

import re
from pathlib import Path
from typing import Any

import pytest

from snnbench.adapter.declaration import Adapter
from snnbench.adapter.discovery import discover
from snnbench.cases.case import PROFILES
from snnbench.cases.outcome import Outcome
from snnbench.environments import store
from snnbench.files import home
from snnbench.machine import gpus
from snnbench.plan import config
from snnbench.recording.record import Record
from snnbench.run.process import environment, run
from snnbench.worker.messages import Request
from tests import fakes
from tests.managed import ROOT, recorded, snnbench
from tests.recordings import EXACT

pytestmark = pytest.mark.libraries

CASE = fakes.CASE.with_(neurons=64, batch=5, time_steps=50, beta=0.9, input_rate=0.1, seed=1)


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """One trial of the first command in the README, on a smaller case."""
    folder = tmp_path_factory.mktemp("quick") / "recording"
    changes = ("protocol.trials=1", "protocol.repetitions=3", "protocol.remeasure=0")
    return recorded("quick", folder, *changes, "case.neurons=64", "case.time_steps=50")


@pytest.fixture(scope="module")
def adapters() -> dict[str, Adapter]:
    return discover()


GRADED = {"tracetorch"}
"""Libraries whose default output is no spike, so no rule describes it."""


def test_defaults_are_the_neuron_that_their_adapter_declares(tmp_path: Path, adapters: dict[str, Adapter]) -> None:
    """A library's defaults are one neuron: a second profile would only put another common neuron beside it."""
    records = recorded("library-defaults", tmp_path / "recording", only="profile=zero")
    for record in records:
        if record.variant != "defaults":
            assert record.outcome == EXACT
            continue
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
    assert {record.library for record in records if record.variant == "defaults"} == {
        found.name for found in adapters.values() if "defaults" in found.variants
    }


def test_every_library_is_measured_with_raw_durations(quick: list[Record], adapters: dict[str, Adapter]) -> None:
    timed = [record for record in quick if record.measure == "time"]
    loaded = config.load(ROOT / "configs" / "quick.toml", default_threads=2)
    assert {record.library for record in timed} == {work.library for work in config.expand(loaded, adapters)}
    for record in timed:
        assert record.outcome == EXACT
        assert set(record.phases) == {"inference", "forward", "backward", "train"}
        for phase in record.phases.values():
            assert len(phase["repetitions_ns"]) == 3 and min(phase["repetitions_ns"]) > 0
            assert len(phase["warmup_ns"]) == 2 and phase["first_call_ns"] > 0 and phase["compilations"] == 0
            assert phase["floor_ns"] > 0 and phase["times_floor"] > 1
    for record in quick:
        if record.measure == "memory":
            assert record.memory["host"]["peak_bytes"] > 0 and record.memory["host"]["retained_bytes"] > 0
            assert record.memory["static_bytes"] >= 4 * (64 * 64 + 64 + 2 * 50 * 16 * 64)


@pytest.mark.skipif(gpus.has_cuda(), reason="there is a CUDA device")
def test_cuda_variant_without_a_device_is_refused(tmp_path: Path, adapters: dict[str, Adapter]) -> None:
    """On the CPU the declaration refuses; on a missing device the framework does. It never crashes."""
    ready = {"torch": "torch-loop", "jax": "jax-scan"}
    for adapter in adapters.values():
        for name, variant in adapter.variants.items():
            if variant.devices != ("cuda",):
                continue
            own = store.plan(adapter, name, cuda=False)
            python = (
                own.python
                if store.is_ready(own)
                else store.plan(
                    adapters[ready[variant.backend]], adapters[ready[variant.backend]].default, cuda=False
                ).python
            )
            assert variant.refusal(CASE) == "runs on cuda only"
            request = Request(measure="verify", case=CASE.with_(device="cuda"), variant=name)
            ending = run(python, adapter.path, request, environment(1, home()), timeout_s=120)
            assert ending.reply is not None, ending.log
            outcome = ending.reply.outcome
            if outcome.kind == "import":  # the substitute Python lacks the library
                assert not store.is_ready(own), outcome
                continue
            lacking = re.search("sees no CUDA device|is built without CUDA|has no device cuda", outcome.reason)
            declined = re.search("reset|subtract|the reference in", outcome.reason)
            assert lacking or declined, (name, outcome)
            assert outcome.kind == ("unavailable" if lacking else "unsupported"), (name, outcome)


def test_versions_and_settings_are_read_back(quick: list[Record], adapters: dict[str, Adapter]) -> None:
    for record in quick:
        pinned = adapters[record.library].variants[record.variant].pins.version
        assert str(record.version).partition("+")[0] == pinned
        assert record.settings["provider"]
        assert len(record.settings["cpus"]) == record.case.threads
        if "torch" in record.settings:
            assert record.settings["threads"] == record.case.threads
            assert record.settings["matmul_precision"] == "ieee"
        else:
            assert record.settings["matmul_precision"] == "float32"
    assert {record.settings["provider"] for record in quick if record.library == "spikingjelly"} == {"torch-reference"}


def test_the_adapter_in_the_tutorial_is_exact(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "tutorials" / "add-your-library.md").read_text()
    (block,) = re.findall(r"<!-- adapter: start -->\n```python\n(.*?)```\n<!-- adapter: end -->", text, re.DOTALL)
    assert len(block.splitlines()) < 60
    (tmp_path / "mylif.py").write_text(block)
    done = snnbench("verify", "mylif", "--adapter", "mylif.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    row = r"\| mylif \| 2\.13\.0\S* \| subtract \| fast_sigmoid \| 2 \|.*\| exact \|"
    assert re.search(row, done.stdout), done.stdout


def ask(adapter: Path, pins: Adapter, variant: str, **changes: Any) -> dict[str, Any]:
    """The outcome of a changed adapter, in the original adapter's environment."""
    python = store.plan(pins, variant, cuda=False).python
    request = Request(measure="verify", case=CASE.with_(**changes), variant=variant)
    ending = run(python, adapter, request, environment(1, home()), timeout_s=120)
    assert ending.reply is not None, ending.log
    assert "phases" not in str(ending.reply.outcome)
    return ending.reply.outcome


@pytest.mark.parametrize(
    ("contender", "dtype"),
    [
        ("torch-loop/unbind", "bfloat16"),
        ("spikingjelly/auto", "float16"),
        ("snntorch/amp", "bfloat16"),
        ("sinabs/amp", "float16"),
        ("jax-scan/default", "bfloat16"),
        ("fused/cpu", "float16"),
    ],
)
def test_several_layers_in_16_bits_are_judged_layer_by_layer(
    contender: str, dtype: str, adapters: dict[str, Adapter]
) -> None:
    library, variant = contender.split("/")
    reset, detach_reset = PROFILES["zero"]
    changes = {"dtype": dtype, "layers": 3, "reset": reset, "detach_reset": detach_reset}
    outcome = ask(adapters[library].path, adapters[library], variant, **changes)
    assert outcome == Outcome(status="measured", verdict="equivalent")


CHANGED = {
    "norse applies a single step to the whole sequence, as in the published chart": (
        "norse",
        "box",
        ("norse.Lift(box_cell(case))", "box_cell(case)"),
    ),
    "norse keeps its default synapse": (
        "norse",
        "lif",
        ("tau_syn_inv=torch.tensor(1 / DT", "tau_syn_inv=torch.tensor(200.0"),
    ),
    "sinabs normalises its input": ("sinabs", "default", ('"norm_input": False', '"norm_input": True')),
    "sinabs fires several spikes a step": ("sinabs", "default", ("activation.SingleSpike", "activation.MultiSpike")),
    "sinabs keeps its state": ("sinabs", "default", ("reset=Neurons.reset_states", "reset=Neurons.zero_grad")),
    "snntorch's default reset": (
        "snntorch",
        "unbind",
        ('reset_mechanism="zero"', 'reset_mechanism="subtract"'),
    ),
    "spikingjelly divides its input by tau": ("spikingjelly", "auto", ('"decay_input": False', '"decay_input": True')),
    "spikingjelly's default surrogate": (
        "spikingjelly",
        "auto",
        ('"fast_sigmoid": SuperSpike', '"fast_sigmoid": Sigmoid'),
    ),
    "rockpool fires several spikes a step": (
        "rockpool",
        "torch",
        ("(potential >= threshold).to(potential.dtype)", "torch.floor(potential / threshold).clamp(min=0)"),
    ),
    "spyx runs over the batch axis, as in the published chart": (
        "spyx",
        "run",
        (
            "spyx.nn.run(nnx.merge(graph, params, fixed), x)[0]",
            "spyx.nn.run(nnx.merge(graph, params, fixed), x, batch_major=True)[0]",
        ),
    ),
    "spyx's LIF subtracts after the decay": (
        "spyx",
        "run",
        ("spyx.nn.CuBaLIF(shape, alpha=0.0, ", "spyx.nn.LIF(shape, "),
    ),
}


@pytest.mark.parametrize("name", CHANGED)
def test_library_with_changed_settings_is_incorrect(
    name: str, tmp_path: Path, adapters: dict[str, Adapter], quick: Any
) -> None:
    library, variant, *changes = CHANGED[name]
    text = adapters[library].path.read_text()
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path = tmp_path / f"{library}.py"
    path.write_text(text)
    profile = {"snntorch": "zero", "lif": "zero-attached"}.get(variant if variant == "lif" else library, "subtract")
    reset, detach_reset = PROFILES[profile]
    outcome = ask(path, adapters[library], variant, reset=reset, detach_reset=detach_reset)
    assert outcome.status == "failed" and outcome.kind == "incorrect", outcome
    assert "differ" in outcome.reason or "off by" in outcome.reason, outcome
