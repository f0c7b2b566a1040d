# /// script
# requires-python = ">=3.11"
# dependencies = ["pygenn==5.4.0", "numpy==2.4.6"]
#
# [tool.uv]
# override-dependencies = ["pygenn ; python_version < '3'"]
# ///
"""GeNN: C++ for one CPU thread, generated from a three-line neuron model and stepped through time from Python.

A `SpikeSourceArray` feeds spikes through dense synapses. Each synapse takes one step, so the neurons of a layer wait
until the first input can arrive, and a pass has one more step per layer. On a CPU GeNN has no batches, so samples run
one by one. GeNN's own form of spikes is times and numbers of neurons; a pass includes the conversion to and from
arrays. There is no backward pass, so an attached reset equals a detached one.
Docs: https://genn-team.github.io/genn/
"""

import itertools
import tempfile

import numpy as np

from snnbench.adapter import Unavailable, Unsupported, require
from snnbench.backends.numpy import Network

BACKEND = "numpy"
ORDER = "BNT"
DEVICES = ("cpu",)
EXACT = ("subtract", "zero", "subtract-detached", "zero-attached", "none")
INFERENCE_ONLY = "mlGeNN trains GeNN networks by EventProp and e-prop: neither backpropagates through a surrogate"
NEEDS = (
    "PyGeNN, built from its source at https://github.com/genn-team/genn (tag 5.4.0, with a C++ compiler, make and "
    "libffi), and `--env current`"
)

try:
    import pygenn
except ImportError as error:
    raise Unavailable(f"needs {NEEDS}") from error

RESET_CODE = {"subtract": "V -= Threshold;", "zero": "V = 0.0;", "none": ""}
MODEL_NUMBERS = itertools.count()


def build(case, weights, variant):
    if not weights:
        raise Unsupported("GeNN's neurons get their current from synapses")
    require(case, "SpikeSourceArray emits spikes only", input_kind="spikes")
    # Without optimize_code GeNN turns all optimisation of its C++ compiler off.
    model = pygenn.GeNNModel(
        {"float32": "float", "float64": "double"}[case.dtype],
        f"snnbench_{next(MODEL_NUMBERS)}",
        backend="single_threaded_cpu",
        optimize_code=True,
    )
    model.dt = 1.0
    no_spikes = {"startSpike": np.zeros(case.entering), "endSpike": np.zeros(case.entering)}
    spike_source = model.add_neuron_population("entering", case.entering, "SpikeSourceArray", {}, no_spikes)
    spike_source.extra_global_params["spikeTimes"].set_init_values(np.zeros(case.entering * case.time_steps))
    neuron = pygenn.create_neuron_model(
        "lif",
        params=["Beta", "Threshold", "Start"],
        vars=[("V", "scalar"), ("Bias", "scalar", pygenn.VarAccess.READ_ONLY)],
        sim_code="V = (t < Start) ? 0.0 : (Beta * V) + Isyn + Bias;",
        threshold_condition_code="V >= Threshold",
        reset_code=RESET_CODE[case.reset],
    )
    source = spike_source
    for number, (weight, bias) in enumerate(weights, start=1):
        parameters = {"Beta": case.beta, "Threshold": case.threshold, "Start": number}
        layer = model.add_neuron_population(f"layer_{number}", len(bias), neuron, parameters, {"V": 0.0, "Bias": bias})
        synapse = pygenn.init_weight_update("StaticPulse", {}, {"g": weight.T.ravel()})
        model.add_synapse_population(
            f"to_{number}", "DENSE", source, layer, synapse, pygenn.init_postsynaptic("DeltaCurr")
        )
        source = layer
    source.spike_recording_enabled = True
    latency_steps = len(weights)
    with tempfile.TemporaryDirectory() as folder:
        model.build(folder)
        model.load(num_recording_timesteps=case.time_steps + latency_steps)

    def forward(x):
        spikes = np.zeros((len(x), case.neurons, case.time_steps), x.dtype)
        for sample, out in zip(x, spikes, strict=True):
            neurons, times = np.nonzero(sample)
            ends = np.cumsum(np.bincount(neurons, minlength=case.entering))
            spike_source.extra_global_params["spikeTimes"].view[: len(times)] = times
            spike_source.vars["endSpike"].view[:] = ends
            spike_source.vars["startSpike"].view[0] = 0
            spike_source.vars["startSpike"].view[1:] = ends[:-1]
            for array in (spike_source.extra_global_params["spikeTimes"], *spike_source.vars.values()):
                array.push_to_device()
            model.timestep = 0
            for _ in range(case.time_steps + latency_steps):
                model.step_time()
            model.pull_recording_buffers_from_device()
            ((times, neurons),) = source.spike_recording_data
            out[neurons, times.astype(np.int64) - latency_steps] = 1
        return spikes, None

    return Network(forward, backward=None)
