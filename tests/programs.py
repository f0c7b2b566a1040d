"""Honest programs, in every number format and several styles, and programs with one small fault: for the proof's tests.

A program computes the neuron of a case in NumPy and rounds each operation to the format of the case. Its products sum
in float32, as libraries' do.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from snnbench.cases.answer import Answer
from snnbench.cases.case import Case
from snnbench.cases.problem import Problem
from snnbench.cases.surrogate import FORMULAS
from snnbench.proof.tolerance import round_to

Array = np.ndarray[Any, Any]
FORMATS = ("float32", "float64", "bfloat16", "float16")
STYLES = ("plain", "scaled", "leak")
"""How libraries write u: beta * v + x; the same in units of the threshold; or v - (1 - beta) * v + x."""
FAULTS = (
    "decay", "threshold", "slope", "surrogate", "reset", "attachment", "late reset", "short memory", "last step",
    "carried state",
)  # fmt: skip
"""Small faults: 1 % of the decay or the threshold, 5 % of the slope, another surrogate, the other reset or attachment,
a reset one step late, a gradient cut after three quarters of the steps, a last step without gradient, and a state that
goes on from the last sample to the first step of the next pass."""


@dataclass(frozen=True)
class Program:
    """A program for the neuron of a case; `fault` is one of FAULTS, or "" for an honest one."""

    style: str = "plain"
    fault: str = ""

    def __call__(self, problem: Problem, which: int, cotangent: int | None = None) -> Answer:
        """The answer to a numbered input of a problem with one layer or several."""
        case = self._case(problem.case)
        entering = problem.input(which).astype(np.float64)
        arriving = _rounded(problem.cotangent(which if cotangent is None else cotangent), case.dtype)
        layers, saved = problem.layers(), []
        if not layers:
            spikes, gradient = self._neurons(_rounded(entering, case.dtype), case)
            return Answer(spikes, [], [], gradient(arriving)[0])
        for weight, bias in layers:
            weight, bias = _rounded(weight, case.product_format), _rounded(bias, case.dtype)
            entering = _rounded(entering, case.product_format)
            current = _product("tbk,nk->tbn", entering, weight, case)
            spikes, gradient = self._neurons(_rounded(current + bias, case.dtype), case)
            saved.append((weight, entering, gradient))
            entering = spikes
        weights, biases, constants = [], [], list[Array]()
        for weight, entering, gradient in reversed(saved):
            of_current, of_constants = gradient(arriving)
            constants = [of_constants[name] for name in case.trained_constants] + constants
            weights.insert(0, _product("tbn,tbk->nk", of_current, entering, case))
            biases.insert(0, _product("tbn->n", of_current, None, case))
            arriving = _product("tbn,nk->tbk", of_current, weight, case)
        return Answer(spikes, weights, biases, arriving, constants)

    def _case(self, case: Case) -> Case:
        match self.fault:
            case "decay":
                return case.with_(beta=case.beta * 0.99)
            case "threshold":
                return case.with_(threshold=case.threshold * 1.01)
            case "slope":
                return case.with_(slope=case.slope * 1.05)
            case "surrogate":
                return case.with_(surrogate="atan" if case.surrogate == "fast_sigmoid" else "fast_sigmoid")
            case "reset":
                return case.with_(reset="zero" if case.reset == "subtract" else "subtract")
            case "attachment":
                return case.with_(detach_reset=not case.detach_reset)
        return case

    def _neurons(self, current: Array, case: Case) -> Any:
        """(spikes [T, B, N], a function from their cotangent to the gradients of the current and of the constants)."""

        def q(value: Any) -> Any:
            return _rounded(value, case.dtype)

        steps, late = len(current), self.fault == "late reset"
        unit = case.threshold if self.style == "scaled" else 1.0
        threshold, beta = q(case.threshold / unit), q(case.beta)
        leak = q(1 - case.beta)
        if self.style == "scaled":
            current = q(current / unit)
        v, resetting = np.zeros(current.shape[1:]), np.zeros(current.shape[1:])
        if self.fault == "carried state":
            v = q(0.5 * np.roll(current[-1], 1, 0))
        potentials, spikes, before = (np.empty_like(current) for _ in range(3))
        for t, x in enumerate(current):
            before[t] = v
            u = q(q(v - q(leak * v)) + x) if self.style == "leak" else q(q(beta * v) + x)
            s = (q(u - threshold) >= 0).astype(np.float64)
            resetting = resetting if late else s
            match case.reset:
                case "subtract":
                    v = q(u - threshold * resetting)
                case "zero":
                    v = u * (1 - resetting)
                case "none":
                    v = u
            resetting = s
            potentials[t], spikes[t] = u, s

        each = (0,) if case.trained_each == "neuron" else (0, 1)
        wide = np.float64 if case.dtype == "float64" else np.float32

        def summed(terms: Array) -> Array:
            return np.atleast_1d(q(terms.astype(wide).sum(each)))

        def gradient(arriving: Array) -> tuple[Array, dict[str, Array]]:
            result = np.zeros_like(current)
            by_beta: Array = np.zeros(1)
            by_threshold: Array = np.zeros(1)
            first = steps // 4 if self.fault == "short memory" else 0
            gv = np.zeros(current.shape[1:])
            for t in range(steps - 1, first - 1, -1):
                u = potentials[t]
                s = spikes[t - 1] if late and t else spikes[t] * (not late)
                slope = _surrogate(q(u - threshold), case, unit, q)
                through = q(arriving[t])
                if self.fault == "last step" and t == steps - 1:
                    through = 0 * through
                if case.reset != "none" and not case.detach_reset:
                    removed = threshold if case.reset == "subtract" else u
                    through = q(through - q(removed * gv))
                kept = 1 - s if case.reset == "zero" else 1.0
                gu = q(q(through * slope) + gv * kept)
                taken = gv * s if case.reset == "subtract" else 0.0
                by_threshold = q(by_threshold - summed(q(through * slope) + taken))
                by_beta = q(by_beta + summed(q(gu * before[t])))
                result[t] = q(gu / unit) if self.style == "scaled" else gu
                gv = q(gu - q(leak * gu)) if self.style == "leak" else q(beta * gu)
                if case.cuts_gradient and t % case.chunk_steps == 0:
                    gv = 0 * gv
            return result, {"beta": by_beta, "threshold": q(by_threshold / unit)}

        return spikes, gradient


def _surrogate(distance: Array, case: Case, unit: float, q: Any) -> Array:
    """ds/du in units of `unit` of the potential, from a rounded distance; sigmoid as p * (1 - p), as libraries do."""
    scaled = q(distance * q(case.slope * unit))
    if case.surrogate == "sigmoid":
        p = q(1 / (1 + np.exp(-np.clip(scaled, -80, 80))))
        return q(q(q(case.slope * unit) * p) * q(1 - p))
    return q(unit * FORMULAS[case.surrogate](scaled / case.slope, case.slope, case.threshold))


def _rounded(value: Any, number_format: str) -> Any:
    array = np.asarray(value, np.float64)
    if number_format == "float64":
        return array
    with np.errstate(over="ignore"):
        return round_to(np.atleast_1d(array).astype(np.float32), number_format).reshape(array.shape)


def _product(indices: str, first: Array, second: Array | None, case: Case) -> Array:
    """A product with operands in the format of products, summed in float32, and rounded to the case's format."""
    wide = np.float64 if case.dtype == "float64" else np.float32
    operands = [_rounded(each, case.product_format).astype(wide) for each in (first, second) if each is not None]
    if second is None:
        return _rounded(operands[0].sum((0, 1)), case.dtype)
    return _rounded(np.einsum(indices, *operands, optimize=True), case.dtype)
