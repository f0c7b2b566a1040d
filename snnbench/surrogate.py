"""Surrogate gradients: ds/du as a function of u - threshold, each defined by its formula and by no library's name.

`distance` is u - threshold and `slope` narrows the function. Sources: Zenke & Ganguli 2018 (fast sigmoid, there with
slope 100), Fang et al. 2021 (arctangent), Bellec et al. 2018 (triangle), Wu et al. 2018 (rectangle).
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Formula = Callable[[Any, float, float], Any]
"""(distance, slope, threshold) -> ds/du, elementwise."""


def fast_sigmoid(distance: Any, slope: float, threshold: float) -> Any:
    """1 / (1 + slope * |distance|)^2."""
    return 1.0 / (1.0 + slope * np.abs(distance)) ** 2


def sigmoid(distance: Any, slope: float, threshold: float) -> Any:
    """slope * p * (1 - p) with p = 1 / (1 + exp(-slope * distance))."""
    p = 0.5 * (1.0 + np.tanh(0.5 * slope * distance))  # the same function, without overflow
    return slope * p * (1.0 - p)


def atan(distance: Any, slope: float, threshold: float) -> Any:
    """(slope / 2) / (1 + (pi / 2 * slope * distance)^2)."""
    return 0.5 * slope / (1.0 + (0.5 * math.pi * slope * distance) ** 2)


def triangle(distance: Any, slope: float, threshold: float) -> Any:
    """max(0, 1 - slope * |distance|)."""
    return np.maximum(0.0, 1.0 - slope * np.abs(distance))


def rectangle(distance: Any, slope: float, threshold: float) -> Any:
    """1 where slope * |distance| < 1/2, else 0."""
    return (slope * np.abs(distance) < 0.5).astype(np.result_type(distance, np.float32))


def one_sided(distance: Any, slope: float, threshold: float) -> Any:
    """1 / threshold where slope * distance >= -1/2, else 0: the derivative of a shifted ramp, open upwards."""
    return (slope * distance >= -0.5).astype(np.result_type(distance, np.float32)) / threshold


FORMULAS: dict[str, Formula] = {
    "fast_sigmoid": fast_sigmoid,
    "sigmoid": sigmoid,
    "atan": atan,
    "triangle": triangle,
    "rectangle": rectangle,
    "one_sided": one_sided,
}
