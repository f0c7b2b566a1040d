"""Tests of the CUDA kernels: run on the CPU thread by thread, and on a GPU.

On the CPU an emulator (emulator.py) takes the place of `lif_cuda.launch`. So the code that chooses, names and calls a
kernel is tested, too. test_cuda_launch.py tests `lif_cuda.launch` itself.
"""

import ctypes
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from snnbench.kernels import lif_cuda, recurrent_steps
from snnbench.kernels.lif_cuda import LARGE, MEDIUM, SMALL, Strip
from snnbench.kernels.neuron import Neuron
from tests import contract, oracle
from tests.contract import PAIRS, Kernels
from tests.emulator import Emulator
from tests.oracle import FORMATS, NEURONS

STRIPS = [Strip(vector=1, rows=3, threads=4), Strip(2, 2, 4), Strip(4, 3, 2)]
COLUMNS = {1: 37, 2: 38, 4: 36}  # vector -> columns: several blocks, the last one with idle threads
ON_GPU = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")]


def strip_of(neuron: Neuron) -> Strip:
    """Every third kind of neuron has the same strip: each vector meets each reset, detached or not."""
    return STRIPS[NEURONS.index(neuron) % 3]


def backward_strip_of(neuron: Neuron) -> Strip:
    """The strip of a backward pass with all sums, which lif_cuda.backward_strip gives half of the rows."""
    strip = strip_of(neuron)
    return strip if strip.vector == 1 else replace(strip, rows=strip.rows // 2)


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Emulator:
    """An emulator with the builds that most tests need, compiled at once: faster than one by one."""
    made = Emulator(tmp_path_factory.mktemp("cuda"))
    sums = (True, True, True)
    made.compile(
        lif_cuda.backward_build(
            neuron.reset, neuron.detach_reset, neuron.surrogate, stored, kept, sums, backward_strip_of(neuron)
        )
        for neuron in NEURONS
        for stored, kept in PAIRS
    )
    made.compile(
        lif_cuda.forward_build(reset, stored, kept, biased, strip)
        for reset in ("subtract", "zero")
        for stored, kept in [*PAIRS, *((stored, None) for stored in FORMATS)]
        for biased in (False, True)
        for strip in STRIPS
    )
    return made


@pytest.fixture(params=["emulated", pytest.param("cuda", marks=ON_GPU)])
def kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Kernels:
    """The kernels with lif_cuda.py's own strips."""
    if request.param == "cuda":
        return Kernels(lif_cuda, "cuda")
    monkeypatch.setattr(lif_cuda, "launch", request.getfixturevalue("emulator").launch)
    return Kernels(lif_cuda)


@pytest.fixture
def cut(kernels: Kernels, monkeypatch: pytest.MonkeyPatch) -> Callable[[Strip], Kernels]:
    """Kernels with small strips: a small problem has several strips, and the last one is ragged."""

    def chosen(strip: Strip) -> Kernels:
        monkeypatch.setattr(lif_cuda, "FORWARD", (strip,) * 3)
        monkeypatch.setattr(lif_cuda, "BACKWARD", (strip,) * 3)
        return replace(kernels, columns=COLUMNS[strip.vector])

    return chosen


Cut = Callable[[Strip], Kernels]


@pytest.mark.parametrize("strip", STRIPS, ids=str)
@pytest.mark.parametrize("reset", ["subtract", "zero"])
@pytest.mark.parametrize("biased", [True, False])
def test_forward_is_the_eager_loop_bit_for_bit(cut: Cut, strip: Strip, reset: str, biased: bool) -> None:
    contract.check_forward(cut(strip), replace(NEURONS[0], reset=reset), biased)


@pytest.mark.parametrize("neuron", NEURONS, ids=oracle.identifier)
def test_backward_is_autograd_in_float64(cut: Cut, neuron: Neuron) -> None:
    contract.check_backward(cut(strip_of(neuron)), neuron)


@pytest.mark.parametrize("neuron", NEURONS[:6], ids=oracle.identifier)
def test_synaptic_current_is_that_of_a_filter(cut: Cut, neuron: Neuron) -> None:
    contract.check_synapse(cut(STRIPS[NEURONS.index(neuron) % 3]), neuron)


@pytest.mark.parametrize("neuron", NEURONS, ids=oracle.identifier)
def test_both_passes_are_the_plain_loop_in_float64(cut: Cut, neuron: Neuron) -> None:
    contract.check_both_passes(cut(strip_of(neuron)), neuron)


@pytest.mark.parametrize(
    ("size", "columns", "steps"), [(SMALL, 33, 70), (SMALL, 1, 1), (MEDIUM, 34, 17), (LARGE, 36, 9), (LARGE, 35, 33)]
)
def test_strips_as_they_are(
    kernels: Kernels, monkeypatch: pytest.MonkeyPatch, size: int, columns: int, steps: int
) -> None:
    """Strips of every size, on a small problem; the last one has an odd number of columns."""
    monkeypatch.setattr(lif_cuda, "size", lambda columns: size)
    contract.check_size(replace(kernels, steps=steps, columns=columns), NEURONS[0])


@pytest.mark.parametrize("strip", STRIPS, ids=str)
def test_samples_and_neurons_may_be_two_axes(cut: Cut, strip: Strip) -> None:
    contract.check_three_axes(cut(strip), NEURONS[STRIPS.index(strip)])


@pytest.mark.parametrize("stored", FORMATS)
def test_kept_may_overwrite_the_current_and_the_gradient_kept(cut: Cut, stored: torch.dtype) -> None:
    contract.check_in_place(cut(strip_of(NEURONS[0])), stored)


@pytest.mark.parametrize("strip", STRIPS, ids=str)
def test_memory_outside_the_outputs_is_unchanged(cut: Cut, strip: Strip) -> None:
    contract.check_nothing_else_is_written(cut(strip), NEURONS[STRIPS.index(strip)])


@pytest.mark.parametrize("strip", STRIPS, ids=str)
def test_rows_past_the_end_are_not_read(strip: Strip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    neuron, columns = NEURONS[0], COLUMNS[strip.vector]
    inputs = oracle.problem(7, columns)
    spikes, saved, gradient = (torch.empty_like(inputs.current) for _ in range(3))
    forward = lif_cuda.forward_build(neuron.reset, torch.float32, torch.float32, False, strip)
    backward = lif_cuda.backward_build(
        neuron.reset, neuron.detach_reset, neuron.surrogate, torch.float32, torch.float32, (False,) * 3, strip
    )
    emulator = Emulator(tmp_path)
    emulator.compile([forward, backward])
    library, _ = emulator.kernels[forward]
    for rows in (inputs.current, inputs.cotangent, saved):
        library.may_read(*map(ctypes.c_size_t, (rows.data_ptr(), rows.data_ptr() + rows.nbytes)))
    monkeypatch.setattr(lif_cuda, "launch", emulator.launch)
    monkeypatch.setattr(lif_cuda, "FORWARD", (strip,) * 3)
    monkeypatch.setattr(lif_cuda, "BACKWARD", (strip,) * 3)
    lif_cuda.forward(inputs.current, inputs.start, spikes, saved, neuron)
    lif_cuda.backward(inputs.cotangent, saved, inputs.carried, gradient, neuron)
    assert library.strays() == 0
    lif_cuda.forward(spikes, inputs.start, gradient, saved, neuron)
    assert library.strays() == spikes.numel() // strip.vector, "this array was not named"


@pytest.mark.parametrize("alpha", [0.0, 0.8])
def test_recurrent_layer_runs_the_kernel_step_by_step(
    emulator: Emulator, monkeypatch: pytest.MonkeyPatch, alpha: float
) -> None:
    monkeypatch.setattr(lif_cuda, "launch", emulator.launch)
    random, neuron = torch.Generator().manual_seed(3), Neuron(0.9, 1.0)
    current, cotangent = (torch.randn(6, 3, 8, generator=random) for _ in range(2))
    own = torch.randn(8, 8, generator=random)
    found = []
    for kernel in ("cuda", "torch"):
        spikes, kept = recurrent_steps.forward(current, own, alpha, neuron, kernel)
        found.append((spikes, recurrent_steps.backward(cotangent, kept, own, alpha, neuron, kernel)))
    (spikes, gradient), (expected, right) = found
    assert torch.equal(spikes, expected) and torch.allclose(gradient, right, rtol=1e-5, atol=1e-6)


def test_a_potential_on_the_threshold_fires(cut: Cut) -> None:
    contract.check_threshold(cut(STRIPS[0]))


def test_minus_zero_kept_did_not_fire(cut: Cut) -> None:
    contract.check_minus_zero(cut(STRIPS[0]))


@pytest.mark.parametrize(("steps", "columns"), [(0, 5), (5, 0), (0, 0)])
def test_empty_problem_changes_nothing(kernels: Kernels, steps: int, columns: int) -> None:
    contract.check_nothing_to_do(kernels, steps, columns)


def test_two_runs_agree_in_every_bit(cut: Cut) -> None:
    contract.check_runs_agree(cut(STRIPS[0]))


def test_vector_needs_aligned_columns_and_addresses() -> None:
    strip, whole = Strip(vector=4, rows=2, threads=8), torch.empty(2 * 8 + 1)
    rows = whole[:-1].view(2, 8)
    assert strip.fitting(8, (rows, None)) is strip
    assert strip.fitting(6, (rows, None)) == Strip(vector=1, rows=8, threads=8)
    assert strip.fitting(8, (rows, whole[1:].view(2, 8))) == Strip(vector=1, rows=8, threads=8)


def test_blocks_cover_all_columns() -> None:
    strip = Strip(vector=2, rows=2, threads=4)
    assert [strip.blocks(columns) for columns in (1, 8, 9, 16)] == [1, 1, 2, 2]


def test_a_format_that_has_no_kernel_is_named() -> None:
    with pytest.raises(ValueError, match=r"torch.float64: the kernel 'cuda' takes torch.float32"):
        lif_cuda.forward_build("zero", torch.float64, None, False, STRIPS[0])


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_both_passes_are_captured_on_another_stream() -> None:
    neuron, inputs = NEURONS[0], oracle.problem(40, 256)
    current, cotangent = inputs.current.cuda(), inputs.cotangent.cuda()
    spikes, saved, gradient = (torch.zeros_like(current) for _ in range(3))
    potential, carried = inputs.start.cuda(), inputs.carried.cuda()

    def both() -> None:
        lif_cuda.forward(current, potential, spikes, saved, neuron)
        lif_cuda.backward(cotangent, saved, carried, gradient, neuron)

    both()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        both()
    potential.copy_(inputs.start)
    carried.copy_(inputs.carried)
    for tensor in (spikes, gradient):
        tensor.fill_(7.0)
    graph.replay()
    assert torch.equal(spikes.cpu(), oracle.eager(inputs.current, inputs.start, neuron)[0])
    expected = oracle.gradients(neuron, saved.cpu(), inputs).current
    assert oracle.distance(gradient.cpu(), expected) < contract.FLOAT32_GRADIENT


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_offsets_do_not_end_at_32_bits() -> None:
    steps, columns = 3, 2**30 + 24
    current = torch.ones(steps, columns, dtype=torch.bfloat16, device="cuda")
    potential, spikes = torch.zeros(columns, device="cuda"), torch.zeros_like(current)
    lif_cuda.forward(current, potential, spikes, current, Neuron(0.5, 1.75))
    assert spikes[:, -1].tolist() == [0, 0, 1] and bool((spikes[2] == 1).all())
