"""Tests of test_gpu.py on a machine without a GPU: it can be collected, and chooses the right libraries."""

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from snnbench.adapter import reading
from snnbench.adapter.loading import load
from snnbench.workloads.linear_lif import builder
from tests.system.test_gpu import ADAPTERS, CONTENDERS, FRAMEWORKS, GPU, GREEDY, python_of, same_release

ROOT = Path(__file__).parents[2]
WITHOUT_UV = "import sys; sys.modules['uv'] = None; import pytest; sys.exit(pytest.main(sys.argv[1:]))"


def test_gpu_tests_are_collected_without_uv() -> None:
    command = [sys.executable, "-c", WITHOUT_UV, "--collect-only", "-m", "gpu", "tests/system/test_gpu.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    collected = re.search(r"(\d+) tests collected", done.stdout)
    assert collected is not None and int(collected[1]) > len(CONTENDERS), done.stdout


@pytest.mark.parametrize(
    ("installed", "pinned", "expected"),
    [
        ("2.11.0+cu130", "2.13.0", True),
        ("1.1.0", "1.0.0", True),
        ("2.0.0", "0.0.0.0.14", False),
        ("0.0.0.0.14", "2.0.0", False),
        ("1.0.0", "0.1.20", False),
        ("0.1.19", "0.1.20", True),
        ("0.4.0", "0.3.4", False),
        ("3", "3.1.0", True),
    ],
)
def test_same_release_compares_major_or_early_minor_versions(installed: str, pinned: str, expected: bool) -> None:
    assert same_release(installed, pinned) is expected


def test_greedy_adapter_allocates_on_the_device_in_every_pass(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from snnbench.backends.torch import Weights

    library, name = FRAMEWORKS[0]
    path = tmp_path / "greedy.py"
    path.write_text(ADAPTERS[library].path.read_text() + GREEDY)
    assert reading.read(path).variants.keys() == ADAPTERS[library].variants.keys()
    case = GPU.with_(device="cpu", neurons=4, batch=2, time_steps=3)
    network = builder(load(path))(case, [Weights(torch.ones(4, 4), torch.ones(4))], name)
    if not torch.cuda.is_available():
        with pytest.raises((RuntimeError, AssertionError), match="CUDA"):
            network.forward(torch.ones(3, 2, 4))


@pytest.fixture
def nothing_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine without managed environments."""
    monkeypatch.setenv("SNNBENCH_HOME", str(tmp_path))
    return monkeypatch


def test_other_release_of_a_library_is_skipped(nothing_made: pytest.MonkeyPatch) -> None:
    nothing_made.setattr(metadata, "version", lambda distribution: "2.0.0")
    sentence = r"this Python has spikingjelly 2\.0\.0, and spikingjelly/old-torch is written for 0\.0\.0\.0\.14"
    with pytest.raises(pytest.skip.Exception, match=sentence):
        python_of("spikingjelly", "old-torch")
    assert python_of("spikingjelly", "auto") == Path(sys.executable)


def test_release_of_a_framework_is_not_compared(nothing_made: pytest.MonkeyPatch) -> None:
    nothing_made.setattr(metadata, "version", lambda distribution: "0.99.0")
    assert python_of("jax-scan", "default") == Path(sys.executable)
    with pytest.raises(pytest.skip.Exception, match=r"written for 1\.0\.0"):
        python_of("spyx", ADAPTERS["spyx"].default)
