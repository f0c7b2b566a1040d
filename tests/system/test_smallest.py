"""Tests of every workload at a small size, in one run by a real library in its environment."""

from pathlib import Path

import pytest

from snnbench import checking, workloads
from tests.managed import recorded

pytestmark = pytest.mark.libraries

HEAD = """
name = "smallest"
analysis = "Every workload at a small size."
baseline = "torch-loop"

[protocol]
phases = ["{phase}"]
trials = 1
memory_trials = 0
warmup_passes = 1
repetitions = 3
min_repetition_ms = 1.0
max_phase_seconds = 1.0
timeout_seconds = 120.0
check_seconds = 1.0
seed = 0
remeasure = 0

[case]
device = "cpu"
precision = "ieee"
dtype = "float32"
threshold = 1.0
surrogate = "fast_sigmoid"
slope = 1.0
seed = 1
"""
PASSES = """
[[sweep]]
name = "layer"
workload = "linear_lif"
profile = "subtract"
neurons = 32
batch = 4
time_steps = 20
layers = 1
beta = 0.9
input_kind = "spikes"
input_rate = 0.1
input_gradient = true
libraries = ["torch-loop"]

[[sweep]]
name = "layers"
profile = "zero"
widths = [32, 24, 16]
alpha = 0.5
batch = 4
time_steps = 20
beta = 0.9
input_kind = "spikes"
input_rate = 0.2
input_gradient = true
libraries = ["torch-loop"]

[[sweep]]
name = "neurons"
workload = "lif"
profile = "subtract"
neurons = 256
batch = 4
time_steps = 20
beta = 0.9
libraries = ["torch-loop"]

[[sweep]]
name = "devices"
workload = "lif_devices"
profile = "zero-attached"
devices = 1
threads = 1
neurons = 1000
batch = 4
time_steps = 16
beta = 0.2
libraries = ["fused-devices/temporal"]

[[sweep]]
name = "network"
workload = "network"
model = "convolutional"
image = "mnist"
input_rate = 0.2
normalisation = "frozen"
profile = "subtract"
width = 8
batch = 2
time_steps = 4
beta = 0.9
libraries = ["torch-loop"]

[[sweep]]
name = "graph"
workload = "nir"
graph = "recurrent"
dt = 1e-3
amplitude = 1.0
input_rate = 0.2
profile = "zero"
batch = 4
time_steps = 40
libraries = ["torch-loop"]
"""
EPOCHS = """
[[sweep]]
name = "loading"
workload = "loading"
profile = "subtract"
data = "generated-ssc"
samples = 60
batch = 20
time_steps = 100
strategy = "naive"
workers = 0
width = 128
layers = 3
beta = 0.9375
libraries = ["torch-loop"]

[[sweep]]
name = "training"
workload = "training"
profile = "subtract"
data = "generated-ssc"
samples = 60
batch = 20
time_steps = 100
strategy = "memory"
workers = 0
width = 128
layers = 3
optimiser = "adam"
learning_rate = 0.001
beta = 0.9375
libraries = ["torch-loop"]
"""


def test_every_workload_is_proved_and_timed(tmp_path: Path) -> None:
    timed = set()
    for phase, sweeps in (("train", PASSES), ("epoch", EPOCHS)):
        config, recording = tmp_path / f"{phase}.toml", tmp_path / phase
        config.write_text(HEAD.replace("{phase}", phase) + sweeps, encoding="utf-8")
        for record in recorded(str(config), recording):
            assert record.outcome.verdict == "exact", (record.case, record.outcome)
            assert set(record.phases) == {phase}
            timed.add(record.case.workload)
        assert checking.check(recording) == []
    assert timed == set(workloads.WORKLOADS)
