"""Tests of formulas as text: a language's text computes the same values as the table."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from snnbench.cases.surrogate import FORMULAS
from snnbench.kernels.formula import TRITON, C, Dialect, surrogate

PYTHON = {"C": (C, {"real": float}), "Triton": (TRITON, {})}
NAMES = {
    "absolute": abs,
    "exponential": math.exp,
    "tl": SimpleNamespace(abs=abs, exp=math.exp, where=lambda condition, then, other: then if condition else other),
}


def as_python(text: str) -> str:
    """C's casts and its conditional (at most one) as a Python expression."""
    text = text.replace("((real)", "(float)(")
    if "?" in text:
        condition, _, rest = text[1:-1].partition(" ? ")
        then, _, other = rest.partition(" : ")
        text = f"({then}) if ({condition}) else ({other})"
    return text


@pytest.mark.parametrize("language", PYTHON)
@pytest.mark.parametrize("name", FORMULAS)
def test_text_and_table_compute_the_same_surrogate(name: str, language: str) -> None:
    dialect, names = PYTHON[language]
    text = as_python(surrogate(name, dialect))
    for distance in np.linspace(-3, 3, 61):
        for slope in (0.5, 2.0):
            variables = {"distance": float(distance), "slope": slope, "threshold": 1.25}
            got = eval(text, NAMES | names | variables)
            assert got == pytest.approx(float(FORMULAS[name](distance, slope, 1.25)), rel=1e-14, abs=1e-300)


def test_numbers_keep_all_their_digits() -> None:
    assert "1.5707963267948966" in surrogate("atan", C)


def test_a_formula_may_use_nothing_else() -> None:
    with pytest.raises(AttributeError):
        Dialect("{0}", "{0}", "{0}", "{0}").tanh(1.0)  # type: ignore[attr-defined]
