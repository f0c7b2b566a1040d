"""Tests of exponents of power laws: slopes on logarithms, with Student's t for their error."""

import pytest

from snnbench.analysis.exponent import exponent


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
def test_exact_power_law_has_no_error(power: float) -> None:
    fit = exponent([25, 50, 100, 200], [3 * size**power for size in (25, 50, 100, 200)])
    assert (fit.value, fit.low, fit.high, fit.last) == pytest.approx((power,) * 4, abs=1e-6)


def test_interval_is_students_t_of_the_residuals() -> None:
    """In powers of two: x = 0, 1, 2 and y = 0, 2, 1. The slope is 1/2, the residuals -1/2, 1, -1/2, so that
    s^2 = 1.5 / (3 - 2) and the slope's error sqrt(1.5 / 2); t at 97.5 % with one degree of freedom is 12.706.
    """
    fit = exponent([1, 2, 4], [1, 4, 2])
    half = 12.7062047 * (1.5 / 2) ** 0.5
    assert fit.value == pytest.approx(0.5)
    assert (fit.low, fit.high) == pytest.approx((0.5 - half, 0.5 + half))
    assert fit.last == pytest.approx(-1)


def test_constant_cost_flattens_the_fit_but_not_the_last_step() -> None:
    fit = exponent([1, 10, 100, 1000], [100 + size for size in (1, 10, 100, 1000)])
    assert fit.value < fit.last < 1
    assert fit.high - fit.low > 0.5


@pytest.mark.parametrize("count", [0, 1, 2])
def test_fewer_than_three_sizes_are_refused(count: int) -> None:
    with pytest.raises(ValueError, match="three sizes"):
        exponent([1.0, 2.0][:count], [1.0, 2.0][:count])
