"""The cause of a wrong answer in the exam: the known mistake that gives this answer at every place.

Each mistake is tried on the whole exam, where nothing is rounded. The first that explains the answer is named. If none
does, nothing is: a guess would send its reader the wrong way.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from snnbench.cases import recurrence, reference
from snnbench.cases.answer import Answer
from snnbench.cases.case import Reset
from snnbench.cases.problem import Problem
from snnbench.cases.rule import Rule, rule_of
from snnbench.cases.surrogate import FORMULAS
from snnbench.cases.trace import Trace

Array = NDArray[np.float64]
Layers = list[tuple[Array, Array]]
STATE_KEPT = "pass 1 is right, pass 2 is not: state is kept between passes; give Neuron a reset"
WRONG_SIGN = "every gradient has the wrong sign"
STATE_LOST = "the state is lost from one chunk to the next"
GRADIENT_CUT = "no gradient goes from a chunk back into the one before"
GRADIENT_CARRIED = "the gradient goes on into the chunk before, where the case cuts it"
ONE_WAY = "no gradient goes back through the recurrent weights"
OWN_WEIGHTS: dict[str, Callable[[Array], Array]] = {
    "the recurrent weights are left out": np.zeros_like,
    "the recurrent weights are transposed": np.transpose,
    "no neuron gets its own spikes back": lambda own: own * (1 - np.eye(len(own))),
}
"""Mistakes with the recurrent weights [N, N], and what becomes of them."""
STEPS = 8
"""Steps of the first wrong neuron that are shown."""
SAME = 1e-4
"""The relative error of a gradient in float32 by the same mistake."""
SLOPES = (1.0, 2.0, np.pi, 4.0, 5.0, 10.0, 25.0, 100.0)
"""Slopes that libraries have as their own."""


def of_spikes(problem: Problem, before: Array | None, which: int, spikes: NDArray[np.generic]) -> str:
    """The mistake with these spikes [T, B, N] on a numbered input, after a pass on the input `before`; or nothing."""
    layers, inputs, rule = _float64(problem.layers()), problem.input(which).astype(np.float64), rule_of(problem.case)
    with np.errstate(all="ignore"):
        tried = _mistakes_of_spikes(layers, inputs, rule, before, problem.case.chunk_steps)
        return next((words for words, given in tried if np.array_equal(given, spikes)), "")


def of_gradient(problem: Problem, which: int, cotangent: int, answer: Answer) -> str:
    """The mistake with this gradient of the input, where the spikes are right; or nothing."""
    if answer.input is None or not 0 < (size := float(np.linalg.norm(answer.input))) < np.inf:
        return ""
    layers, inputs, rule = _float64(problem.layers()), problem.input(which).astype(np.float64), rule_of(problem.case)
    arriving = problem.cotangent(cotangent).astype(np.float64)
    traces = reference.network_forward(layers, inputs, rule)
    tried = [(words, layers, other) for words, other in _mistakes_of_gradients(rule, problem.case.chunk_steps)]
    tried += [(ONE_WAY, _own_weights(layers, inputs, np.zeros_like), rule)] if problem.case.is_recurrent else []
    for words, given, other in tried:
        expected = reference.network_backward(given, inputs, traces, arriving, other).input
        if np.linalg.norm(answer.input - expected) <= SAME * size:
            return words
    expected = reference.network_backward(layers, inputs, traces, arriving, rule).input
    factor = float(np.vdot(answer.input, expected) / np.vdot(expected, expected))
    if abs(factor - 1) > SAME and np.linalg.norm(answer.input - factor * expected) <= SAME * size:
        return WRONG_SIGN if abs(factor + 1) < SAME else f"every gradient is {factor:.4g} times what it should be"
    return ""


def first_steps(trace: Trace, t: int, b: int, n: int, spikes: NDArray[np.generic]) -> list[list[float]]:
    """Rows [t, current, potential, expected, got] of one neuron, up to a step after its first wrong one."""
    last = min(len(spikes), t + 2)
    current = trace.potential[:, b, n] - trace.decayed[:, b, n]
    columns = current, trace.potential[:, b, n], trace.spikes[:, b, n], spikes[:, b, n]
    return [[float(step), *(float(column[step]) for column in columns)] for step in range(max(0, last - STEPS), last)]


def _mistakes_of_spikes(
    layers: Layers, inputs: Array, rule: Rule, before: Array | None, chunk_steps: int
) -> Iterator[tuple[str, Array]]:
    def spikes(other: Rule, given: Layers = layers, entering: Array = inputs) -> Array:
        return reference.network_forward(given, entering, other)[-1].spikes

    if before is not None:
        in_a_row = spikes(rule, entering=np.concatenate([before, inputs]))[len(before) :]
        yield STATE_KEPT, in_a_row
    if chunk_steps:
        chunks = np.split(inputs, len(inputs) // chunk_steps)
        yield STATE_LOST, np.concatenate([spikes(rule, entering=chunk) for chunk in chunks])
    right = spikes(rule)
    for steps in (1, 2):
        late = np.concatenate([np.zeros_like(right[:steps]), right[:-steps]])
        yield f"every spike comes {steps} step{'s' * (steps > 1)} late; LATENCY = {steps} allows for it", late
    resets: dict[Reset, str] = {"subtract": "subtracts the threshold", "zero": "sets the potential to zero"}
    for name, words in resets.items():
        if name != rule.reset:
            yield f"the reset {words}", spikes(replace(rule, reset=name))
    yield "nothing is reset", spikes(replace(rule, reset="none"))
    if any(own is not None for *_, own in recurrence.split_all(layers, inputs.shape[2])):
        for words, change in OWN_WEIGHTS.items():
            yield words, spikes(rule, _own_weights(layers, inputs, change))
    else:
        for name, words in resets.items():
            yield f"the reset {words}, one step late", _late_reset(layers, inputs, replace(rule, reset=name))
    if rule.synapse:
        yield "the synaptic current lasts one step only", spikes(replace(rule, synapse=0.0))
        yield "alpha is applied after the sum", spikes(replace(rule, gain=rule.gain * rule.synapse))
    if rule.beta:
        yield "the reset takes the threshold off after the decay", spikes(rule.resetting_after_decay())
    yield "a potential does not decay", spikes(replace(rule, beta=1.0))
    yield "a potential lasts one step only", spikes(replace(rule, beta=0.0))
    yield "the input is multiplied by 1 - beta", spikes(replace(rule, gain=1 - rule.beta))
    yield "the threshold is 1", spikes(replace(rule, threshold=1.0))
    if layers:
        yield "the bias is left out", spikes(rule, [(weight, 0 * bias) for weight, bias in layers])
        if all(len(set(weight.shape)) == 1 for weight, _ in layers):  # no other weight can be taken for its transpose
            yield "the weight is transposed", spikes(rule, [(weight.T, bias) for weight, bias in layers])
    swapped = spikes(rule, entering=inputs.swapaxes(0, 1)).swapaxes(0, 1)
    yield "the samples of the batch are taken for time steps: axes are swapped; ORDER says them", swapped
    yield "time runs backwards", spikes(rule, entering=inputs[::-1])[::-1]
    samples = inputs.swapaxes(0, 1).reshape(-1, 1, inputs.shape[2])
    in_a_row = spikes(rule, entering=samples).reshape(inputs.shape[1], inputs.shape[0], -1).swapaxes(0, 1)
    yield "the state of a sample goes on in the next sample of the batch", in_a_row


def _own_weights(layers: Layers, inputs: Array, change: Callable[[Array], Array]) -> Layers:
    """The layers with other recurrent weights."""
    parts = recurrence.split_all(layers, inputs.shape[2])
    return [(weight if own is None else np.concatenate([weight, change(own)], 1), bias) for weight, bias, own in parts]


def _late_reset(layers: Layers, inputs: Array, rule: Rule) -> Array:
    """The spikes of neurons that are reset one step late."""
    spikes = inputs
    for weight, bias in layers or [(np.eye(inputs.shape[2]), np.zeros(inputs.shape[2]))]:
        current, spikes = spikes @ weight.T + bias, np.empty((*inputs.shape[:2], len(bias)))
        v, fired = np.zeros(spikes.shape[1:]), np.zeros(spikes.shape[1:])
        for t, x in enumerate(current):
            u = rule.beta * v + x
            v = rule.after_reset(u, fired)
            spikes[t] = fired = rule.fired(u)
    return spikes


def _mistakes_of_gradients(rule: Rule, chunk_steps: int) -> Iterator[tuple[str, Rule]]:
    if rule.detach_every:
        yield GRADIENT_CARRIED, replace(rule, detach_every=0)
    elif chunk_steps:
        yield GRADIENT_CUT, replace(rule, detach_every=chunk_steps)
    if rule.reset != "none":
        words = "carries a gradient, where the case detaches it" if rule.detach_reset else "is detached"
        yield f"the reset {words}", replace(rule, detach_reset=not rule.detach_reset)
    yield "no gradient goes back through time", replace(rule, beta=0.0)
    for name in FORMULAS:
        for slope in dict.fromkeys((rule.slope, *SLOPES)):
            for gain, words in ((1.0, ""), (slope, ", times its slope"), (1 / slope, ", divided by its slope")):
                other = replace(rule, surrogate=name, slope=slope, surrogate_gain=gain)  # type: ignore[arg-type]
                if other != rule and not (slope == 1 and words):
                    yield f"the surrogate is {name} with slope {slope:.4g}{words}", other


def _float64(layers: list[tuple[NDArray[np.float32], NDArray[np.float32]]]) -> Layers:
    return [(weight.astype(np.float64), bias.astype(np.float64)) for weight, bias in layers]
