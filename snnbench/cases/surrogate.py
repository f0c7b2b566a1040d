"""Surrogate gradients: ds/du as a function of u - threshold, each defined by its formula, not by a library's name.

`distance` is u - threshold and `slope` narrows the function. Sources: Zenke & Ganguli 2018 (fast sigmoid, there with
slope 100), Fang et al. 2021 (arctangent), Bellec et al. 2018 (triangle), Wu et al. 2018 (rectangle), Shrestha & Orchard
2018 (exponential).

This is the only definition of the formulas. `m` is the array module that computes them: NumPy for the reference, torch,
or kernels/formula.py, which turns them into the source text of compiled kernels. So a formula uses only operators and
abs, exp, square, where, full_like and zeros_like of `m`.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Formula = Callable[..., Any]
"""(distance, slope, threshold, m=numpy) -> ds/du, elementwise."""


def fast_sigmoid(distance: Any, slope: float, threshold: float, m: Any = np) -> Any:
    """1 / (1 + slope * |distance|)^2."""
    return 1.0 / m.square(1.0 + slope * m.abs(distance))


def sigmoid(distance: Any, slope: float, threshold: float, m: Any = np) -> Any:
    """slope * p * (1 - p) with p = 1 / (1 + exp(-slope * distance)); even, so written without overflow."""
    e = m.exp(-slope * m.abs(distance))
    return slope * e / m.square(1.0 + e)


def atan(distance: Any, slope: float, threshold: float, m: Any = np) -> Any:
    """(slope / 2) / (1 + (pi / 2 * slope * distance)^2)."""
    return 0.5 * slope / (1.0 + m.square(0.5 * math.pi * slope * distance))


def triangle(distance: Any, slope: float, threshold: float, m: Any = np) -> Any:
    """max(0, 1 - slope * |distance|)."""
    height = 1.0 - slope * m.abs(distance)
    return m.where(height > 0.0, height, m.zeros_like(distance))


def rectangle(distance: Any, slope: float, threshold: float, m: Any = np) -> Any:
    """1 where slope * |distance| < 1/2, else 0."""
    return m.where(slope * m.abs(distance) < 0.5, m.full_like(distance, 1.0), m.zeros_like(distance))


def one_sided(distance: Any, slope: float, threshold: float, m: Any = np) -> Any:
    """1 / threshold where slope * distance >= -1/2, else 0: the derivative of a shifted ramp, open upwards."""
    return m.where(slope * distance >= -0.5, m.full_like(distance, 1.0 / threshold), m.zeros_like(distance))


def exponential(distance: Any, slope: float, threshold: float, m: Any = np) -> Any:
    """slope * exp(-slope * |distance|)."""
    return slope * m.exp(-slope * m.abs(distance))


FORMULAS: dict[str, Formula] = {
    "fast_sigmoid": fast_sigmoid,
    "sigmoid": sigmoid,
    "atan": atan,
    "triangle": triangle,
    "rectangle": rectangle,
    "one_sided": one_sided,
    "exponential": exponential,
}
JUMPS = {"rectangle": (-0.5, 0.5), "one_sided": (-0.5,)}
"""Values of slope * distance at which a formula jumps."""
