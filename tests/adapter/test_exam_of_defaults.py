"""The exam of libraries that run on a CPU: the default variant, in one profile, in its managed environment.

tests/system has the exam of further variants, in every profile and over more time steps.
"""

import json

import pytest

from snnbench.adapter.declaration import Adapter, Variant
from snnbench.adapter.discovery import discover
from snnbench.recording.record import Record
from tests.managed import ROOT, recorded

pytestmark = pytest.mark.libraries

SWEEP = """
[[sweep]]
name = "{library}"
profile = "{profile}"
time_steps = 6
{work}
dtype = "{dtype}"
libraries = "{library}"
"""
STACK, DIVIDED = "layers = 1", 'workload = "lif_devices"\ndevices = 1'


def default(adapter: Adapter) -> Variant:
    """The variant of a library that is named without a variant."""
    return adapter.variants[adapter.default]


def runs_here(variant: Variant) -> bool:
    """Whether a variant runs on any CPU, with packages from package indexes."""
    return "cpu" in variant.devices and not variant.needs


def divides(adapter: Adapter) -> bool:
    """Whether a library only divides neurons among devices."""
    return "def parts(" in adapter.path.read_text(encoding="utf-8")


SLOW = ("torch-compile",)
"""Libraries whose default variant torch compiles for half a minute; tests/system examines them."""
ADAPTERS = {name: adapter for name, adapter in discover().items() if runs_here(default(adapter)) and name not in SLOW}


@pytest.fixture(scope="module")
def exam(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Record]:
    """The record of each library, with the exam's own protocol and case."""
    folder = tmp_path_factory.mktemp("exam")
    text, _, _ = (ROOT / "configs" / "exam.toml").read_text(encoding="utf-8").partition("[[sweep]]")
    for name, adapter in ADAPTERS.items():
        profile = (default(adapter).exact or ("zero",))[0]
        dtype, work = "float64" if name == "reference" else "float32", DIVIDED if divides(adapter) else STACK
        text += SWEEP.format(library=name, profile=profile, dtype=dtype, work=work)
    (folder / "defaults.toml").write_text(text, encoding="utf-8")
    records = recorded(str(folder / "defaults.toml"), folder / "recording")
    return {record.library: record for record in records}


def test_every_library_that_runs_here_sits_the_exam(exam: dict[str, Record]) -> None:
    assert exam.keys() == ADAPTERS.keys() and len(exam) >= 12


@pytest.mark.parametrize("library", ADAPTERS)
def test_exam_of_library_has_the_declared_verdict(library: str, exam: dict[str, Record]) -> None:
    record, declared = exam[library], default(ADAPTERS[library])
    assert record.status == "measured", json.dumps(record.outcome.as_dict())
    assert record.outcome.verdict == ("deviates" if declared.deviation else "exact")
    if declared.deviation:
        return
    assert record.checks["exam-1"]["compared"] == 3 * 8 * 5 * 37
    if not declared.inference_only:
        gradients = {name.split(" ")[0] for name in record.checks["exam-1"]["gradient_errors"]}
        assert gradients == ({"input"} if divides(ADAPTERS[library]) else {"weight", "bias", "input"})
