"""Tests of the products of peaks in every framework: their operands, their values and their memory."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snnbench.backends import Backend, open_backend
from snnbench.worker.peaks import PATTERN_ROWS
from snnbench.workloads.linear_lif import operands
from tests.fakes import CASE

ROWS = 3 * PATTERN_ROWS + 1


def test_operands_resemble_the_cases_own() -> None:
    entering, cotangent, weight = operands(CASE.with_(neurons=150, input_rate=0.2), PATTERN_ROWS)[""]
    assert {matrix.shape for matrix in (entering, cotangent, weight)} == {(PATTERN_ROWS, 150)}
    assert set(np.unique(entering)) == {0.0, 1.0} and entering.mean() == pytest.approx(0.2, abs=0.03)
    for normal in (cotangent, weight):
        assert normal.std() == pytest.approx(1, abs=0.1) and len(np.unique(normal)) > 4000
    assert {array.dtype.name for array in (entering, cotangent, weight)} == {"float32"}
    assert all(array.flags.c_contiguous for array in (entering, cotangent, weight))


@pytest.mark.parametrize("name", ["numpy", "torch", "jax"])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("float64", 1e-13), ("bfloat16", 0.05)])
def test_every_framework_multiplies_and_copies_correctly(name: str, dtype: Any, tolerance: float) -> None:
    if (name, dtype) == ("numpy", "bfloat16"):
        pytest.skip("NumPy has no bfloat16")
    case = CASE.with_(dtype=dtype)
    backend: Backend = open_backend(name, case)
    pattern = operands(case, PATTERN_ROWS)[""]
    runs = backend.peaks(*pattern, 1000, ROWS)
    entering, cotangent, weight = (np.resize(each, (n, 48)) for each, n in zip(pattern, (ROWS, ROWS, 48), strict=True))
    expected = {
        "current": entering @ weight.T,
        "weight_gradient": cotangent.T @ entering,
        "input_gradient": cotangent @ weight,
    }
    for _ in range(3):  # and it does so every time
        for product, right in expected.items():
            got = runs[product]()
            assert str(got.dtype).removeprefix("torch.") == dtype
            got = np.asarray(got.float() if name == "torch" else got, np.float64)
            assert np.abs(got - right).max() <= max(tolerance, 1e-5) * np.abs(right).max()
    assert runs["call"]().item() == 1.0
    copied = runs["copy"]()
    assert copied.nbytes == 1000 and bool((copied == 1).all())


@pytest.mark.parametrize("name", ["numpy", "torch", "jax"])
def test_product_reuses_its_output_memory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So does the copy. Otherwise each call would wait for the system to find and clear fresh pages.

    oneDNN's product in torch has no argument for its output, so it counts only where it is faster even so.
    """
    if name == "torch":
        from snnbench.kernels import onednn

        monkeypatch.setattr(onednn, "is_faster", lambda: False)
    runs = open_backend(name, CASE).peaks(*operands(CASE, PATTERN_ROWS)[""], 1000, ROWS)
    address: Callable[[Any], int] = {
        "numpy": lambda array: array.ctypes.data,
        "torch": lambda tensor: tensor.data_ptr(),
        "jax": lambda array: array.unsafe_buffer_pointer(),
    }[name]
    for run in runs.values():
        held = [
            (output := run(), address(output)) for _ in range(4)
        ]  # held, so that no output's memory is free for the next
        assert len({where for _, where in held}) == 1


def test_products_of_jax_are_compiled_once_for_all_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a card: its compiler tunes each for seconds. A damaged program is compiled again."""
    from snnbench.backends.jax import programs

    written: list[Any] = []
    serialize = programs.serialize_executable.serialize
    monkeypatch.setattr(
        programs.serialize_executable, "serialize", lambda each: written.append(each) or serialize(each)
    )
    monkeypatch.setenv(programs.FOLDER, str(tmp_path / "programs"))

    def compiled() -> int:
        """The programs that a worker compiles; a later look finds those of the first."""
        monkeypatch.setattr(programs, "_of_process", {})
        backend, pattern, before = open_backend("jax", CASE), operands(CASE, PATTERN_ROWS)[""], len(written)
        runs = backend.peaks(*pattern, 1000, ROWS), backend.peaks(*pattern, 1000, ROWS)
        for each in runs:
            expected = np.resize(pattern[0], (ROWS, 48)) @ np.resize(pattern[2], (48, 48)).T
            assert np.allclose(each["current"](), expected, atol=1e-4)
        return len(written) - before

    assert compiled() == 3
    assert compiled() == 0
    next((tmp_path / "programs").iterdir()).write_bytes(b"torn")
    assert compiled() == 1
    assert len(list((tmp_path / "programs").iterdir())) == 3, "nothing half written is left"
