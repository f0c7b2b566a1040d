"""Tests of adapter files: reading one without running it, refusals, and a new library in one file."""

import csv
import io
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from snnbench.adapter import loading
from snnbench.adapter.contender import label
from snnbench.adapter.declaration import WAYS, Variant
from snnbench.adapter.pins import Pins
from snnbench.adapter.reading import read
from snnbench.adapter.refusal import AdapterError, Unsupported, require
from snnbench.workloads.case import PROFILES
from tests.fakes import CASE, CORRECT, profile, write
from tests.sweep import recordings, run_arguments, snnbench, write_config

BUILD = "\ndef build(case, weights, variant): ...\n"
WHOLE = (
    '''# /// script
# requires-python = ">=3.12"
# dependencies = ["my_library[fast]==1.2.3", "numpy==2.0"]
#
# [tool.uv]
# override-dependencies = ["torchvision; sys_platform == 'never'"]
#
# [tool.snnbench]
# cuda = ["triton==3.0"]
#
# [tool.snnbench.variants.fast]
# dependencies = ["my_library==1.0"]
# built = ["my_kernels==2.0"]
#
# [[tool.snnbench.variants.fast.dependency-metadata]]
# name = "my_library"
# requires-dist = ["numpy"]
# ///
"""My library: `Neuron`, stepped
through time.

More that a list does not show.
"""

raise SystemExit("reading an adapter runs nothing")

BACKEND = {"fast": "jax", "plain": "torch"}
ORDER = "BTN"
LATENCY = {"fast": 1, "plain": 0}
VARIANTS = {"plain": "step by step", "fast": "all at once"}
DEVICES = {"fast": ("cuda",)}
EXACT = ("zero",)
RESETS = "it sets to zero"
DEVIATION = {"fast": "decays before it charges"}
INFERENCE_ONLY = {"fast": "it has no gradients"}
PROVIDER = {"fast": ("^fast_kernel",)}
NEEDS = {"fast": "the fast toolkit"}
WAYS = ("amp", "cuda-graph")
STEPS = len("computed")
'''
    + BUILD
)


def refusal(folder: Path, source: str) -> str:
    """Why a file is refused, without its path."""
    path = write(folder, source)
    with pytest.raises(AdapterError) as caught:
        read(path)
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(f"{path}: ")


def test_adapter_file_is_read_without_running_it(tmp_path: Path) -> None:
    adapter = read(write(tmp_path, WHOLE, "my_library"))
    assert (adapter.name, adapter.about) == ("my-library", "My library: `Neuron`, stepped through time.")
    pins = Pins(
        requires_python=">=3.12",
        dependencies=("my_library[fast]==1.2.3", "numpy==2.0"),
        overrides=("torchvision; sys_platform == 'never'",),
        cuda=("triton==3.0",),
    )
    assert (pins.distribution, pins.version) == ("my_library", "1.2.3")
    plain = Variant(
        about="step by step",
        built_as="plain",
        pins=pins,
        backend="torch",
        order="BTN",
        latency=0,
        exact=("zero",),
        resets="it sets to zero",
    )
    fast = Variant(
        about="all at once",
        built_as="fast",
        pins=replace(
            pins,
            dependencies=("my_library==1.0",),
            built=("my_kernels==2.0",),
            metadata=('{ name = "my_library", requires-dist = ["numpy"] }',),
        ),
        backend="jax",
        order="BTN",
        latency=1,
        devices=("cuda",),
        resets="it sets to zero",
        deviation="decays before it charges",
        inference_only="it has no gradients",
        provider=("^fast_kernel",),
        needs="the fast toolkit",
    )
    assert list(adapter.variants.items()) == [
        ("plain", plain),
        ("fast", fast),
        ("amp", replace(plain, about=f"step by step: {WAYS['amp']}", way="amp")),
        (
            "cuda-graph",
            replace(plain, about=f"step by step: {WAYS['cuda-graph']}", way="cuda-graph", devices=("cuda",)),
        ),
    ]
    assert adapter.default == "plain"


def test_way_can_name_its_variant(tmp_path: Path) -> None:
    text = f"""BACKEND = 'torch'
VARIANTS = {{'plain': 'a', 'quick': 'b'}}
PROVIDER = {{'quick': ('^quick',)}}
WAYS = {{'cuda-graph': 'quick'}}{BUILD}"""
    graph = read(write(tmp_path, text)).variants["cuda-graph"]
    assert (graph.built_as, graph.way, graph.provider, graph.devices) == ("quick", "cuda-graph", ("^quick",), ("cuda",))
    for wrong in ("{'cuda-graph': 'none'}", "{'graph': 'quick'}", "{'amp': 3}", "{}"):
        assert refusal(tmp_path, text.replace("{'cuda-graph': 'quick'}", wrong)).startswith(f"WAYS: {wrong} should be")


def test_missing_constants_have_defaults(tmp_path: Path) -> None:
    adapter = read(write(tmp_path, f'"""One line."""\nBACKEND = "numpy"{BUILD}'))
    plain = Variant(about="One line.", built_as="default", pins=Pins(">=3.11", ("numpy",)), backend="numpy")
    assert adapter.variants == {"default": plain}
    assert (plain.order, plain.latency, plain.devices, plain.exact) == ("TBN", 0, ("cpu", "cuda"), ())
    assert (plain.deviation, plain.inference_only, plain.provider, plain.needs, plain.way) == (
        None,
        None,
        None,
        None,
        "",
    )


def test_digest_depends_on_content_only(tmp_path: Path) -> None:
    first, second = read(write(tmp_path, CORRECT, "one")), read(write(tmp_path, CORRECT, "two"))
    assert first.digest == second.digest
    write(tmp_path, CORRECT + "\n", "one")
    assert first.digest != second.digest


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("BACKEND = 'numpy'", "no function build(case, weights, variant)"),
        (BUILD, 'no BACKEND = "torch", "jax", "numpy" or "own"'),
        (f"BACKEND = 'tensorflow'{BUILD}", 'BACKEND: \'tensorflow\' should be "torch", "jax", "numpy" or "own"'),
        (f"BACKEND = 'numpy'\nORDER = 'TBX'{BUILD}", "ORDER: 'TBX' should be the letters of \"TBN\""),
        (f"BACKEND = 'numpy'\nLATENCY = -1{BUILD}", "LATENCY: -1 should be a number of steps"),
        (f"BACKEND = 'numpy'\nDEVIATION = True{BUILD}", "DEVIATION: True should be a sentence"),
        (f"BACKEND = 'numpy'\nVARIANTS = ['a']{BUILD}", 'VARIANTS: expected {"name": "description"}'),
        (
            f"BACKEND = {{'a': 'numpy'}}\nVARIANTS = {{'a': 'x', 'b': 'y'}}{BUILD}",
            "BACKEND: 'b' should stand in both VARIANTS and BACKEND, or in neither",
        ),
        (
            f"BACKEND = 'numpy'\nDEVIATION = {{'b': 'late'}}{BUILD}",
            "DEVIATION: 'b' should stand in both VARIANTS and DEVIATION, or in neither",
        ),
        (
            f"BACKEND = 'numpy'\nDEVICES = ('cpu', 'tpu'){BUILD}",
            "DEVICES: ('cpu', 'tpu') should be a tuple of \"cpu\" and \"cuda\"",
        ),
        (
            f"BACKEND = 'numpy'\nEXACT = 'zero'{BUILD}",
            f"EXACT: 'zero' should be a tuple of profiles ({', '.join(PROFILES)})",
        ),
        (f"BACKEND = 'numpy'\nPROVIDER = '('{BUILD}", "PROVIDER: '(' should be a tuple of regular expressions"),
        (
            f"BACKEND = 'numpy'\nWAYS = ('compile',){BUILD}",
            "WAYS: ('compile',) should be a tuple of compile, cuda-graph, amp, of a BACKEND \"torch\"; "
            "or {one of them: a variant}",
        ),
        (
            f"BACKEND = 'torch'\nWAYS = ('compiled',){BUILD}",
            "WAYS: ('compiled',) should be a tuple of compile, cuda-graph, amp, of a BACKEND \"torch\"; "
            "or {one of them: a variant}",
        ),
        (
            f"# /// script\n# [tool.snnbench.variants.b]\n# ///\nBACKEND = 'numpy'{BUILD}",
            "script header: [tool.snnbench.variants.b] is not in VARIANTS",
        ),
        *(
            (f"# /// script\n# {text}\n# ///\nBACKEND = 'torch'{BUILD}", f"script header: {reason}")
            for text, reason in {
                "dependencies = [1]": "dependencies = [1] should be a list of strings",
                'dependencies = "norse"': "dependencies = 'norse' should be a list of strings",
                "requires-python = 3": "requires-python = 3 should be a string",
                "tool = 3": "tool = 3 should be a table",
                'tool.snnbench.variants.default = "x"': "default = 'x' should be a table",
                "tool.snnbench.api = 2": "api = 2: this snnbench has version 1 of the interface",
                'tool.snnbench.modules = "kernels"': "modules = 'kernels' should be a list of strings",
                'tool.uv.dependency-metadata.name = "x"': "dependency-metadata should be tables [[...]] of strings and "
                "lists of strings",
            }.items()
        ),
        (
            f"BACKEND = 'torch'\nWAYS = 3{BUILD}",
            'WAYS: 3 should be a tuple of compile, cuda-graph, amp, of a BACKEND "torch"; or {one of them: a variant}',
        ),
        (
            f"BACKEND = 'torch'\nDEVICES = (['cpu'],){BUILD}",
            'DEVICES: ([\'cpu\'],) should be a tuple of "cpu" and "cuda"',
        ),
        ("def build(:", "invalid syntax (<unknown>, line 1)"),
        ("BACKEND = 'numpy'\0", "source code string cannot contain null bytes"),
        (
            f"# /// script\n# dependencies = [\n# ///\nBACKEND = 'numpy'{BUILD}",
            "script header: Invalid value (at end of document)",
        ),
    ],
)
def test_malformed_adapter_is_refused_in_one_line(tmp_path: Path, source: str, reason: str) -> None:
    assert refusal(tmp_path, source) == reason


def test_missing_or_binary_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AdapterError, match=r"none\.py: .*No such file"):
        read(tmp_path / "none.py")
    (tmp_path / "bytes.py").write_bytes(b"\xff\xfe")
    with pytest.raises(AdapterError, match=r"bytes\.py: 'utf-8' codec can't decode"):
        read(tmp_path / "bytes.py")


def test_loaded_adapter_shadows_no_module(tmp_path: Path) -> None:
    module = loading.load(write(tmp_path, "HERE = True" + BUILD, "json"))
    assert module.__name__ == "_snnbench_adapter_json" and module is not sys.modules["json"]
    assert loading.builder(module) is module.build


def test_unmet_requirement_is_refused_with_its_reason() -> None:
    zero = CASE.with_(**profile("zero"))
    require(CASE, "x", profile="subtract", slope=(1.0, 2.0))
    require(zero, "x", profile=("zero", "subtract"), reset="zero")
    for case, allowed, reason in (
        (zero, {"profile": "subtract"}, "it subtracts"),
        (CASE, {"slope": (2.0, 3.0)}, "it subtracts (asked for slope 1.0)"),
    ):
        with pytest.raises(Unsupported) as caught:
            require(case, "it subtracts", **allowed)
        assert str(caught.value) == reason


def test_label_omits_an_only_variant() -> None:
    assert (label("norse", "box"), label("sinabs", "default")) == ("norse/box", "sinabs")


NEW_LIBRARY = '''# /// script
# requires-python = ">=3.11"
# dependencies = ["numpy"]
# ///
"""shortlif: a leaky integrate-and-fire neuron in plain NumPy, backward pass included."""

import numpy as np

from snnbench.adapter import require
from snnbench.backends.numpy import Network

BACKEND = "numpy"


def spike_through_time(current, case):
    """Potentials and spikes [T, B, N]."""
    potential, spikes, v = np.empty_like(current), np.empty_like(current), 0.0
    for t, x in enumerate(current):
        potential[t] = case.beta * v + x
        spikes[t] = potential[t] >= case.threshold
        v = potential[t] - case.threshold * spikes[t]
    return potential, spikes


def back_through_time(gradient, potential, case):
    """The gradient of the input current."""
    result, gv = np.empty_like(gradient), 0.0
    for t in reversed(range(len(gradient))):
        surrogate = 1 / (1 + np.abs(potential[t] - case.threshold)) ** 2
        result[t] = gv + (gradient[t] - case.threshold * gv) * surrogate
        gv = case.beta * result[t]
    return result


def build(case, weights, variant):
    require(case, "shortlif subtracts", profile="subtract")
    require(case, "shortlif has one surrogate", surrogate="fast_sigmoid", slope=1.0)

    def forward(x):
        kept = []
        for weight, bias in weights:
            potential, spikes = spike_through_time(x @ weight.T + bias, case)
            kept.append((x, potential))
            x = spikes
        return x, kept

    def backward(kept, gradient):
        by_weight, by_bias = [], []
        for (weight, _), (x, potential) in zip(reversed(weights), reversed(kept), strict=True):
            current = back_through_time(gradient, potential, case)
            by_weight.insert(0, np.tensordot(current, x, ((0, 1), (0, 1))))
            by_bias.insert(0, current.sum((0, 1)))
            gradient = current @ weight
        return by_weight, by_bias, gradient

    return Network(forward, backward)
'''


def test_new_library_is_one_file_under_60_lines(tmp_path: Path) -> None:
    """The file lies in its own folder, is named on the command line, and is measured as exact."""
    assert len(NEW_LIBRARY.splitlines()) < 60
    mine = write(tmp_path, NEW_LIBRARY, "shortlif")
    config = write_config(tmp_path, ["shortlif"], trials=1)
    done = snnbench(tmp_path, *run_arguments(config, [mine], "--set", "case.layers=[1,2]"))
    assert done.returncode == 0, done.stderr
    shown = [[cell.strip() for cell in line.split("|")] for line in done.stdout.splitlines() if "| shortlif |" in line]
    assert [(row[3], row[5]) for row in shown] == [("exact", "1.00")] * 2, "one layer and two"
    (recording,) = recordings(tmp_path)
    rows = list(csv.DictReader(io.StringIO(snnbench(tmp_path, "report", recording, "--format", "csv").stdout)))
    times = {(row["layers"], row["phase"]) for row in rows if row["metric"] == "time" and float(row["value"]) > 0}
    assert times == {(layers, phase) for layers in "12" for phase in ("inference", "forward", "backward", "train")}
    assert {row["verdict"] for row in rows} == {"exact"}


def test_digest_includes_declared_snnbench_modules(tmp_path: Path) -> None:
    text = 'BACKEND = "numpy"\ndef build(case, weights, variant): ...\n'
    header = '# /// script\n# [tool.snnbench]\n# modules = ["kernels"]\n# ///\n'
    (tmp_path / "plain.py").write_text(text)
    (tmp_path / "named.py").write_text(header + text)
    plain, named = read(tmp_path / "plain.py"), read(tmp_path / "named.py")
    assert (plain.modules, named.modules) == ((), ("kernels",))
    before = replace(named, modules=()).digest
    assert named.digest != before
    assert replace(named, modules=("backends",)).digest not in (before, named.digest)
