"""Rounding of the reference's operands to a format, and the tolerances that rounding gives a correct answer."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snnbench.cases.case import HALVES, Case
from snnbench.cases.rule import Rule
from snnbench.cases.trace import Trace

Array = NDArray[np.float64]
CLOSE_ROUNDOFFS = 32
"""Roundings of the summed terms by which a potential may miss the threshold if a spike differs."""
TENSOR_CORE_TERMS = 8
"""Terms that a tensor core adds in one instruction, in TF32 (PTX ISA, mma.m16n8k8)."""


def round_to(array: NDArray[np.float32], number_format: str) -> Array:
    """`array` rounded to nearest, ties to even, with the significand of `number_format`; as float64."""
    if number_format in ("float32", "float64"):
        return array.astype(np.float64)
    if number_format == "float16":
        return array.astype(np.float16).astype(np.float64)
    dropped = {"tf32": 13, "bfloat16": 16}[number_format]
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    half = np.uint32((1 << (dropped - 1)) - 1) + ((bits >> np.uint32(dropped)) & np.uint32(1))
    return ((bits + half) >> np.uint32(dropped) << np.uint32(dropped)).view(np.float32).astype(np.float64)


def of_decay(rule: Rule) -> Any:
    """The rounding of beta * v, in roundoffs of it: one, or more if beta is small.

    A library may take (1 - beta) * v off v, and rounds that product and its factor. So the rounding of a decay by more
    than half is relative to what is taken off.
    """
    return 1.0 + 2.0 * _share(np.maximum(0.0, 1 - 2 * rule.beta), rule.beta)


def _share(part: Any, beta: Any) -> Any:
    """A part of a decay, relative to it; 0 for no decay."""
    return np.where(beta, part, 0.0) / np.where(beta, beta, 1.0)


def of_sums(terms: Array, rule: Rule, case: Case) -> Array:
    """How far summing `terms` of this total size, in any order, may move a current.

    Tensor cores multiply in TF32, sum in float32, and truncate instead of rounding: after every TENSOR_CORE_TERMS terms
    a partial sum loses up to two roundoffs of its size, always downwards. A sum that ends at the threshold has partial
    sums of its size, so N terms lose up to N / 4 roundoffs of the threshold.
    """
    unit = UNIT_ROUNDOFF["float64" if case.dtype == "float64" else "float32"]
    return unit * (CLOSE_ROUNDOFFS * (rule.threshold + terms) + _cut(case) * rule.threshold)


def _cut(case: Case) -> float:
    """The roundoffs that a sum loses to truncation."""
    return 2 * case.fan_in / TENSOR_CORE_TERMS if case.product_format == "tf32" else 0.0


def of_potentials(trace: Trace, rule: Rule, dtype: str, current: Array, summing: Array) -> Array:
    """How far the rounding of sums and state may have moved each potential [T, ...].

    Each operation rounds once, with r the unit roundoff of `dtype`; the sums in the `current` are off by up to
    `summing`: e_u[t] = beta * e_v[t-1] + r * (|beta * v| + |i| + |u|) and e_v = e_u + r * |v|, a running error bound
    (Higham, Accuracy and Stability of Numerical Algorithms, section 3.3). The reach of the sums is wide enough that the
    membrane need not carry it. A synapse accumulates the errors of its currents. A decay or a threshold that 16 bits
    cannot hold is off in addition; of_sums has room for it in float32.

    In fixed point a state is off by whole units or exact. A current is off if rounding reaches the next multiple, and a
    decay may keep each unit of error. If rounding decides about a reset without a spike, the state is off by the whole
    potential.
    """
    if rule.unit:
        return _in_fixed_point(trace, rule, current, summing)
    roundoff = UNIT_ROUNDOFF[dtype]
    held = [representation_error(number, dtype) * (dtype in HALVES) for number in (rule.beta, rule.threshold)]
    of_beta, of_threshold = _share(held[0], rule.beta), held[1]
    margin = np.empty_like(trace.potential)
    carried = np.zeros(trace.potential.shape[1:])
    through_synapse = np.zeros_like(carried)
    for t, (u, decayed) in enumerate(zip(trace.potential, trace.decayed, strict=True)):
        i = np.abs(u - decayed)
        through_synapse = rule.synapse * (through_synapse + roundoff * i) + rule.gain * summing[t]
        state = carried + roundoff * (of_decay(rule) * np.abs(decayed) + i + np.abs(u)) + of_beta * np.abs(decayed)
        margin[t] = state + through_synapse + of_threshold
        carried = rule.beta * (state + roundoff * np.abs(u)) * rule.share_kept(trace.spikes[t])
    return margin


def _in_fixed_point(trace: Trace, rule: Rule, current: Array, summing: Array) -> Array:
    """The same for a rule in fixed point, without a synapse."""
    unit = rule.unit
    margin = np.empty_like(trace.potential)
    state = np.zeros(trace.potential.shape[1:])
    for t, x in enumerate(rule.gain * current):
        reach = rule.gain * summing[t]
        to_next = np.abs(x - np.round(x / unit) * unit)
        carried = np.where(state > 0, np.floor(rule.beta * state / unit) + 1, 0) * unit
        margin[t] = carried + np.where(to_next <= reach, np.ceil(reach / unit) * unit, 0)
        state = margin[t] * rule.share_kept(trace.spikes[t])
        if rule.resets_at is not None:
            u = trace.potential[t]
            doubtful = (trace.spikes[t] == 0) & (margin[t] > 0) & (np.abs(u - rule.resets_at) <= margin[t])
            state = np.where(doubtful, np.abs(u) + margin[t], np.where(u >= rule.resets_at, 0.0, state))
    return margin


def of_chance(charge: Array, case: Case) -> Array:
    """How far summing moves a current [T, ...], as a standard deviation: 0.3 sqrt(n) roundoffs of n terms' size.

    A tensor core cuts its sums in addition (of_sums).
    """
    unit = UNIT_ROUNDOFF["float64" if case.dtype == "float64" else "float32"]
    deviation: Array = unit * (0.3 * case.fan_in**0.5 + _cut(case)) * (np.abs(charge) + np.sqrt(np.mean(charge**2)))
    return deviation


def expected_differences(trace: Trace, rule: Rule, dtype: str, summing: Array | float = 0.0) -> float:
    """How many spikes of a trace [T, ...] the roundings of a state in `dtype` move, on average.

    Sums move a current by the standard deviation `summing` in addition.

    A rounding is uniform within the unit roundoff r of its result, so its variance is (r x)^2 / 3. Roundings are
    independent, so the variance of a potential runs as the bound of `of_potentials` does:
    var_u[t] = beta^2 var_v[t-1] + r^2 / 3 (|beta * v|^2 + |i|^2 + |u|^2) and var_v = var_u + r^2 / 3 |v|^2.
    A decay or a threshold that the format cannot hold is off by the same amount in each step, and that adds up. So does
    a decay by less than STEADY roundoffs: each step takes a whole number of last digits off, always too many or few.
    Rounding moves a spike if it carries the potential beyond its distance d to the threshold, in one of two directions:
    the chance is erfc(d / sqrt(2 var)) / 2. In float32 and float64 a potential exactly at the threshold counts as not
    moved: such a number comes from sums that these formats hold.
    """
    beta_off, threshold_off = (representation_error(number, dtype) for number in (rule.beta, rule.threshold))
    is_steady = (rule.beta < 1) & (1 - rule.beta < STEADY * UNIT_ROUNDOFF[dtype])
    of_beta = _share(beta_off + UNIT_ROUNDOFF[dtype] * is_steady, rule.beta)
    is_narrow = dtype not in ("float32", "float64")
    unit_variance = UNIT_ROUNDOFF[dtype] ** 2 / 3
    of_sums = np.broadcast_to(summing, trace.potential.shape) ** 2
    variance_v = np.zeros(trace.potential.shape[1:])
    shift_v = np.zeros_like(variance_v)
    expected = 0.0
    for u, decayed, spikes, of_sum in zip(trace.potential, trace.decayed, trace.spikes, of_sums, strict=True):
        of_step = unit_variance * ((of_decay(rule) * decayed) ** 2 + (u - decayed) ** 2 + u**2) + of_sum
        variance = rule.beta**2 * variance_v + of_step
        shift = rule.beta * shift_v + of_beta * np.abs(decayed)
        deviation = np.sqrt(variance + (shift + threshold_off) ** 2)
        distance = rule.distance(u)
        near = (distance < FARTHEST * deviation) & ((distance > 0) | is_narrow)
        expected += sum(map(math.erfc, (distance[near] / (math.sqrt(2) * deviation[near])).tolist())) / 2
        share = rule.share_kept(spikes)
        variance_v, shift_v = (variance + unit_variance * u**2) * share, shift * share
    return expected


def allowed_by_chance(expected: float) -> int:
    """How many spikes may differ if roundings move so many on average: twice, four standard deviations, and one.

    The average grows with the standard deviation of a potential. So twice the average allows for four times as many
    roundings as a state takes at the least.
    """
    return int(2 * expected + 4 * (2 * expected) ** 0.5 + 1)


def representation_error(number: Any, dtype: str) -> Any:
    """How far a number, or each of an array, is from the nearest one that a format has."""
    if dtype == "float64":
        return 0.0
    errors = np.abs(round_to(np.atleast_1d(number).astype(np.float32), dtype) - number)
    return errors if np.ndim(number) else float(errors[0])


STEADY = 1.0
"""A decay by fewer roundoffs is rounded in the same direction at each step."""
FARTHEST = 6.0
"""Standard deviations at which the chance of a difference, 1e-9, is left out."""
UNIT_ROUNDOFF = {"float64": 2.0**-53, "float32": 2.0**-24, "tf32": 2.0**-11, "float16": 2.0**-11, "bfloat16": 2.0**-8}
"""Half the gap above 1. (Half the usual epsilon; tf32 has 10 explicit bits, bfloat16 has 7.)"""
GRADIENT_ROUNDOFFS = 84
"""Relative error (Euclidean norm) allowed in a gradient: 5e-6 in float32, rounding over long sequences and sums."""
EXAM_GRADIENT_ROUNDOFFS = 168
"""The same for the exam, where norms are small: 1e-5 in float32."""
REDUCED_GRADIENT_ROUNDOFFS = 16
"""The same for formats with fewer digits: the roundings of a state that lasts about 1 / (1 - beta) steps."""
FEWEST_REDUCED_ROUNDOFFS = 2.0
"""In 16 bits no gradient is held to fewer: its operands and itself are rounded."""
PART_TOLERANCES, FEWEST_IN_PART = 2.0, 18
"""In 16 bits the gradient of one neuron may be off by so many tolerances. The mean square of n independent errors
exceeds four times its expectation with a chance below 1e-7 if n is 18 or more; fewer tell nothing."""
DIFFERENCE_RATE = 1e-6
"""In float32 and float64 one spike in a million may differ, each explained by its distance to the threshold."""
RATE_WINDOW = (0.01, 0.9)
"""Spikes per step: outside of this window a case is too silent or too saturated to tell right from wrong."""


def out_of_window(rate: float, most_spikes: int = 1, quietest: float = RATE_WINDOW[0]) -> str:
    """Why so many spikes per step prove nothing; empty if they do."""
    low, high = quietest, RATE_WINDOW[1]
    if low <= rate <= high * most_spikes:
        return ""
    word = "silent" if rate < low else "busy"
    return f"too {word} to prove anything: {rate:.3g} spikes per step, outside of {low} to {high}"


def allowed_differences(count: int) -> int:
    """How many of `count` spikes may differ: the expected number, four of its standard deviations, and one.

    In a sample much smaller than a million spikes, two differences by chance must not fail a library.
    """
    expected = DIFFERENCE_RATE * count
    return int(expected + 4 * expected**0.5 + 1)


def fewest_tolerance(case: Case, accumulated: int = 0) -> float:
    """Relative error that a gradient in 16 bits may have in any case; what is larger must follow from the recurrence.

    A program may add up the gradient of a parameter in 16 bits over so many `accumulated` steps. That is a sum in a
    single accumulator, as in `gradient_tolerance`.
    """
    roundoffs: float = FEWEST_REDUCED_ROUNDOFFS + 3 * 0.30 * accumulated**0.5
    return min(roundoffs, REDUCED_GRADIENT_ROUNDOFFS) * UNIT_ROUNDOFF[case.dtype]


def gradient_tolerance(case: Case, roundoffs: int = GRADIENT_ROUNDOFFS, summed: int = 1) -> float:
    """Relative error allowed in a gradient of this case; each of its entries sums `summed` terms.

    A sum of n random terms in a single float32 accumulator is off by about 0.30 sqrt(n) roundoffs of its own size: its
    n partial sums grow as sqrt(k), and each is rounded by 0.425 roundoffs (root mean square). A correct matrix product
    may sum in this way; it is allowed three times that.
    """
    allowed = max(roundoffs, summed**0.5) if case.is_exact_format else REDUCED_GRADIENT_ROUNDOFFS
    return allowed * UNIT_ROUNDOFF[case.product_format]
