"""Tests of adapter files: reading one without running it, its ways, its defaults and its digest."""

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
from snnbench.workloads import linear_lif
from tests.fakes import CASE, CORRECT, profile, write

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


def test_loaded_adapter_shadows_no_module(tmp_path: Path) -> None:
    module = loading.load(write(tmp_path, "HERE = True" + BUILD, "json"))
    assert module.__name__ == "_snnbench_adapter_json" and module is not sys.modules["json"]
    assert linear_lif.builder(module) is module.build


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
