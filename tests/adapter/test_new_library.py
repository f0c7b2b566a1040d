"""Tests of a new library in one file, which a user names on the command line."""

import csv
import io
from pathlib import Path

from tests.fakes import write
from tests.sweep import recordings, run_arguments, snnbench, write_config

NEW_LIBRARY = '''# /// script
# requires-python = ">=3.11"
# dependencies = ["numpy"]
# ///
"""shortlif: a leaky integrate-and-fire neuron in plain NumPy, backward pass included."""

import numpy as np

from snnbench.adapter import require
from snnbench.backends.numpy import Network

BACKEND = "numpy"


def spike_through_time(current, case):
    """Potentials and spikes [T, B, N]."""
    potential, spikes, v = np.empty_like(current), np.empty_like(current), 0.0
    for t, x in enumerate(current):
        potential[t] = case.beta * v + x
        spikes[t] = potential[t] >= case.threshold
        v = potential[t] - case.threshold * spikes[t]
    return potential, spikes


def back_through_time(gradient, potential, case):
    """The gradient of the input current."""
    result, gv = np.empty_like(gradient), 0.0
    for t in reversed(range(len(gradient))):
        surrogate = 1 / (1 + np.abs(potential[t] - case.threshold)) ** 2
        result[t] = gv + (gradient[t] - case.threshold * gv) * surrogate
        gv = case.beta * result[t]
    return result


def build(case, weights, variant):
    require(case, "shortlif subtracts", profile="subtract")
    require(case, "shortlif has one surrogate", surrogate="fast_sigmoid", slope=1.0)

    def forward(x):
        kept = []
        for weight, bias in weights:
            potential, spikes = spike_through_time(x @ weight.T + bias, case)
            kept.append((x, potential))
            x = spikes
        return x, kept

    def backward(kept, gradient):
        by_weight, by_bias = [], []
        for (weight, _), (x, potential) in zip(reversed(weights), reversed(kept), strict=True):
            current = back_through_time(gradient, potential, case)
            by_weight.insert(0, np.tensordot(current, x, ((0, 1), (0, 1))))
            by_bias.insert(0, current.sum((0, 1)))
            gradient = current @ weight
        return by_weight, by_bias, gradient

    return Network(forward, backward)
'''


def test_new_library_is_one_file_under_60_lines(tmp_path: Path) -> None:
    """The file lies in its own folder, is named on the command line, and is measured as exact."""
    assert len(NEW_LIBRARY.splitlines()) < 60
    mine = write(tmp_path, NEW_LIBRARY, "shortlif")
    config = write_config(tmp_path, ["shortlif"], trials=1)
    done = snnbench(tmp_path, *run_arguments(config, [mine], "--set", "case.layers=[1,2]"))
    assert done.returncode == 0, done.stderr
    shown = [[cell.strip() for cell in line.split("|")] for line in done.stdout.splitlines() if "| shortlif |" in line]
    assert [(row[3], row[5]) for row in shown] == [("exact", "1.00")] * 2, "one layer and two"
    (recording,) = recordings(tmp_path)
    rows = list(csv.DictReader(io.StringIO(snnbench(tmp_path, "report", recording, "--format", "csv").stdout)))
    times = {(row["layers"], row["phase"]) for row in rows if row["metric"] == "time" and float(row["value"]) > 0}
    assert times == {(layers, phase) for layers in "12" for phase in ("inference", "forward", "backward", "train")}
    assert {row["verdict"] for row in rows} == {"exact"}
