# /// script
# requires-python = ">=3.11"
# dependencies = ["pygenn==5.4.0", "numpy==2.4.6"]
#
# [tool.uv]
# override-dependencies = ["pygenn ; python_version < '3'"]
# ///
"""GeNN: a neuron model of three lines, of which it generates C++ for one CPU thread, stepped through time from Python.

Spikes come from its `SpikeSourceArray` over dense synapses, each of which takes one step: neurons wait until the first
input can have come, and a pass has as many steps more as there are layers. On a CPU GeNN knows no batches: samples run
one by one. What spikes cost as times and numbers of neurons, GeNN's own form, to and from arrays, is part of the pass.
Attached or detached, a reset is the same here, for there is no backward pass.
Docs: https://genn-team.github.io/genn/
"""

import itertools
import tempfile

import numpy as np

from snnbench.adapter import Unavailable, require
from snnbench.backends.numpy import Network

BACKEND = "numpy"
ORDER = "BNT"
DEVICES = ("cpu",)
EXACT = ("subtract", "zero", "subtract-detached", "zero-attached", "none")
INFERENCE_ONLY = "its training is mlGeNN's, by EventProp and e-prop: neither is backpropagation through a surrogate"
NEEDS = (
    "PyGeNN, built from its source at https://github.com/genn-team/genn (tag 5.4.0, with a C++ compiler, make and "
    "libffi), and `--env current`"
)

try:
    import pygenn
except ImportError as error:
    raise Unavailable(f"needs {NEEDS}") from error

RESET_CODE = {"subtract": "V -= Threshold;", "zero": "V = 0.0;", "none": ""}
NUMBERS = itertools.count()


def build(case, weights, variant):
    require(case, "SpikeSourceArray emits spikes", input_kind="spikes")
    # Without optimize_code its compiler is told to optimise nothing.
    model = pygenn.GeNNModel(
        {"float32": "float", "float64": "double"}[case.dtype],
        f"snnbench_{next(NUMBERS)}",
        backend="single_threaded_cpu",
        optimize_code=True,
    )
    model.dt = 1.0
    nothing = {"startSpike": np.zeros(case.neurons), "endSpike": np.zeros(case.neurons)}
    entering = model.add_neuron_population("entering", case.neurons, "SpikeSourceArray", {}, nothing)
    entering.extra_global_params["spikeTimes"].set_init_values(np.zeros(case.neurons * case.time_steps))
    neuron = pygenn.create_neuron_model(
        "lif",
        params=["Beta", "Threshold", "Start"],
        vars=[("V", "scalar"), ("Bias", "scalar", pygenn.VarAccess.READ_ONLY)],
        sim_code="V = (t < Start) ? 0.0 : (Beta * V) + Isyn + Bias;",
        threshold_condition_code="V >= Threshold",
        reset_code=RESET_CODE[case.reset],
    )
    source = entering
    for number, (weight, bias) in enumerate(weights, start=1):
        parameters = {"Beta": case.beta, "Threshold": case.threshold, "Start": number}
        layer = model.add_neuron_population(
            f"layer_{number}", case.neurons, neuron, parameters, {"V": 0.0, "Bias": bias}
        )
        synapse = pygenn.init_weight_update("StaticPulse", {}, {"g": weight.T.ravel()})
        model.add_synapse_population(
            f"to_{number}", "DENSE", source, layer, synapse, pygenn.init_postsynaptic("DeltaCurr")
        )
        source = layer
    source.spike_recording_enabled = True
    late = len(weights)
    with tempfile.TemporaryDirectory() as folder:
        model.build(folder)
        model.load(num_recording_timesteps=case.time_steps + late)

    def forward(x):
        spikes = np.zeros_like(x)
        for sample, out in zip(x, spikes, strict=True):
            neurons, times = np.nonzero(sample)
            ends = np.cumsum(np.bincount(neurons, minlength=case.neurons))
            entering.extra_global_params["spikeTimes"].view[: len(times)] = times
            entering.vars["endSpike"].view[:] = ends
            entering.vars["startSpike"].view[0] = 0
            entering.vars["startSpike"].view[1:] = ends[:-1]
            for array in (entering.extra_global_params["spikeTimes"], *entering.vars.values()):
                array.push_to_device()
            model.timestep = 0
            for _ in range(case.time_steps + late):
                model.step_time()
            model.pull_recording_buffers_from_device()
            ((times, neurons),) = source.spike_recording_data
            out[neurons, times.astype(np.int64) - late] = 1
        return spikes, None

    return Network(forward, backward=None)
