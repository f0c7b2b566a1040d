"""The real libraries, in the environments that snnbench makes for them: what is claimed of each is tried here."""

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from snnbench import environments, record
from snnbench.adapter import Adapter, label
from snnbench.case import PROFILES, Case
from snnbench.library import discover
from snnbench.process import environment, run
from snnbench.record import Record
from snnbench.wire import Request

pytestmark = pytest.mark.libraries

ROOT = Path(__file__).parent.parent
ALL = set(PROFILES)
EXACT = {
    "fused/cpu": ALL,
    "fused/cpu-lowmem": ALL,
    "fused/torch": ALL,
    "jax-scan": ALL,
    "norse/box": ALL,
    "norse/integral": {"zero-attached"},
    "norse/lif": {"zero-attached"},
    "norse/lift": {"zero-attached"},
    "reference": ALL,
    "rockpool/jax": {"subtract"},
    "rockpool/torch": {"subtract"},
    "sinabs": ALL - {"zero-attached"},
    "snntorch/index": {"zero", "zero-attached"},
    "snntorch/step": {"zero", "zero-attached"},
    "snntorch/unbind": {"zero", "zero-attached"},
    "spikingjelly": ALL,
    "spyx/linear-outside": {"subtract"},
    "spyx/run": {"subtract"},
    "torch-compile/scan": ALL,
    "torch-compile/step": ALL,
    "torch-loop/index": ALL,
    "torch-loop/unbind": ALL,
}
"""In which profiles each contender is the reference, with its library's own options."""
DEVIATES = {"fused/cpu-half": ALL}
"""Those that declare a deviation."""
SLOW_TO_COMPILE = {"torch-compile"}
"""Not in the quick config."""

CASE = Case(
    neurons=64,
    batch=5,
    time_steps=50,
    layers=1,
    device="cpu",
    dtype="float32",
    precision="ieee",
    threads=1,
    beta=0.9,
    threshold=1.0,
    reset="subtract",
    detach_reset=False,
    surrogate="fast_sigmoid",
    slope=1.0,
    input_rate=0.1,
    input_gradient=True,
    seed=1,
)


def snnbench(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "snnbench", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env={**os.environ, "COLUMNS": "200"})


def recorded(config: str, folder: Path, *settings: str) -> list[Record]:
    changes = [text for setting in settings for text in ("--set", setting)]
    done = snnbench("run", "--config", config, "-o", str(folder), *changes, cwd=folder.parent)
    assert done.returncode == 0, done.stderr[-4000:]
    return record.read(folder).records


@pytest.fixture(scope="module")
def exam(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """Every adapter, variant and profile."""
    return recorded("exam", tmp_path_factory.mktemp("exam") / "recording")


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """One trial of the first command in the README, on a smaller case."""
    folder = tmp_path_factory.mktemp("quick") / "recording"
    return recorded(
        "quick", folder, "protocol.trials=1", "protocol.repetitions=3", "case.neurons=64", "case.time_steps=50"
    )


@pytest.fixture(scope="module")
def adapters() -> dict[str, Adapter]:
    return discover()


def test_each_is_exact_in_the_profiles_it_can_express_and_refuses_the_others(exam: list[Record]) -> None:
    found: dict[str, dict[str, set[str]]] = {"exact": defaultdict(set), "deviates": defaultdict(set)}
    for one in exam:
        assert one.status in ("measured", "skipped"), (one.library, one.variant, one.outcome)
        if one.status == "skipped":
            assert one.outcome["kind"] == "unsupported" and one.outcome["reason"]
        else:
            found[one.outcome["verdict"]][label(one.library, one.variant)].add(Case(**one.case).profile)
    assert found == {"exact": EXACT, "deviates": DEVIATES}


def test_what_deviates_has_all_its_spikes_and_gradients_of_16_bits(exam: list[Record]) -> None:
    measured = [one for one in exam if one.outcome.get("verdict") == "deviates"]
    assert measured
    for one in measured:
        for name, check in one.checks.items():
            assert check["differing"] == 0, name
            errors = check["gradient_errors"].values()
            assert 1e-5 < max(errors, default=1e-4) < 5e-3, (name, errors)


def test_exact_means_that_spikes_and_all_three_gradients_were_compared(exam: list[Record]) -> None:
    measured = [one for one in exam if one.outcome.get("verdict") == "exact"]
    assert len(measured) > 60
    for one in measured:
        checks = one.checks
        assert checks["exam-1"]["compared"] == 3 * 8 * 5 * 37
        assert {name.split(" ")[0] for name in checks["exam-1"]["gradient_errors"]} == {"weight", "bias", "input"}
        assert {name.split(" ")[0] for name in checks["spot-train"]["gradient_errors"]} == {"weight", "bias", "input"}
        assert checks["exam-1"]["differing"] == 0


def test_every_library_is_measured_with_raw_durations(quick: list[Record]) -> None:
    timed = [one for one in quick if one.measure == "time"]
    assert {one.library for one in timed} == {name.split("/")[0] for name in EXACT} - {"reference"} - SLOW_TO_COMPILE
    for one in timed:
        assert one.outcome == {"status": "measured", "verdict": "exact"}
        assert set(one.phases) == {"inference", "forward", "backward", "train"}
        for phase in one.phases.values():
            assert len(phase["repetitions_ns"]) == 3 and min(phase["repetitions_ns"]) > 0
            assert len(phase["warmup_ns"]) == 2 and phase["first_call_ns"] > 0 and phase["compilations"] == 0
            assert phase["floor_ns"] > 0 and phase["times_floor"] > 1
    for one in quick:
        if one.measure == "memory":
            assert one.memory["host"]["peak_bytes"] > 0 and one.memory["host"]["retained_bytes"] > 0
            assert one.memory["static_bytes"] >= 4 * (64 * 64 + 64 + 2 * 50 * 16 * 64)


def test_versions_and_settings_are_read_back(quick: list[Record], adapters: dict[str, Adapter]) -> None:
    for one in quick:
        pinned = adapters[one.library].dependencies[0].partition("==")[2]
        assert str(one.version).partition("+")[0] == pinned
        assert one.settings["provider"]
        assert len(one.settings["cpus"]) == one.case["threads"]
        if "torch" in one.settings:
            assert one.settings["threads"] == one.case["threads"]
            assert one.settings["matmul_precision"] == "ieee"
        else:
            assert one.settings["matmul_precision"] == "float32"
    assert {one.settings["provider"] for one in quick if one.library == "spikingjelly"} == {"torch-reference"}


def test_the_adapter_in_contributing_is_exact(tmp_path: Path) -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    (block,) = re.findall(r"<!-- adapter: start -->\n```python\n(.*?)```\n<!-- adapter: end -->", text, re.DOTALL)
    assert len(block.splitlines()) < 60
    (tmp_path / "mylif.py").write_text(block)
    done = snnbench("verify", "mylif", "--adapter", "mylif.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    row = r"\| mylif \| 2\.13\.0\S* \| subtract \| fast_sigmoid \| 2 \|.*\| exact \|"
    assert re.search(row, done.stdout), done.stdout


def ask(adapter: Path, pins: Adapter, variant: str, **changes: Any) -> dict[str, Any]:
    """The outcome of a changed adapter, in the environment of the one it was made from."""
    python = environments.plan(pins, cuda=False).python
    request = Request(measure="verify", case=CASE.resized(**changes), variant=variant)
    ending = run(python, adapter, request, environment(1, environments.home()), timeout_s=120)
    assert ending.reply is not None, ending.log
    assert "phases" not in json.dumps(ending.reply.outcome)
    return ending.reply.outcome


CHANGED = {
    "norse applies a single step to the whole sequence, as in the published chart": (
        "norse",
        "box",
        ("norse.Lift(norse.LIFBoxCell(p=parameters, dt=DT))", "norse.LIFBoxCell(p=parameters, dt=DT)"),
    ),
    "norse keeps its default synapse": (
        "norse",
        "lif",
        ("tau_syn_inv=torch.tensor(1 / DT", "tau_syn_inv=torch.tensor(200.0"),
    ),
    "sinabs normalises its input": ("sinabs", "default", ("norm_input=False", "norm_input=True")),
    "sinabs fires several spikes a step": ("sinabs", "default", ("activation.SingleSpike", "activation.MultiSpike")),
    "sinabs keeps its state": ("sinabs", "default", ("neuron.reset_states()", "neuron.zero_grad()")),
    "snntorch's default reset": (
        "snntorch",
        "unbind",
        ('reset_mechanism="zero"', 'reset_mechanism="subtract"'),
    ),
    "spikingjelly divides its input by tau": ("spikingjelly", "default", ("decay_input=False", "decay_input=True")),
    "spikingjelly's default surrogate": (
        "spikingjelly",
        "default",
        ("surrogate.SuperSpike(alpha=1.0)", "surrogate.Sigmoid()"),
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
        ("spyx.nn.CuBaLIF(", "spyx.nn.LIF("),
        ("        alpha=0.0,\n", ""),
    ),
}


@pytest.mark.parametrize("name", CHANGED)
def test_a_library_set_otherwise_is_incorrect(
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
    assert outcome["status"] == "failed" and outcome["kind"] == "incorrect", outcome
    assert "differ" in outcome["reason"] or "off by" in outcome["reason"], outcome
