# /// script
# requires-python = ">=3.11"
# dependencies = ["nir==1.0.8", "numpy==2.4.6", "h5py==3.16.0"]
# ///
"""The NIR graphs in this folder, written by the `nir` package: `uv run graphs/make.py FOLDER`.

Each graph has 24 inputs (2 images of 8 x 8 pixels for the convolution), and one layer of neurons. Weights come from a
seed, and their mean is above 0, so that neurons fire. The time constants suit steps of 0.1 ms and of 1 ms. The LI has
a longer one, so that an importer that takes it as steps shows its decay.

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


def graphs() -> dict[str, nir.NIRGraph]:
    """Every graph by the name of its file."""
    return {
        "lif": dense(lif()),
        "lif-resistance": dense(lif(r=2.5)),
        "lif-leak": dense(lif(v_leak=0.25, v_reset=-0.5)),
        "li": dense(nir.LI(tau=full(TAU_OF_LI_S), r=full(1.0), v_leak=full(0.0))),
        "cubalif": dense(cubalif()),
        "convolution": convolution(),
    }


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, graph in graphs().items():
        path = folder / f"{name}.nir"
        nir.write(path, graph)
        with h5py.File(path, "r+") as file:
            neurons = file["node/nodes/neurons"]
            if "v_reset" in neurons and not neurons["v_reset"][()].any():
                del neurons["v_reset"]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
