"""A recording of every library in the exam, and one of adapters with a wrong setting, for all tests of verdicts.

torch compiles a network for most of a minute, and JAX an unrolled one for half of it, so .ci/run leaves these variants
out. `SNNBENCH_TEST_WHOLE=1`, which .ci/release sets, runs the whole config `exam`.
"""

import json
import re
from pathlib import Path

import pytest

from snnbench.adapter.declaration import Adapter
from snnbench.adapter.discovery import discover
from snnbench.recording.record import Record
from tests.managed import ROOT, recorded
from tests.system.libraries.wrong import written
from tests.whole import WHOLE

SLOW = (
    *("*/compile", "*/compile-cell", "torch-compile/*"),
    *("jaxpike/unroll", "jaxpike/checkpointed", "spyx-haiku/documented"),
)
"""Variants that a compiler takes long for."""
FEWER: dict[str, object] = {
    "one-layer.libraries": ["fused/cpu", "torch-loop", "jax-scan", "spyx/*", "!spyx/defaults", "spyx-haiku/time-major"],
    "mixed.dtype": "bfloat16",
    "half.dtype": "bfloat16",
}
"""Changes of the exam's sweeps. A case of two layers includes the exam of one layer, so one layer is for variants that
cannot be stacked, and for one contender of each framework."""
MORE = """
[[sweep]]
name = "defaults"
analysis = "A library's defaults are one neuron: a second profile would only put another common neuron beside it."
neurons = 256
batch = 16
time_steps = 100
layers = 1
dtype = "float32"
profile = "zero"
libraries = "*/defaults"

[[sweep]]
name = "layer-by-layer-bfloat16"
profile = "zero"
layers = 3
dtype = "bfloat16"
libraries = ["torch-loop/unbind", "snntorch/amp", "jax-scan/default"]

[[sweep]]
name = "layer-by-layer-float16"
profile = "zero"
layers = 3
dtype = "float16"
libraries = ["spikingjelly/auto", "sinabs/amp", "fused/cpu"]
"""
SWEEP = """
[[sweep]]
name = "{name}"
profile = "{profile}"
layers = 1
dtype = "float32"
libraries = "{name}/{variant}"
"""


def config(folder: Path, sweeps: str) -> str:
    """A config with the exam's protocol and case, and with these sweeps."""
    path = folder / "exam.toml"
    path.write_text(sweeps, encoding="utf-8")
    return str(path)


EXAM = (ROOT / "configs" / "exam.toml").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def tutorial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The adapter that the tutorial writes."""
    text = (ROOT / "docs" / "tutorials" / "add-your-library.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"<!-- adapter: start -->\n```python\n(.*?)```\n<!-- adapter: end -->", text, re.DOTALL)
    path = tmp_path_factory.mktemp("tutorial") / "mylif.py"
    path.write_text(block, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def adapters(tutorial: Path) -> dict[str, Adapter]:
    """Every adapter, with the tutorial's."""
    return discover([tutorial])


@pytest.fixture(scope="session")
def exam(tmp_path_factory: pytest.TempPathFactory, tutorial: Path) -> list[Record]:
    """The exam's records of every adapter, and of every variant and profile but those that take long."""
    folder = tmp_path_factory.mktemp("exam")
    changes = [] if WHOLE else [f"sweep.{key}={json.dumps(value)}" for key, value in FEWER.items()]
    only = ",".join(["threads>0", *([] if WHOLE else [f"library!={name}" for name in SLOW])])
    return recorded(config(folder, EXAM + MORE), folder / "recording", *changes, only=only, adapters=[tutorial])


@pytest.fixture(scope="session")
def wrong(tmp_path_factory: pytest.TempPathFactory, adapters: dict[str, Adapter]) -> dict[str, Record]:
    """The record of each adapter with a wrong setting, by its name."""
    folder = tmp_path_factory.mktemp("wrong")
    files = written(folder, adapters)
    sweeps = [SWEEP.format(name=path.stem, profile=edit.profile, variant=edit.variant) for path, edit in files.items()]
    head = EXAM.partition("[[sweep]]")[0].replace('baseline = "torch-loop"', f'baseline = "{next(iter(files)).stem}"')
    records = recorded(config(folder, head + "".join(sweeps)), folder / "recording", adapters=list(files), failing=True)
    return {record.library: record for record in records}
