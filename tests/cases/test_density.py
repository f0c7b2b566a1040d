"""Tests of the shares of numbers that are not 0 in the values of a network."""

import numpy as np

from snnbench.cases.density import densities
from snnbench.cases.operations import Flatten, Linear, Neurons, Operation, Sum
from snnbench.cases.windows import WindowSum

NETWORK: list[Operation] = [
    Linear(name="currents", of=("input",), shape=(4,), inputs=3),
    Neurons(name="hidden", of=("currents",), shape=(4,)),
    Neurons(name="unknown", of=("hidden",), shape=(4,)),
    Sum(name="both", of=("hidden", "input"), shape=(4,)),
    WindowSum(name="pooled", of=("hidden",), shape=(2,), size=(2,), stride=(2,), padding=(0,)),
    Flatten(name="flat", of=("pooled",), shape=(2,)),
]


def test_spikes_keep_their_share_until_a_product_mixes_them() -> None:
    shares = densities(NETWORK, 0.3, {"hidden": 0.1})
    assert shares == {
        **{"input": 0.3, "currents": 1.0, "hidden": 0.1, "unknown": 1.0},
        **{"both": 0.1, "pooled": 0.1, "flat": 0.1},
    }


def test_windows_have_no_smaller_share_than_their_spikes() -> None:
    spikes = (np.random.default_rng(1).random((50, 1, 40)) < 0.1).astype(np.float64)
    pooled = WindowSum(name="pooled", of=("hidden",), shape=(1, 20), size=(2,), stride=(2,), padding=(0,))
    assert (pooled.value([spikes], []) != 0).mean() >= (spikes != 0).mean()
