"""The scan: an answer of one layer against float64, where the answer is. On a card that is all neurons and all samples.

A scan accuses nobody. It says where spikes differ, and how far the gradients of each neuron and each sample are off.
Where that is too much, spotcheck.py compares these neurons and samples with the reference in NumPy.

The equations are those of cases/reference.py, in a framework's own arrays and in blocks of neurons.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snnbench.cases.answer import Answer, Arrays
from snnbench.cases.case import HALVES, Case
from snnbench.cases.problem import Layer
from snnbench.cases.rule import Rule
from snnbench.cases.surrogate import FORMULAS
from snnbench.proof.extent import PRODUCTS
from snnbench.proof.tolerance import PART_TOLERANCES, round_to

Floats = NDArray[np.float64]
Places = slice | NDArray[np.intp]
MOST_ENTRIES = 1 << 27
"""Numbers of an array in float64 at once: 1 GiB."""
BLOCKS = 16
"""Arrays of that size that exist at once, with room to spare."""
SCAN_NS = 250_000_000
"""Time for the products of one scan. If all neurons take longer, a part of them is scanned."""
TRIED = 2048
"""The lengths of a product in float64 whose time gives the speed of the device."""
MOST_SUSPECTS = 32
"""Neurons or samples that are compared once more; the worst of more."""


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums of squares for each part of a gradient: of the error, of what was got, and of what is expected."""

    error: Floats
    got: Floats
    expected: Floats

    @property
    def relative(self) -> float:
        """The error of the whole gradient, relative to its size."""
        error, expected = float(self.error.sum()), float(self.expected.sum())
        return (error / expected) ** 0.5 if expected else float(error != 0)

    @property
    def cosine(self) -> float:
        """The cosine between the two gradients."""
        got, expected = float(self.got.sum()), float(self.expected.sum())
        size = (got * expected) ** 0.5
        return (got + expected - float(self.error.sum())) / 2 / size if size else float(got == expected)

    def suspects(self, tolerance: float) -> NDArray[np.intp]:
        """The parts that are off by more, relative to their size or to the root mean square of all sizes.

        The parts of a gradient that is off as a whole include the worst one. At most MOST_SUSPECTS, sorted.
        """
        least = np.finfo(float).tiny
        sizes = np.sqrt(np.maximum(np.maximum(self.expected, self.expected.mean()), least))
        off = np.nan_to_num(np.sqrt(self.error) / sizes, nan=np.inf)
        worst = np.argsort(-off)[:MOST_SUSPECTS]
        wrong = off[worst] > PART_TOLERANCES * tolerance
        wrong[0] |= not self.relative <= tolerance
        return np.sort(worst[wrong])


@dataclass(frozen=True, slots=True)
class Scan:
    """What a scan of these `neurons` found.

    `differs` [B, n] says where a spike of a sample and a neuron differs, and `differing` how many do. `fired` is the
    number of spikes, of which any number but 0 is one. `gradients` has those of weight and bias by neuron, and of the
    input by sample; if the input is the current, by neuron.
    """

    neurons: NDArray[np.intp]
    differs: NDArray[np.bool_]
    differing: int
    fired: int
    gradients: dict[str, Sums]


def knows(case: Case, rule: Rule) -> bool:
    """Whether a scan knows this rule and the shape of the case: one layer, without a synapse or fixed point.

    Its neurons must be independent, and no gradient a sum over them.
    """
    is_plain = not (rule.synapse or rule.refractory or rule.unit or rule.weight_step) and rule.most_spikes == 1
    is_apart = case.sites == 1 and not case.is_recurrent and not case.trained_constants
    return is_plain and is_apart and case.dtype not in HALVES


class Scanner:
    """The scans of a process: the layer of a case on a device, None if the input is the current."""

    def __init__(
        self, arrays: Arrays, case: Case, rule: Rule, layer: Layer | None, entries: int = MOST_ENTRIES
    ) -> None:
        self._arrays, self._case, self._rule, self._entries = arrays, case, rule, entries
        self.begin, self._given = arrays.begin, layer

    def has_room(self) -> bool:
        """Whether the device has room for a scan beside the passes since `begin`. Blocks are then as large as fit."""
        self._entries = entries_that_fit(self._case, self._arrays.free_bytes())
        return self._entries > 0

    @cached_property
    def _layer(self) -> tuple[Any, Any] | None:
        """The weight, rounded as the product rounds it, and the bias on the device, once there is room."""
        if self._given is None:
            return None
        weight, bias = self._given
        rounded = round_to(weight, self._case.product_format).astype(np.float32)
        return self._arrays.put(rounded), self._arrays.put(bias)

    @cached_property
    def most_neurons(self) -> int:
        """How many neurons a scan has time for."""
        case = self._case
        if self._given is None:
            return case.neurons
        flops = PRODUCTS * 2 * case.time_steps * case.batch * case.fan_in
        return max(1, min(case.neurons, int(SCAN_NS * flops_per_ns(self._arrays) / flops)))

    def scan(
        self, inputs: NDArray[np.float32], cotangent: NDArray[np.float32], answer: Answer, neurons: NDArray[np.intp]
    ) -> Scan:
        """Scan an answer to this input and cotangent [T, B, N]. A gradient of the input takes all neurons."""
        arrays, case = self._arrays, self._case
        steps, batch = case.time_steps, case.batch
        goes_back, is_whole = answer.weights is not None, len(neurons) == case.neurons
        by_part: list[tuple[NDArray[np.bool_], int, int]] = []
        sums: dict[str, list[Sums]] = {}
        with arrays.exact():
            x = arrays.put(inputs)
            upstream = arrays.put(cotangent) if goes_back else None
            entering = None
            at_once = max(1, self._entries // max(steps * batch, case.fan_in))
            for part in _parts(neurons, at_once, is_whole):
                current = self._current(x, part)
                got = arrays.float64(answer.spikes.native[:, :, part])  # type: ignore[union-attr]
                potential = follow(arrays, current, got, self._rule)
                differs = arrays.float64(potential >= self._rule.threshold) != got
                differing, fired = (int(arrays.numpy(arrays.float64(each).sum())) for each in (differs, got != 0))
                by_part.append((arrays.numpy(differs.any(0)), differing, fired))
                if upstream is None:
                    continue
                gradient = backward(arrays, arrays.float64(upstream[:, :, part]), potential, got, self._rule)
                for name, each in self._of_neurons(gradient, x, answer, part):
                    sums.setdefault(name, []).append(each)
                if self._layer and is_whole and answer.input is not None:
                    weight = arrays.float64(self._layer[0][part])
                    added = (gradient.reshape(steps * batch, -1) @ weight).reshape(steps, batch, -1)
                    entering = added if entering is None else entering + added
            if entering is not None:
                got = answer.input.native  # type: ignore[union-attr]
                pieces = [self._sums(got[piece], entering[piece], (0, 2)) for piece in self._steps(x)]
                sums["input"] = [Sums(*(sum(each) for each in zip(*map(astuple, pieces), strict=True)))]
        return Scan(
            neurons,
            np.concatenate([each for each, _, _ in by_part], axis=1),
            sum(count for _, count, _ in by_part),
            sum(fired for _, _, fired in by_part),
            {
                name: Sums(*(np.concatenate(each) for each in zip(*map(astuple, parts), strict=True)))
                for name, parts in sums.items()
            },
        )

    def _current(self, x: Any, part: Places) -> Any:
        """The current [T, B, n] of a part of the neurons."""
        exact = self._arrays.float64
        if self._layer is None:
            return exact(x[:, :, part])
        weight, bias = (exact(each[part]) for each in self._layer)
        rows = [exact(x[steps]) @ weight.T + bias for steps in self._steps(x)]
        return self._arrays.m.concatenate(rows)

    def _of_neurons(self, gradient: Any, x: Any, answer: Answer, part: Places) -> Iterator[tuple[str, Sums]]:
        """The gradients that each neuron has by itself, for the gradient of its current [T, B, n]."""
        if self._layer is None:
            if answer.input is not None:
                yield "input", self._sums(answer.input.native[:, :, part], gradient, (0, 1))
            return
        weight: Any = 0.0
        for steps in self._steps(x):
            rows = gradient[steps].reshape(-1, gradient.shape[2])
            weight = weight + rows.T @ self._arrays.float64(x[steps]).reshape(len(rows), -1)
        weights, biases = answer.weights or [], answer.biases or []
        yield "weight", self._sums(weights[0].native[part], weight, (1,))
        yield "bias", self._sums(biases[0].native[part][:, None], gradient.sum((0, 1))[:, None], (1,))

    def _sums(self, got: Any, expected: Any, over: tuple[int, ...]) -> Sums:
        got = self._arrays.float64(got)
        error = got - expected
        return Sums(*(self._arrays.numpy((each * each).sum(over)) for each in (error, got, expected)))

    def _steps(self, x: Any) -> Iterator[slice]:
        """Time steps in blocks."""
        at_once = max(1, self._entries // (x.shape[1] * x.shape[2]))
        return (slice(start, start + at_once) for start in range(0, len(x), at_once))


def follow(arrays: Arrays, current: Any, spikes: Any, rule: Rule) -> Any:
    """The charged potentials [T, ...] for a current [T, ...], with the resets of `spikes` [T, ...]."""
    v = arrays.m.zeros_like(current[0])
    potentials = []
    for i, s in zip(current, spikes, strict=True):
        u = rule.beta * v + rule.gain * i
        potentials.append(u)
        v = u if rule.reset == "none" else u - rule.taken_off * s if rule.reset == "subtract" else u * _kept(arrays, s)
    return arrays.m.stack(potentials)


def backward(arrays: Arrays, cotangent: Any, potential: Any, spikes: Any, rule: Rule) -> Any:
    """dL/d(current) [T, ...] for dL/ds = `cotangent` [T, ...]."""
    formula = FORMULAS[rule.surrogate]
    through = rule.surrogate_gain * formula(potential - rule.threshold, rule.slope, rule.threshold, arrays.m)
    is_kept = rule.reset == "zero" and rule.reset_in_backward and not rule.holds_removed
    gv = arrays.m.zeros_like(potential[0])
    gradients = []
    for t in range(len(potential) - 1, -1, -1):
        u = potential[t]
        past = gv * _kept(arrays, spikes[t]) if is_kept else gv
        gu = (cotangent[t] - rule.through_reset(u) * gv) * through[t] + past
        gradients.append(rule.gain * gu)
        gv = arrays.m.zeros_like(gu) if rule.is_detached_before(t) else rule.beta * gu
    return arrays.m.stack(gradients[::-1])


def agreement(answer: Answer, verified: Answer) -> dict[str, float] | None:
    """The relative differences of the gradients of two held answers with the same spikes; None if a spike differs."""
    ours, theirs = answer.spikes, verified.spikes
    if ours is None or theirs is None or ours.shape != theirs.shape:
        return None
    arrays = theirs.arrays
    with arrays.exact():
        if bool((ours.native != theirs.native).any()):
            return None
        pairs = {"input": (answer.input, verified.input)} if verified.input is not None else {}
        for name, ours, theirs in (
            ("weight", answer.weights, verified.weights),
            ("bias", answer.biases, verified.biases),
        ):
            if theirs:
                pairs[name] = (ours or [None])[0], theirs[0]
        return {name: _difference(arrays, *pair) for name, pair in pairs.items()}


def _difference(arrays: Arrays, got: Any, expected: Any) -> float:
    if got is None or got.shape != expected.shape:
        return float("inf")
    off = size = 0.0
    at_once = max(1, MOST_ENTRIES // BLOCKS * len(got.native) // max(1, math.prod(got.shape)))
    for start in range(0, len(got.native), at_once):
        piece = slice(start, start + at_once)
        theirs = arrays.float64(expected.native[piece])
        error = arrays.float64(got.native[piece]) - theirs
        off += float(arrays.numpy((error * error).sum()))
        size += float(arrays.numpy((theirs * theirs).sum()))
    return (off / size) ** 0.5 if size else float(off != 0)


def flops_per_ns(arrays: Arrays) -> float:
    """The speed of a product in float64: the fastest of three after the first, which may start a library."""
    with arrays.exact():
        matrix = arrays.float64(arrays.put(np.ones((TRIED, TRIED), np.float32)))
        arrays.numpy((matrix @ matrix)[0])
        durations = []
        for _ in range(3):
            started = time.perf_counter_ns()
            arrays.numpy((matrix @ matrix)[0])
            durations.append(time.perf_counter_ns() - started)
        return 2 * TRIED**3 / min(durations)


def entries_that_fit(case: Case, free_bytes: int) -> int:
    """How many numbers an array in float64 may have at once, in so much memory of a device; 0 if there is no room.

    Beside the blocks there are the input and the cotangent, twice, two copies of the answer and one in another order,
    and the gradient of the input in float64, three times while it is summed.
    """
    positions = case.time_steps * case.batch * max(case.neurons, case.entering)
    weights = case.fan_in * case.neurons
    entries = (free_bytes - positions * (4 * 10 + 8 * 3) - weights * 4 * 3) // (8 * BLOCKS)
    return 0 if entries < max(case.time_steps * case.batch, case.fan_in) else min(MOST_ENTRIES, entries)


def _kept(arrays: Arrays, spikes: Any) -> Any:
    """What a reset to zero leaves of a potential: 1 without a spike, 0 with one."""
    return arrays.float64(spikes <= 0)


def _parts(neurons: NDArray[np.intp], at_once: int, is_whole: bool) -> Iterator[Places]:
    """The neurons in blocks: slices of all of them, or their numbers."""
    for start in range(0, len(neurons), at_once):
        block = slice(start, min(len(neurons), start + at_once))
        yield block if is_whole else neurons[block]
