"""Tests of the floor: formulas computed by hand, and the spread that a time may lie below it."""

from typing import Any

import pytest

from snnbench.cases.case import Case
from snnbench.worker import floor
from snnbench.worker.floor import CALL, COPY, LARGEST_SPREAD, SMALLEST_SPREAD, Peak
from tests.fakes import CASE, PHASES

SMALL = CASE.with_(time_steps=3, batch=2, neurons=5, layers=1, input_gradient=True, input_rate=1.0)
"""M = 6 rows: 30 values in an input, 25 weights, 5 biases, and 2 * 6 * 25 = 300 FLOPs in a product."""
INNER = SMALL.with_(input_gradient=False)
DEEP = SMALL.with_(layers=3)
DEEP_INNER = DEEP.with_(input_gradient=False)


@pytest.mark.parametrize(
    ("case", "inference", "backward"),
    [(SMALL, 300, 600), (INNER, 300, 300), (DEEP, 900, 1800), (DEEP_INNER, 900, 1500)],
    ids=["one layer", "without the input's gradient", "three layers", "three without the input's gradient"],
)
def test_flops_of_the_products(case: Case, inference: int, backward: int) -> None:
    assert {phase: floor.flops(case, phase) for phase in PHASES} == {
        "inference": inference,
        "forward": inference,
        "backward": backward,
        "train": inference + backward,
    }


@pytest.mark.parametrize(
    ("case", "forward", "backward", "train"),
    [
        # input + weights + biases + spikes; input + cotangent + weights and back weights, biases, input; all of them
        (SMALL, 30 + 25 + 5 + 30, 30 + 30 + 25 + 25 + 5 + 30, 30 + 30 + 25 + 5 + 30 + 25 + 5 + 30),
        (INNER, 30 + 25 + 5 + 30, 30 + 30 + 25 + 5, 30 + 30 + 25 + 5 + 30 + 25 + 5),
        (DEEP, 30 + 75 + 15 + 30, 30 + 30 + 75 + 75 + 15 + 30, 30 + 30 + 75 + 15 + 30 + 75 + 15 + 30),
        (DEEP_INNER, 30 + 75 + 15 + 30, 30 + 30 + 50 + 75 + 15, 30 + 30 + 75 + 15 + 30 + 75 + 15),
    ],
    ids=["one layer", "without the input's gradient", "three layers", "three without the input's gradient"],
)
def test_least_bytes_of_inputs_and_outputs(case: Case, forward: int, backward: int, train: int) -> None:
    assert {phase: floor.least_bytes(case, phase) for phase in PHASES} == {
        "inference": 4 * forward,
        "forward": 4 * forward,
        "backward": 4 * backward,
        "train": 4 * train,
    }


@pytest.mark.parametrize(("dtype", "size"), [("float64", 8), ("float32", 4), ("bfloat16", 2), ("float16", 2)])
def test_bytes_depend_on_the_dtype_but_flops_do_not(dtype: Any, size: int) -> None:
    case = SMALL.with_(dtype=dtype)
    assert floor.least_bytes(case, "inference") == 90 * size
    assert floor.flops(case, "inference") == 300


def test_unknown_phase_is_refused() -> None:
    with pytest.raises(ValueError, match="'sleep' is no phase"):
        floor.least_bytes(SMALL, "sleep")


def peaks(copy_ns: int = 0, call_ns: int = 0, **products_ns: int) -> dict[str, Peak]:
    """Steady peaks with these times of a pass, and two passes a repetition; the copy moves 100 bytes."""
    every = {**products_ns, COPY: copy_ns, CALL: call_ns}
    return {name: Peak(100 if name == COPY else 300, 2, 10**9, [2 * ns] * 3) for name, ns in every.items()}


STEADY = peaks(current=40, weight_gradient=50, input_gradient=60)


def complaint(phase: str, measured: dict[str, Peak], repetitions_ns: list[int], passes: int) -> str | None:
    """What is said of these repetitions of SMALL."""
    return floor.complaint(SMALL, phase, measured, {"repetitions_ns": repetitions_ns, "passes": passes}, {})


@pytest.mark.parametrize(
    ("case", "phase", "floor_ns"),
    [
        (SMALL, "inference", 40),
        (SMALL, "forward", 40),
        (SMALL, "backward", 50 + 40),  # the input's gradient has the shape of the current, the faster one
        (SMALL, "train", 40 + 50 + 40),
        (INNER, "backward", 50),
        (INNER, "train", 40 + 50),
        (DEEP_INNER, "train", 3 * 40 + 3 * 50 + 2 * 40),
    ],
)
def test_floor_is_the_sum_of_its_measured_products(case: Case, phase: str, floor_ns: float) -> None:
    assert floor.floor_ns(case, phase, STEADY) == floor_ns


@pytest.mark.parametrize(
    ("case", "phase", "floor_ns"),
    [
        (SMALL, "inference", 40),
        (INNER, "backward", 50),
        (SMALL, "backward", 50 + 40 - 7),
        (SMALL, "train", 40 + 50 + 40 - 2 * 7),
        (DEEP_INNER, "train", 3 * 40 + 3 * 50 + 2 * 40 - 7 * 7),
    ],
)
def test_floor_counts_the_overhead_of_a_call_once(case: Case, phase: str, floor_ns: float) -> None:
    calling = peaks(call_ns=7, current=40, weight_gradient=50, input_gradient=60)
    assert floor.floor_ns(case, phase, calling) == floor_ns


def test_faster_product_of_a_shape_counts() -> None:
    slow_current = peaks(current=60, weight_gradient=50, input_gradient=40)
    assert floor.floor_ns(SMALL, "train", slow_current) == 40 + 50 + 40
    assert floor.floor_ns(INNER, "train", peaks(current=60, weight_gradient=50)) == 60 + 50


def test_floor_is_the_longer_of_products_and_copy() -> None:
    """360 bytes in a forward pass of 90 values."""
    assert floor.floor_ns(SMALL, "forward", peaks(11, current=40)) == 40
    assert floor.floor_ns(SMALL, "forward", peaks(12, current=40)) == pytest.approx(43.2)


def test_unmeasured_peak_has_no_passes() -> None:
    """So the first look knows that it must find the number of passes in a repetition."""
    assert Peak(300) == Peak(300, 0, 0, [])


def test_fastest_repetition_counts_but_not_the_first_call() -> None:
    peak = Peak(300, passes=4, first_call_ns=1, repetitions_ns=[4000, 400, 800])
    assert peak.fastest_ns == 100


@pytest.mark.parametrize(
    ("durations", "expected"),
    [([8], 0.0), ([7, 7, 7], 0.0), ([4, 1, 3, 2], 1.5 / 2.5), ([100, 100, 100, 900], 200 / 100), ([0, 0], 0.0)],
)
def test_spread_is_the_interquartile_range_over_the_median(durations: list[float], expected: float) -> None:
    """Quartiles of 1, 2, 3, 4 stand at 1.75 and 3.25."""
    assert floor.relative_spread(durations) == pytest.approx(expected)


def wobbling(by: int) -> list[int]:
    """Durations with a median of 100 and an interquartile range of `by`."""
    return [100 - by, 100 - by // 2, 100, 100 + (by - by // 2), 100 + by]


@pytest.mark.parametrize("source", ["current", COPY])
def test_spread_of_a_comparison_is_the_largest_spread_of_the_peaks(source: str) -> None:
    measured = peaks(1, current=100) | {source: Peak(300, 1, 0, wobbling(20))}
    assert floor.spread(SMALL, "forward", measured) == pytest.approx(0.2)


def test_repetitions_that_differ_allow_no_time_below_the_floor() -> None:
    """A library could make some passes slow, so that the others might be as fast as it likes."""
    assert complaint("forward", STEADY, [30, 30, 30, 90, 90], 1)


def test_unneeded_peaks_do_not_widen_the_spread() -> None:
    noisy = STEADY | {"weight_gradient": Peak(300, 1, 0, wobbling(30)), CALL: Peak(2, 1, 0, wobbling(40))}
    assert floor.spread(SMALL, "forward", noisy) == SMALLEST_SPREAD
    assert floor.spread(SMALL, "train", noisy) == pytest.approx(0.3)


@pytest.mark.parametrize(("by", "spread"), [(0, SMALLEST_SPREAD), (10, 0.1), (80, LARGEST_SPREAD)])
def test_spread_has_bounds(by: int, spread: float) -> None:
    measured = STEADY | {"current": Peak(300, 1, 0, wobbling(by))}
    assert floor.spread(SMALL, "forward", measured) == pytest.approx(spread)


@pytest.mark.parametrize(("pass_ns", "below"), [(37, True), (38, False), (40, False), (400, False)])
def test_median_below_the_floor_by_more_than_the_spread_fails(pass_ns: int, below: bool) -> None:
    """The floor is 40 ns and the spread 5 %."""
    message = complaint("forward", STEADY, [3 * pass_ns] * 3, passes=3)
    assert (message is not None) is below
    assert floor.under(SMALL, "forward", STEADY, {"repetitions_ns": [pass_ns] * 3, "passes": 1}, {}) is (pass_ns < 40)


def test_complaint_is_a_line_with_phase_time_floor_and_spread() -> None:
    slow = peaks(current=2_000_000, weight_gradient=3_000_000, input_gradient=2_000_000)
    slow["weight_gradient"].repetitions_ns = [6_000_000, 6_000_000, 9_000_000]
    assert complaint("train", slow, [1_000_000, 2_000_000, 2_000_000], passes=2) == (
        "a pass of train took 1 ms, which is below the floor of 7 ms by more than the spread of 25%"
    )


@pytest.mark.parametrize("speed", [1.0, 1.8], ids=["steady", "a clock that jumps"])
def test_half_the_floor_is_found_but_not_a_clock_jump(speed: float) -> None:
    """Either half of the peaks' repetitions run in the fast mode, or only the phase does."""
    jumping = peaks() | {"current": Peak(300, 1, 0, [1000, round(1000 * speed)] * 4)}
    assert complaint("forward", jumping, [500] * 5, 1) is not None
    assert (complaint("forward", jumping, [round(1000 / 1.8)] * 5, 1) is None) is (speed > 1)


@pytest.mark.parametrize(("rates", "zeros"), [({}, 0.9), ({"0": 0.2, "1": 0.5, "2": 0.3}, 0.9 + 0.8 + 0.5)])
def test_zeros_are_spared_in_the_bound_alone(rates: dict[str, float], zeros: float) -> None:
    """Of each layer: its product with the input, or with spikes of a known rate, and the gradient of its weight."""
    few, measured = DEEP.with_(input_rate=0.1), peaks(current=50_000, weight_gradient=60_000, input_gradient=50_000)
    dense = floor.floor_ns(few, "train", measured)
    assert dense == floor.floor_ns(DEEP, "train", measured)
    assert floor.bound_ns(few, "train", measured, rates) == pytest.approx(dense - zeros * (50_000 + 60_000))


def test_rates_are_the_least_of_the_spot_checks() -> None:
    exam, train, inference = {"rates": {"0": 0.1}}, {"rates": {"0": 0.3, "1": 0.4}}, {"rates": {"0": 0.4, "1": 0.2}}
    checks = {"exam-1": exam, "spot-train": train, "spot-inference": inference, "fresh-train": {}}
    assert floor.rates_of(checks) == {"0": 0.3, "1": 0.2}
