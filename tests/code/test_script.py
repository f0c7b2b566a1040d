"""Tests of the code of a network: values stand in place of a case's fields, and nothing of snnbench is left."""

import ast
from pathlib import Path

import pytest

from snnbench.adapter.declaration import Adapter
from snnbench.adapter.discovery import discover
from snnbench.adapter.reading import read
from snnbench.cli.run import _has_code
from snnbench.code import NoCode, script
from snnbench.code.parts import OURS
from snnbench.plan import config
from tests.fakes import CASE, CUT, profile
from tests.plan.test_configs import CONFIGS
from tests.recordings import recording, timed
from tests.workloads.test_layers import WIDE

HEADER = """
import math
import torch
from library import Fast, Slow, unused
from snnbench.adapter import Unsupported, require
from snnbench.backends.torch import Neuron

BACKEND = "torch"
VARIANTS = {"fast": "one", "slow": "two"}
"""
BODY = """
def neuron(case, variant):
    if case.beta > 1:
        raise Unsupported("no")
    require(case, "float32 only", dtype="float32")
    kinds = {"fast": Fast, "slow": Slow}
    options = {"decay": case.beta}
    if case.reset == "zero":
        options["zero"] = True
    reset = Fast.reset if variant == "fast" else None
    return Neuron(lambda neurons: kinds[variant](**options, scale=scale(case)), gain=1 / (1 - case.beta), reset=reset)


def scale(case):
    return math.sqrt(case.threshold)
"""


def adapter(folder: Path, body: str = BODY) -> Adapter:
    path = folder / "mine.py"
    path.write_text(HEADER + body)
    return read(path)


def code(made: Adapter, variant: str = "fast") -> str:
    return script(made, made.variants[variant], CASE)


def test_fields_and_branches_are_those_of_the_case(tmp_path: Path) -> None:
    text = code(adapter(tmp_path))
    assert "options = {'decay': 0.91}" in text and "def scale():\n    return math.sqrt(1.0)" in text
    assert "make_layer = lambda neurons: Fast(**options, scale=scale())" in text
    assert (
        "reset = Fast.reset" in text
        and "        reset(layer)" in text
        and "layer(linear(x) * (1 / (1 - 0.91)))" in text
    )
    for gone in ("case", "variant", "Slow", "unused", "snnbench", "Unsupported", "require", "zero"):
        assert gone not in text, gone


def test_another_variant_has_its_own_code(tmp_path: Path) -> None:
    text = code(adapter(tmp_path), "slow")
    assert "Slow(**options" in text and "reset" not in text and "Fast" not in text


def test_formula_of_a_surrogate_stands_in_the_code() -> None:
    loop = discover(())["torch-loop"]
    text = script(loop, loop.variants[loop.default], CASE.with_(surrogate="atan", slope=2.0))
    assert "gradient * atan(distance, 2.0, " in text and "\n\ndef atan(distance, slope, threshold, m):" in text
    assert (
        "def triangle" not in text and "snnbench" not in text and text.startswith("import math", text.index("import"))
    )


def test_values_stand_in_defaults_too() -> None:
    scan = discover()["jax-scan"]
    text = script(scan, scan.variants[scan.default], CASE)
    assert "def layer(current, beta=0.91, threshold=1.0):" in text and "case" not in text


def test_code_of_layers_has_their_widths() -> None:
    loop = discover(())["torch-loop"]
    text = script(loop, loop.variants[loop.default], WIDE.with_(alpha=0.8))
    assert "widths, batch, steps = [30, 48, 20], 7, 20" in text and "i = 0.8 * i + x" in text
    assert '"""Spikes [steps, batch, widths[-1]] of an input [steps, batch, widths[0]]."""' in text


@pytest.mark.parametrize("library", ["torch-loop", "jax-scan", "spikingjelly", "sinabs"])
def test_code_of_recurrent_layers_has_their_weights(library: str) -> None:
    adapter = discover(())[library]
    text = script(adapter, adapter.variants[adapter.default], WIDE.with_(widths="30-48R-20"))
    compile(text, library, "exec")
    assert "make_recurrent" in text and "[True, False]" in text


def test_sequence_in_chunks_has_no_code() -> None:
    loop = discover(())["torch-loop"]
    with pytest.raises(NoCode, match="sequences that come as a whole"):
        script(loop, loop.variants[loop.default], CASE.with_(**CUT))


@pytest.mark.parametrize(
    ("library", "trained"),
    [("sinabs", "train_alphas"), ("spikingjelly", "ParametricLIFNode"), ("snntorch", "learn_"), ("jax-scan", "")],
)
def test_code_of_trained_constants_has_the_parameters_of_the_library(library: str, trained: str) -> None:
    adapter = discover(())[library]
    case = WIDE.with_(trained="beta", **profile("zero"))
    if not trained:
        with pytest.raises(NoCode, match="not trained"):
            script(adapter, adapter.variants[adapter.default], case)
        return
    text = script(adapter, adapter.variants[adapter.default], case)
    compile(text, library, "exec")
    assert trained in text and "\nconstants = " not in text and "snnbench" not in text


def test_run_offers_the_code_of_a_leader_only_where_there_is_some() -> None:
    adapters = discover(())
    fixed, trained = (timed("torch-loop/unbind", case=WIDE.with_(trained=each)) for each in ("none", "beta"))
    assert _has_code(recording(trained, fixed), "torch-loop/unbind", adapters)
    assert not _has_code(recording(fixed, trained), "torch-loop/unbind", adapters)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("\n\ndef neuron(case, variant):\n    return made(case)\n", "decides at run time what it builds"),
        ("\n\ndef build(case, weights, variant):\n    return Network(Fast, [])\n", "builds a whole network of its own"),
        ("\n\ndef neuron(case, variant):\n    return Neuron(compiled(Fast))\n", "uses snnbench's compiled"),
    ],
)
def test_network_without_code_has_a_reason(tmp_path: Path, body: str, reason: str) -> None:
    made = adapter(tmp_path, body)
    if "compiled" in body:
        made.path.write_text(made.path.read_text().replace("import Neuron", "import Neuron, compiled"))
    with pytest.raises(NoCode, match=f"mine: its adapter {reason}"):
        code(made)


def test_code_of_every_contender_of_quick_compiles_and_imports_nothing_of_the_harness() -> None:
    adapters = discover(())
    works = config.expand(config.load(CONFIGS / "quick.toml", default_threads=2), adapters)
    written = 0
    for work in works:
        made = adapters[work.library]
        try:
            text = script(made, made.variants[work.variant], work.case)
        except NoCode as error:
            assert work.library == "spyx", error
            continue
        imports = [each.module or "" for each in ast.walk(ast.parse(text)) if isinstance(each, ast.ImportFrom)]
        assert not [name for name in imports if name.startswith(OURS)]
        written += 1
    assert written == len(works) - 1
