"""Tests of a new workload: the module of the tutorial, in a copy of the package that names it beside the others."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.documents import MADE, ROOT, fences, written
from tests.fakes import write
from tests.screens import screen
from tests.sweep import lines, process, recordings, run_arguments

PAGE = written(ROOT / "docs" / "tutorials" / "add-a-workload.md")
NEURON = '''
"""A neuron in NumPy: {neuron}."""

from snnbench.backends.numpy import Neuron
from snnbench.cases import reference

BACKEND = "numpy"


def neuron(case, variant):
    own = {neuron}

    def forward(currents):
        trace = reference.forward(currents, own)
        return trace.spikes, trace

    return Neuron(forward, lambda trace, cotangent: reference.backward(cotangent, trace, own))
'''
NEURONS = {
    "right": "case",
    "leaky": "case.with_(beta=0.99 * case.beta)",
    "detached": "case.with_(detach_reset=not case.detach_reset)",
}
TINY = {"protocol.trials": 1, "protocol.min_repetition_ms": 0.01, "case.neurons": 40, "case.time_steps": 25}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the copied package, which is imported by processes that start here, and with the page's config."""
    made = tmp_path_factory.mktemp("checkout")
    package = shutil.copytree(ROOT / "snnbench", made / "snnbench", ignore=shutil.ignore_patterns("__pycache__"))
    (module,) = re.findall(r"<!-- workload: start -->\n```python\n(.*?)```\n<!-- workload: end -->", PAGE, re.DOTALL)
    (package / "workloads" / "held.py").write_text(module)
    registry = package / "workloads" / "__init__.py"
    text = registry.read_text()
    (change,) = fences(PAGE, "diff")
    removed, added = ([line[1:] for line in change.splitlines() if line[0] == sign] for sign in "-+")
    for old, new in zip(removed, added, strict=True):
        assert text.count(old) == 1
        text = text.replace(old, new)
    registry.write_text(text)
    (config,) = fences(PAGE, "toml")
    (made / "held.toml").write_text(config.replace('"torch-loop", "norse"', ", ".join(map('"{}"'.format, NEURONS))))
    for name, neuron in NEURONS.items():
        write(made, NEURON.format(neuron=neuron), name)
    return made


def test_right_neuron_is_exact_and_wrong_ones_are_incorrect(folder: Path) -> None:
    adapters = [folder / f"{name}.py" for name in NEURONS]
    settings = [part for key, value in TINY.items() for part in ("--set", f"{key}={value}")]
    done = process(folder, *run_arguments(folder / "held.toml", adapters, "--set", 'baseline="right"', *settings))
    assert "held, reset by subtraction, CPU, 25 steps, 40 neurons, batch 4" in done.stdout, done.stderr
    assert "currents held for 10 steps" in done.stdout
    (recording,) = recordings(folder)
    outcomes = {(line["library"], line["case"]["hold"]): line["outcome"] for line in lines(recording)}
    assert len(outcomes) == 6
    assert {outcomes["right", hold]["verdict"] for hold in (1, 10)} == {"exact"}
    wrong = [outcome for (library, _), outcome in outcomes.items() if library != "right"]
    assert {outcome["kind"] for outcome in wrong} == {"incorrect"}
    assert all("exam" in outcome["reason"] for outcome in wrong), wrong
    checked = process(folder, "check", recording)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize(("columns", "arguments", "text"), MADE.findall(PAGE))
def test_shown_verdicts_are_those_of_the_plain_loop_and_of_a_wrong_one(
    folder: Path, tmp_path: Path, columns: str, arguments: str, text: str
) -> None:
    pytest.importorskip("torch")
    reader = shutil.copytree(folder, tmp_path / "reader")
    shutil.copytree(ROOT / "adapters", reader / "adapters")
    (config,) = fences(PAGE, "toml")
    (reader / "held.toml").write_text(config)
    ((right, wrong),) = re.findall(r"replace `([^`]+)` by `([^`]+)`", PAGE)
    loop = (ROOT / "adapters" / "torch-loop.py").read_text()
    assert loop.count(right) == 1
    (reader / "wrong.py").write_text(loop.replace(right, wrong))
    printed = screen(reader, int(columns), *shlex.split(arguments), "--env", "current").text
    assert " ".join(text.split()) in " ".join(printed.split())


@pytest.mark.parametrize("profile", ["zero", "subtract-detached", "zero-attached", "none"])
def test_right_neuron_is_exact_in_every_profile(folder: Path, profile: str) -> None:
    settings = ("--set", 'sweep.libraries=["right"]', "--set", f'case.profile="{profile}"')
    adapter = ("--adapter", folder / "right.py", "--set", 'baseline="right"', "--env", "current")
    done = process(folder, "verify", "right", "--config", folder / "held.toml", *adapter, *settings)
    assert done.returncode == 0, done.stderr
    assert len(re.findall(rf"\| {profile} \|.*\| exact \|", done.stdout)) == 2, done.stdout
