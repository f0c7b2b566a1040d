"""Tests of refusals by `lif` and `linear_lif`: wrong arguments, a broken compiler, a kernel for another device."""

import subprocess
import sys
from functools import partial
from typing import Any

import pytest
import torch

from snnbench import kernels
from snnbench.kernels import lif, linear_lif


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reset": "half"}, "reset 'half'"),
        ({"threshold": 0.0}, "threshold 0"),
        ({"surrogate": "relu"}, "surrogate 'relu'"),
        ({"keep": "all"}, "keep 'all'"),
        ({"kernel": "gpu"}, "kernel 'gpu'"),
        ({"current": torch.zeros(3, 4)}, "expected [T, B, N]"),
        ({"beta": torch.full((5,), 0.9)}, "beta has 5 elements"),
        ({"potential": torch.zeros(9, 9)}, "potential has the shape [9, 9]"),
        ({"potential": torch.zeros(2, 4, device="meta")}, "potential is on meta"),
        ({"current": torch.zeros(3, 2, 4, dtype=torch.int32)}, "input in torch.int32"),
    ],
)
def test_wrong_shape_or_word_is_a_value_error(change: dict[str, Any], message: str) -> None:
    arguments = {"current": torch.zeros(3, 2, 4), "beta": 0.9, "threshold": 1.0, **change}
    with pytest.raises(ValueError) as error:
        lif(arguments.pop("current"), **arguments)
    assert message in str(error.value)


@pytest.mark.parametrize(("keywords", "named"), [({"beta": 0.9}, "threshold"), ({"slop": 2.0}, "slop")])
def test_a_missing_and_an_unknown_keyword_are_named(keywords: dict[str, float], named: str) -> None:
    for function in (partial(lif, torch.zeros(3, 2, 4)), partial(linear_lif, torch.zeros(3, 2, 4), None)):
        with pytest.raises(TypeError, match=f"'{named}'"):
            function(**keywords)


@pytest.mark.parametrize(
    ("weight", "bias", "message"),
    [
        (torch.zeros(6, 3), None, "weight has the shape [6, 3]: expected [N_out, 4]"),
        (torch.zeros(4), None, "weight has the shape [4]"),
        (torch.zeros(6, 4).double(), None, "weight is in torch.float64"),
        (torch.zeros(6, 4), torch.zeros(1), "bias has the shape [1]: expected [6]"),
        (torch.zeros(6, 4), torch.zeros(12), "bias has the shape [12]"),
        (torch.zeros(6, 4), torch.zeros(1, 6), "bias has the shape [1, 6]"),
    ],
)
def test_wrong_weight_or_bias_is_a_value_error(weight: torch.Tensor, bias: torch.Tensor | None, message: str) -> None:
    with pytest.raises(ValueError) as error:
        linear_lif(torch.zeros(3, 2, 4), weight, bias, beta=0.9, threshold=1.0)
    assert message in str(error.value)


def test_broken_compiler_auto_takes_torch_and_cpu_is_unavailable(tmp_path: Any) -> None:
    (tmp_path / "cc").write_text("#!/bin/sh\necho 'error: unsupported option -fopenmp' >&2\nexit 1\n")
    (tmp_path / "cc").chmod(0o755)
    script = (
        "import torch; from snnbench import kernels; x = torch.zeros(3, 2, 4)\n"
        "print(kernels.automatic(x.device, x.dtype), kernels.lif(x, beta=0.9, threshold=1.0).sum().item())\n"
        "try: kernels.lif(x, beta=0.9, threshold=1.0, kernel='cpu')\n"
        "except kernels.Unavailable as error: print(error)"
    )
    environment = {"SNNBENCH_HOME": str(tmp_path), "CC": str(tmp_path / "cc"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    first, second = done.stdout.splitlines()
    assert first == "torch 0.0", done.stderr
    assert "unsupported option -fopenmp" in second and "use the kernel 'torch'" in second


@pytest.mark.parametrize("name", ["triton", "cuda"])
def test_a_kernel_for_another_device_is_refused_and_not_replaced(name: str) -> None:
    with pytest.raises(kernels.Unsupported, match="CUDA devices only"):
        lif(torch.zeros(3, 2, 4), beta=0.9, threshold=1.0, kernel=name)


@pytest.mark.parametrize(
    ("changed", "message"), [({"dtype": torch.float64}, "float32 only"), ({"device": "meta"}, "runs on a CPU only")]
)
def test_events_are_of_float32_on_a_cpu(changed: dict[str, Any], message: str) -> None:
    inputs, weight = torch.zeros(3, 2, 4, **changed), torch.zeros(5, 4, **changed)
    with pytest.raises(kernels.Unsupported, match=message):
        linear_lif(inputs, weight, beta=0.9, threshold=1.0, kernel="event")


def test_import_compiles_nothing(tmp_path: Any) -> None:
    script = "import sys; import snnbench.kernels; print(sorted({'cuda.core', 'numba'} & set(sys.modules)))"
    environment = {"SNNBENCH_HOME": str(tmp_path), "CC": "/nowhere", "PATH": ""}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert done.stdout.strip() == "[]", done.stderr
    assert not list(tmp_path.iterdir())
