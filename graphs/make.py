# /// script
# requires-python = ">=3.11"
# dependencies = ["nir==1.0.8", "numpy==2.4.6", "h5py==3.16.0"]
# ///
"""The NIR graphs in this folder, written by the `nir` package: `uv run graphs/make.py FOLDER`.

The first six have 24 inputs (2 images of 8 x 8 pixels for the convolution), and one layer of neurons; `readout` has an
LI behind a second layer. The others have what graphs of users have: pools and Flatten, recurrence, a graph in a graph,
a time constant for each neuron, and a convolution of sequences. Weights come from a seed, and their mean is above 0, so
that neurons fire. The time constants suit steps of 0.1 ms and of 1 ms. The LI has a longer one, so that an importer
that takes it as steps shows its decay.

A v_reset of 0 is left out of the files, for it is NIR's default: nir 1.0.4, which two libraries require, has no v_reset
and reads no file with it.
"""

import sys
from itertools import pairwise
from pathlib import Path

import h5py
import nir
import numpy as np

INPUTS, NEURONS = 24, 16
TAU_S, TAU_SYN_S, TAU_OF_LI_S = 0.01, 0.005, 0.5
INPUT_RATE, HIDDEN_RATE = 0.2, 0.06
"""Spikes per step that weights are drawn for."""
FIXED_STEP_S = 1e-4
"""Importers that refuse other parameters want r = tau_mem / dt and w_in = tau_syn / dt for this dt."""


def full(value: float, shape: tuple[int, ...] = (NEURONS,)) -> np.ndarray:
    return np.full(shape, value, np.float32)


def affine() -> nir.Affine:
    random = np.random.default_rng(1)
    weight = random.normal(0.2, 0.3, (NEURONS, INPUTS)).astype(np.float32)
    return nir.Affine(weight=weight, bias=random.normal(0.1, 0.1, NEURONS).astype(np.float32))


def chain(*nodes: nir.NIRNode) -> nir.NIRGraph:
    """The nodes in a row, between an input and an output."""
    names = ("input", "map", "neurons", "output")
    return nir.NIRGraph(nodes=dict(zip(names, nodes, strict=True)), edges=list(pairwise(names)))


def dense(neurons: nir.NIRNode) -> nir.NIRGraph:
    ends = nir.Input({"input": np.array([INPUTS])}), nir.Output({"output": np.array([NEURONS])})
    return chain(ends[0], affine(), neurons, ends[1])


def lif(r: float = 1.0, v_leak: float = 0.0, v_reset: float = 0.0, shape: tuple[int, ...] = (NEURONS,)) -> nir.LIF:
    return nir.LIF(
        tau=full(TAU_S, shape),
        r=full(r, shape),
        v_leak=full(v_leak, shape),
        v_threshold=full(1.0, shape),
        v_reset=full(v_reset, shape),
    )


def cubalif() -> nir.CubaLIF:
    return nir.CubaLIF(
        tau_syn=full(TAU_SYN_S),
        tau_mem=full(TAU_S),
        r=full(TAU_S / FIXED_STEP_S),
        v_leak=full(0.0),
        v_threshold=full(1000.0),
        w_in=full(TAU_SYN_S / FIXED_STEP_S),
    )


def convolution() -> nir.NIRGraph:
    random = np.random.default_rng(2)
    node = nir.Conv2d(
        input_shape=(8, 8),
        weight=random.normal(0.2, 0.3, (4, 2, 3, 3)).astype(np.float32),
        stride=(1, 1),
        padding=(1, 1),
        dilation=(1, 1),
        groups=1,
        bias=random.normal(0.1, 0.1, 4).astype(np.float32),
    )
    ends = nir.Input({"input": np.array([2, 8, 8])}), nir.Output({"output": np.array([4, 8, 8])})
    return chain(ends[0], node, lif(shape=(4, 8, 8)), ends[1])


def readout() -> nir.NIRGraph:
    """A layer of neurons, and integrators that read it."""
    integrators = nir.LI(tau=full(TAU_OF_LI_S, (10,)), r=full(1.0, (10,)), v_leak=full(0.0, (10,)))
    second = nir.Linear(weight=drawn(15, 10, NEURONS, rate=HIDDEN_RATE))
    return row((INPUTS,), (10,), fc1=affine(), lif=lif(), fc2=second, li=integrators)


def drawn(seed: int, *shape: int, rate: float = INPUT_RATE) -> np.ndarray:
    """Weights whose sums are 1.6 on average, for inputs of so many spikes per step."""
    mean = 1.6 / (rate * np.prod(shape[1:]))
    return np.random.default_rng(seed).normal(mean, mean, shape).astype(np.float32)


def image_convolution(seed: int, inputs: int, channels: int, side: int, rate: float) -> nir.Conv2d:
    return nir.Conv2d(
        input_shape=(side, side),
        weight=drawn(seed, channels, inputs, 3, 3, rate=rate),
        stride=(1, 1),
        padding=(1, 1),
        dilation=(1, 1),
        groups=1,
        bias=np.zeros(channels, np.float32),
    )


def pool(kind: type) -> nir.NIRNode:
    two, nothing = np.array([2, 2]), np.array([0, 0])
    return kind(kernel_size=two, stride=two, padding=nothing)


def row(inputs: tuple[int, ...], outputs: tuple[int, ...], **nodes: nir.NIRNode) -> nir.NIRGraph:
    """The nodes in a row, between an input and an output of these shapes."""
    ends = {"input": nir.Input({"input": np.array(inputs)}), "output": nir.Output({"output": np.array(outputs)})}
    names = ("input", *nodes, "output")
    return nir.NIRGraph(nodes={**ends, **nodes}, edges=list(pairwise(names)), type_check=False)


def images() -> nir.NIRGraph:
    """Two convolutions with their pools, and a layer of ten neurons."""
    return row(
        (2, 16, 16),
        (10,),
        conv1=image_convolution(3, 2, 8, 16, INPUT_RATE),
        lif1=lif(shape=(8, 16, 16)),
        sum_pool=pool(nir.SumPool2d),
        conv2=image_convolution(4, 8, 16, 8, 4 * HIDDEN_RATE),
        lif2=lif(shape=(16, 8, 8)),
        average_pool=pool(nir.AvgPool2d),
        flatten=nir.Flatten({"input": np.array([16, 4, 4])}, start_dim=0, end_dim=-1),
        fc=nir.Linear(weight=drawn(5, 10, 256, rate=HIDDEN_RATE)),
        lif3=lif(shape=(10,)),
    )


def recurrent() -> nir.NIRGraph:
    """A layer whose neurons get their own spikes, and a layer after it."""
    graph = row(
        (INPUTS,),
        (10,),
        fc1=nir.Affine(weight=drawn(6, 64, INPUTS), bias=np.zeros(64, np.float32)),
        lif1=lif(shape=(64,)),
        fc2=nir.Linear(weight=drawn(7, 10, 64, rate=HIDDEN_RATE)),
        lif2=lif(shape=(10,)),
    )
    graph.nodes["own"] = nir.Linear(weight=drawn(8, 64, 64) - np.float32(8 / 64))
    graph.edges += [("lif1", "own"), ("own", "lif1")]
    return graph


def nested() -> nir.NIRGraph:
    """Two layers that are a graph each."""
    first = row((INPUTS,), (48,), fc=nir.Linear(weight=drawn(9, 48, INPUTS)), lif=lif(shape=(48,)))
    second = row((48,), (10,), fc=nir.Linear(weight=drawn(10, 10, 48, rate=HIDDEN_RATE)), lif=lif(shape=(10,)))
    return row((INPUTS,), (10,), first=first, second=second)


def own_constants() -> nir.NIRGraph:
    """A layer whose neurons each have their own time constant, resistance, leak, threshold and reset."""
    random = np.random.default_rng(11)

    def between(low: float, high: float) -> np.ndarray:
        return random.uniform(low, high, 64).astype(np.float32)

    neurons = nir.LIF(
        tau=between(0.005, 0.02),
        r=between(0.8, 1.5),
        v_leak=between(-0.2, 0.2),
        v_threshold=between(0.6, 1.2),
        v_reset=between(-0.2, 0.2),
    )
    return row((INPUTS,), (64,), fc=nir.Linear(weight=drawn(12, 64, INPUTS)), lif=neurons)


def sequences() -> nir.NIRGraph:
    """A convolution of two channels of 64 places, and a layer after it."""
    node = nir.Conv1d(
        input_shape=64,
        weight=drawn(13, 8, 2, 5),
        stride=2,
        padding=2,
        dilation=1,
        groups=1,
        bias=np.zeros(8, np.float32),
    )
    return row(
        (2, 64),
        (10,),
        conv=node,
        lif1=lif(shape=(8, 32)),
        flatten=nir.Flatten({"input": np.array([8, 32])}, start_dim=0, end_dim=-1),
        fc=nir.Linear(weight=drawn(14, 10, 256, rate=HIDDEN_RATE)),
        lif2=lif(shape=(10,)),
    )


def graphs() -> dict[str, nir.NIRGraph]:
    """Every graph by the name of its file."""
    return {
        "lif": dense(lif()),
        "lif-resistance": dense(lif(r=2.5)),
        "lif-leak": dense(lif(v_leak=0.25, v_reset=-0.5)),
        "cubalif": dense(cubalif()),
        "convolution": convolution(),
        "readout": readout(),
        "images": images(),
        "recurrent": recurrent(),
        "nested": nested(),
        "own-constants": own_constants(),
        "sequences": sequences(),
    }


def leave_out_zeros(group: h5py.Group) -> None:
    """Take each v_reset of 0 out of a group."""
    for name, item in list(group.items()):
        if isinstance(item, h5py.Group):
            leave_out_zeros(item)
        elif name == "v_reset" and not item[()].any():
            del group[name]


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, graph in graphs().items():
        path = folder / f"{name}.nir"
        nir.write(path, graph)
        with h5py.File(path, "r+") as file:
            leave_out_zeros(file)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
