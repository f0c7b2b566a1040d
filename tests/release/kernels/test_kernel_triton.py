"""Tests of the Triton kernels: interpreted on the CPU, compiled for a GPU without one, and run on a GPU if present.

The interpreter truncates to bfloat16, a GPU rounds to nearest.
"""

import importlib.util
import sys
from dataclasses import replace
from typing import Any

import numpy
import pytest
from packaging.version import Version

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")  # before TRITON_INTERPRET is set below: it must not affect its own functions

from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from snnbench.cases.surrogate import FORMULAS
from snnbench.kernels import lif_triton
from snnbench.kernels.lif_triton import Strip
from snnbench.kernels.neuron import Neuron
from tests import contract, oracle
from tests.contract import Kernels
from tests.oracle import FORMATS, NEURONS

ON_GPU = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")]


@pytest.fixture(scope="module", params=["interpreted", pytest.param("cuda", marks=ON_GPU)])
def kernels(request: pytest.FixtureRequest) -> Kernels:
    """On the CPU, a second copy of the module, interpreted because the variable is set at its import."""
    if request.param == "cuda":
        return Kernels(lif_triton, "cuda")
    if Version(triton.__version__) < Version("3.7") and Version(numpy.__version__) >= Version("2.4"):
        pytest.skip("the interpreter of Triton before 3.7 fails with NumPy 2.4 or newer")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        spec = importlib.util.spec_from_file_location("interpreted_lif_triton", lif_triton.__file__)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        patch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        for name in FORMULAS:
            module.surrogate_function(name)
    return Kernels(module, bfloat16_error=1.0)


@pytest.fixture
def small(kernels: Kernels, monkeypatch: pytest.MonkeyPatch) -> Kernels:
    """Kernels with small strips: a small problem has several strips, and the last one is ragged in both directions."""
    monkeypatch.setattr(kernels.module, "strip_for", lambda columns: Strip(width=16, warps=1, rows=3))
    return kernels


@pytest.mark.parametrize("reset", ["subtract", "zero"])
@pytest.mark.parametrize("biased", [True, False])
def test_forward_is_the_eager_loop_bit_for_bit(small: Kernels, reset: str, biased: bool) -> None:
    contract.check_forward(small, replace(NEURONS[0], reset=reset), biased)


@pytest.mark.parametrize("neuron", NEURONS, ids=oracle.identifier)
def test_backward_is_autograd_in_float64(small: Kernels, neuron: Neuron) -> None:
    contract.check_backward(small, neuron)


@pytest.mark.parametrize("neuron", NEURONS[:6], ids=oracle.identifier)
def test_synaptic_current_is_that_of_a_filter(small: Kernels, neuron: Neuron) -> None:
    contract.check_synapse(small, neuron)


@pytest.mark.parametrize("neuron", NEURONS, ids=oracle.identifier)
def test_both_passes_are_the_plain_loop_in_float64(small: Kernels, neuron: Neuron) -> None:
    contract.check_both_passes(small, neuron)


@pytest.mark.parametrize(("steps", "columns"), [(15, 33), (16, 32), (17, 1), (1, 1)])
def test_sizes_around_a_strip(kernels: Kernels, steps: int, columns: int) -> None:
    contract.check_size(replace(kernels, steps=steps, columns=columns), NEURONS[0])


def test_samples_and_neurons_may_be_two_axes(small: Kernels) -> None:
    contract.check_three_axes(small, NEURONS[0])


@pytest.mark.parametrize("stored", FORMATS)
def test_kept_may_overwrite_the_current_and_the_gradient_kept(small: Kernels, stored: torch.dtype) -> None:
    contract.check_in_place(small, stored)


def test_memory_outside_the_outputs_is_unchanged(small: Kernels) -> None:
    contract.check_nothing_else_is_written(small, NEURONS[0])


def test_a_potential_on_the_threshold_fires(small: Kernels) -> None:
    contract.check_threshold(small)


def test_minus_zero_kept_did_not_fire(small: Kernels) -> None:
    contract.check_minus_zero(small)


@pytest.mark.parametrize(("steps", "columns"), [(0, 5), (5, 0), (0, 0)])
def test_empty_problem_changes_nothing(small: Kernels, steps: int, columns: int) -> None:
    contract.check_nothing_to_do(small, steps, columns)


def test_two_runs_agree_in_every_bit(small: Kernels) -> None:
    contract.check_runs_agree(small)


ARCHITECTURES = (80, 89, 90, 100)
"""A100, RTX 4090 and L40, H100 and H200, B200."""


def compiled(
    function: Any, architecture: int, strip: Strip, has_synapse: bool = False, **constants: Any
) -> dict[str, Any]:
    """Triton's compilation of a kernel for a GPU: name of the stage -> its text. Needs no GPU."""
    constants |= {"RESETS_TO_ZERO": False, "HAS_SYNAPSE": has_synapse, "ROWS": strip.rows, "WIDTH": strip.width}
    types = {"steps": "i32", "columns": "i32", **dict.fromkeys(("beta", "threshold", "slope", "alpha"), "fp32")}
    signature = {name: "constexpr" if name in constants else types.get(name, "*fp32") for name in function.arg_names}
    source = ASTSource(
        function,
        signature,
        {(place,): constants[name] for place, name in enumerate(function.arg_names) if name in constants},
        {
            (place,): [["tt.divisibility", 16]]
            for place, name in enumerate(function.arg_names)
            if signature[name].startswith("*") or name == "columns"
        },
    )
    options = {"num_warps": strip.warps, "enable_fp_fusion": function is lif_triton._backward}
    return dict(triton.compile(source, GPUTarget("cuda", architecture, 32), options).asm)


def loads_before_a_store(ptx: str) -> int:
    """Loads from global memory in the loop before its first store to it."""
    loop = ptx[ptx.index("// =>This Inner Loop Header") :]
    return loop[: loop.index("st.global")].count("ld.global")


def target(ptx: str) -> str:
    """The assembler's target architecture."""
    return ptx.split(".target ", 1)[1].split()[0]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_compiled_forward_loads_ahead_and_rounds_twice(architecture: int) -> None:
    strip = lif_triton.strip_for(10**6)
    stages = compiled(lif_triton._forward, architecture, strip)
    ptx = stages["ptx"]
    assert target(ptx).startswith(f"sm_{architecture}") and stages["cubin"][:4] == b"\x7fELF"
    assert loads_before_a_store(ptx) == strip.rows
    assert "ld.global.v4.b32" in ptx and "st.global.v4.b32" in ptx
    assert "fma" not in ptx


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_compiled_backward_has_all_rows_in_flight(architecture: int) -> None:
    strip = lif_triton.strip_for(10**6)
    sigmoid = lif_triton.surrogate_function("sigmoid")
    stages = compiled(lif_triton._backward, architecture, strip, SURROGATE=sigmoid, DETACHED=False)
    ptx = stages["ptx"]
    assert target(ptx).startswith(f"sm_{architecture}") and stages["cubin"][:4] == b"\x7fELF"
    assert loads_before_a_store(ptx) == 2 * strip.rows
    assert "fma" in ptx


def test_compiled_synapse_rounds_twice_forward_and_loads_ahead_both_ways() -> None:
    strip, sigmoid = lif_triton.strip_for(10**6), lif_triton.surrogate_function("sigmoid")
    forward = compiled(lif_triton._forward, 90, strip, has_synapse=True)["ptx"]
    backward = compiled(lif_triton._backward, 90, strip, has_synapse=True, SURROGATE=sigmoid, DETACHED=False)["ptx"]
    assert (loads_before_a_store(forward), loads_before_a_store(backward)) == (strip.rows, 2 * strip.rows)
    assert "fma" not in forward and "fma" in backward


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_offsets_do_not_end_at_32_bits() -> None:
    steps, columns = 2, 2**30 + 24
    current = torch.ones(steps + 1, columns, dtype=torch.bfloat16, device="cuda")
    potential = torch.zeros(columns, device="cuda")
    spikes = torch.zeros_like(current)
    lif_triton.forward(current, potential, spikes, current, Neuron(0.5, 1.75))
    assert spikes[:, -1].tolist() == [0, 0, 1] and int(spikes[2].sum(dtype=torch.float32)) >= columns - 64
