# /// script
# requires-python = ">=3.11"
# dependencies = ["norse==1.1.0", "torch==2.13.0", "numpy==2.4.6"]
#
# [tool.uv]
# override-dependencies = ["torchvision ; python_version < '3'"]
#
# [tool.snnbench]
# nir = ["nir==1.0.8", "nirtorch==2.6"]
# ///
"""Norse: `LIFBoxCell` lifted over time, and the current-based `LIF` with a synapse that has no memory.

Norse integrates v' = v + dt * tau_mem_inv * (v_leak - v + i). With tau_mem_inv = (1 - beta) / dt the potential decays
by beta and the current is multiplied by 1 - beta, so the weights are divided by 1 - beta.
Docs: https://norse.github.io/norse/generated/norse.torch.module.lif_box.html
"""

from functools import partial

import norse.torch as norse
import torch
from norse.torch.functional.lif import LIFFeedForwardState, lif_feed_forward_integral
from norse.torch.functional.reset import reset_subtract, reset_value

from snnbench.adapter import Rule, Unsupported, require
from snnbench.backends.torch import Network, Neuron, SteppedNeuron, compiled, modules, stepped_network, trained

BACKEND = "torch"
VARIANTS = {
    "box": "Lift(LIFBoxCell), with any reset; LIFRecurrent, which includes its linear layer, where one is recurrent",
    "lif": "LIF, which has its own loop over time",
    "lift": "Lift(SequentialState(Linear, LIFCell, ...)), with all layers inside the loop over time",
    "integral": "functional.lif_feed_forward_integral",
    "compile-cell": "Lift(LIFBoxCell) with one step of the cell compiled",
    "defaults": "SequentialState(Linear, LIF()), all other arguments at their defaults",
}
EXACT = {
    "box": ("subtract", "zero", "subtract-detached", "zero-attached"),
    "lif": ("zero-attached",),
    "lift": ("zero-attached",),
    "integral": ("zero-attached",),
    "compile-cell": ("subtract", "zero", "subtract-detached", "zero-attached"),
}
RESETS = {
    "lif": "LIF resets to a value, with the gradient attached",
    "lift": "LIFCell resets to a value, with the gradient attached",
    "integral": "lif_feed_forward_integral resets to a value, with the gradient attached",
}
SYNAPTIC = {"lif": ("zero-attached",), "lift": ("zero-attached",)}
RECURRENT = {"box": ("zero",)}
TRAINED = {"box": ("threshold",)}
CHUNKS = {"box": True, "lif": True, "lift": True}
DEVIATION = {"defaults": "the synapse keeps 0.8 of its current per step; a tenth of the current charges the membrane"}
COMPILES = {"compile-cell": True}
WAYS = ("compile", "cuda-graph", "amp")
DT = 0.001
METHODS = {"fast_sigmoid": "super", "triangle": "triangle"}


def subtract_detached(spike, v, reset, threshold):
    return v - spike.detach() * threshold


def value_detached(spike, v, reset, threshold):
    return v - spike.detach() * (v - reset)


def rule(case, variant):
    if variant != "defaults":
        return None
    synapse_factor, charge_factor = 1 - DT * 200, DT * 100  # 200 and 100: LIFParameters' tau_syn_inv and tau_mem_inv
    return Rule(
        beta=1 - charge_factor,
        gain=charge_factor,
        synapse=synapse_factor,
        threshold=1.0,
        reset="zero",
        detach_reset=False,
        surrogate="fast_sigmoid",
        slope=1.0,
    )


def neuron(case, variant):
    if variant == "defaults":
        return Neuron(lambda neurons: first_output(norse.LIF()), joined=linear_and_defaults)
    only = "Norse's methods 'super' and 'triangle' are the fast sigmoid and the triangle with slope 1"
    require(case, only, surrogate=tuple(METHODS), slope=1.0)
    require(case, "Norse keeps the state of LIF in float32", dtype="float32")
    if case.beta >= 1:
        raise Unsupported("a neuron without a leak (beta >= 1) would need infinite weights")
    if variant == "lift":
        return SteppedNeuron(lambda neurons: cell(case), gain=1 / (1 - case.beta))
    layers = {
        "box": lambda neurons: first_output(norse.Lift(box_cell(case))),
        "compile-cell": lambda neurons: first_output(norse.Lift(compiled(box_cell(case)))),
        "lif": lambda neurons: first_output(norse.LIF(p=current_based(case), dt=DT)),
        "integral": lambda neurons: integral(case),
    }
    if case.chunk_steps:
        gain = 1 / (1 - case.beta)
        if variant == "lif":
            return Neuron(lambda neurons: norse.LIF(p=current_based(case), dt=DT), gain, chunk=norse.LIF.__call__)
        return Neuron(lambda neurons: norse.Lift(box_cell(case)), gain, chunk=next_steps)
    if case.trained_constants:
        require(case, "this adapter trains the constants of LIFBoxCell, not of LIFRecurrent", is_recurrent=False)
        training = partial(box_of_own_threshold, case)
        return Neuron(training, 1 / (1 - case.beta), constants=lambda layer: {"threshold": layer.threshold})
    return Neuron(layers[variant], gain=1 / (1 - case.beta))


def build(case, weights, variant):
    one_neuron = neuron(case, variant)
    if case.is_recurrent:
        return recurrent(case, weights, one_neuron)
    if variant != "lift":
        return one_neuron.stack(weights)
    linears = [layer.linear(one_neuron.gain) for layer in weights]
    network = norse.Lift(norse.SequentialState(*[module for linear in linears for module in (linear, cell(case))]))
    chunk = partial(next_steps, network)
    return Network(first_output(network), linears, one_neuron.gain, by_step=True, chunk=chunk)


def next_steps(lifted, x, state):
    """The next steps of a sequence, from the state that the steps before left."""
    return lifted((x, state))


def recurrent(case, weights, box):
    """LIFRecurrent, which detaches its reset, in recurrent layers. It has no bias, so its leak potential is one."""
    linears, own, steps = [layer.linear(box.gain) for layer in weights], [layer.own(box.gain) for layer in weights], []
    for linear, back in zip(linears, own, strict=True):
        if back is None:
            steps += [linear, box.layer(linear.out_features)]
            continue
        parameters = current_based(case)._replace(v_leak=linear.bias)
        module = norse.LIFRecurrent(linear.in_features, linear.out_features, parameters, dt=DT, autapses=True)
        module.input_weights, module.recurrent_weights = linear.weight, back.weight
        steps.append(from_zero(module))

    def forward(x):
        for step in steps:
            x = step(x)
        return x

    return Network(forward, linears, box.gain, recurrent=own)


def from_zero(module):
    """The spikes of LIFRecurrent from a state of zeros: its own begins at the leak potential."""

    def layer(entering):
        rest = entering.new_zeros(entering.shape[1], module.hidden_size)
        return module(entering, norse.LIFState(z=rest, v=rest, i=rest))[0]

    return layer


def linear_and_defaults(linear):
    return first_output(norse.SequentialState(linear, norse.LIF()))


def cell(case):
    return norse.LIFCell(p=current_based(case), dt=DT)


def first_output(module):
    return lambda current: module(current)[0]


def box_of_own_threshold(case, neurons):
    """Its decay cannot be trained so: its current is divided by 1 - beta."""
    threshold = trained(case, neurons)["threshold"]
    layer = first_output(norse.Lift(box_cell(case, threshold)))
    layer.threshold = threshold
    return layer


def box_cell(case, threshold=None):
    resets = {
        "subtract": reset_subtract,
        "zero-attached": reset_value,
        "subtract-detached": subtract_detached,
        "zero": value_detached,
    }
    parameters = norse.LIFBoxParameters(
        tau_mem_inv=torch.tensor((1 - case.beta) / DT, device=case.device),
        v_th=torch.tensor(case.threshold, device=case.device) if threshold is None else threshold,
        method=METHODS[case.surrogate],
        alpha=torch.tensor(1.0, device=case.device),
        reset_method=resets[case.profile],
    )
    return norse.LIFBoxCell(p=parameters, dt=DT)


def current_based(case):
    return norse.LIFParameters(
        tau_syn_inv=torch.tensor((1 - case.alpha) / DT, device=case.device),  # with 1 / DT the current lasts one step
        tau_mem_inv=torch.tensor((1 - case.beta) / DT, device=case.device),
        v_th=torch.tensor(case.threshold, device=case.device),
        method=METHODS[case.surrogate],
        alpha=torch.tensor(1.0, device=case.device),
    )


def integral(case):
    parameters = current_based(case)

    def layer(current):
        rest = torch.zeros_like(current[0])
        return lif_feed_forward_integral(current, LIFFeedForwardState(v=rest, i=rest), parameters, DT)[0]

    return layer


def from_nir(path, dt, batch):
    import nir
    from norse.torch.utils.import_nir import from_nir as import_graph

    return stepped_network(import_graph(nir.read(path), dt=dt))


def to_nir(layers, dt, path):
    import nir
    from norse.torch.utils.export_nir import to_nir as export

    def neurons_of(case, neurons):
        constants = {"v_th": torch.full((neurons,), case.threshold)}
        if case.beta == 1:
            return norse.IAFCell(p=norse.IAFParameters(**constants), dt=dt), 1.0
        constants |= {"v_leak": torch.zeros(neurons), "tau_mem_inv": torch.full((neurons,), (1 - case.beta) / dt)}
        if not case.alpha:
            return norse.LIFBoxCell(p=norse.LIFBoxParameters(**constants), dt=dt), 1 / (1 - case.beta)
        constants["tau_syn_inv"] = torch.full((neurons,), (1 - case.alpha) / dt)
        return norse.LIFCell(p=norse.LIFParameters(**constants), dt=dt), 1 / (1 - case.beta)

    network = norse.SequentialState(*modules(layers, neurons_of))
    nir.write(path, export(network, torch.zeros(1, network[0].in_features), dt=dt))
    return stepped_network(network)
