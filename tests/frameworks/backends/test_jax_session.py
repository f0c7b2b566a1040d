"""Tests of a JAX session, in the environment that snnbench makes: its compiler's plans, and its arrays' owner."""

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from snnbench.adapter.discovery import discover
from snnbench.environments import store
from snnbench.files import home
from snnbench.run.process import environment, further, run
from tests.fakes import CASE, reply_of, request, write

pytestmark = pytest.mark.libraries

SCRIPT = """
import json, sys
import jax
from snnbench.adapter import Unavailable
from snnbench.adapter.loading import load
from snnbench.adapter.reading import read
from snnbench.backends.jax import Backend
from snnbench.workloads.linear_lif import builder, Case
from snnbench.workloads.linear_lif import Problem
from pathlib import Path

path, case = Path(sys.argv[1]), Case(**json.loads(sys.argv[2]))
backend, problem = Backend(case), Problem(case)
session = backend.session(builder(load(path)), read(path).variants["default"], problem)
said = {"resets": backend.reset_peak(), "planned": {}}
for phase in ("inference", "forward", "train"):
    session.compile(phase)
    said["planned"][phase] = session.planned_bytes(phase)
    outputs = getattr(session, phase)()
    said[phase] = sum(leaf.nbytes for leaf in jax.tree.leaves(outputs))
before = session.input.sum().item()
problem.input(0)[...] = 0
said["input kept"] = before > 0 and session.input.sum().item() == before
try:
    Backend(case.with_(device="cuda"))
except Unavailable as error:
    said["no card"] = str(error)
print(json.dumps(said))
"""


OPTIONS = """
import json
from jaxlib import xla_client

print(json.dumps(xla_client.generate_pjrt_gpu_plugin_options()))
"""
"""The options that JAX's plugin for CUDA registers its backend with. They need no GPU."""


def printed(script: str, *arguments: str) -> Any:
    """The JSON that a script prints last, in the environment of jax-scan and with a worker's variables."""
    planned = store.sync(store.plan(discover()["jax-scan"], "default", cuda=False), print)
    command = [str(planned.python), "-P", "-c", script, *arguments]
    env = environment(1, home())
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=sys.stderr, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def output() -> dict[str, Any]:
    """The output of SCRIPT."""
    answer: dict[str, Any] = printed(SCRIPT, str(discover()["jax-scan"].path), json.dumps(asdict(CASE)))
    return answer


def test_plugin_of_cuda_takes_a_workers_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """It raises if both names of the memory fraction are set, and JAX then has no CUDA backend."""
    monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.5")
    options = printed(OPTIONS)
    assert options["memory_fraction"] == 0.95 and options["preallocate"] is False


@pytest.mark.parametrize("phase", ["inference", "forward", "train"])
def test_planned_bytes_cover_the_outputs(output: dict[str, Any], phase: str) -> None:
    assert not output["resets"], "or the plan would not be asked for"
    array_bytes = 4 * CASE.updates
    assert output["planned"][phase] >= output[phase] >= array_bytes
    assert output["planned"][phase] < 20 * array_bytes


def test_session_has_its_own_arrays(output: dict[str, Any]) -> None:
    assert output["input kept"]


def test_missing_gpu_is_unavailable_with_its_requirement(output: dict[str, Any]) -> None:
    assert output["no card"].startswith("JAX ") and "has no device cuda: " in output["no card"]
    assert "an NVIDIA driver 580 or newer" in output["no card"]


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        ("", None),
        ("jax.devices()", None),
        ('jax.config.update("jax_cpu_enable_async_dispatch", True)\njax.devices()', "incorrect"),
    ],
)
def test_adapter_that_has_jax_overlap_passes_is_refused(tmp_path: Path, lines: str, kind: str | None) -> None:
    """JAX reads the setting once, when it is first used: so the backend sets it before an adapter is imported."""
    source = discover()["jax-scan"].path.read_text().replace("import jax\n", f"import jax\n{lines}\n", 1)
    planned = store.sync(store.plan(discover()["jax-scan"], "default", cuda=False), print)
    env = environment(1, home(), further("time", home()))
    asked = request("time", phases=("inference",))
    outcome = reply_of(run(planned.python, write(tmp_path, source, "mine"), asked, env, 60.0)).outcome
    assert outcome and outcome.kind == kind
