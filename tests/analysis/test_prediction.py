"""Tests of predictions from recordings made by hand, in which the right number follows from a known law."""

from collections.abc import Callable
from typing import Any

import pytest

from snnbench.analysis.prediction import MOST, Evidence, Prediction, samples
from snnbench.cases.case import Case
from snnbench.recording.reading import Recording
from tests.fakes import CASE
from tests.recordings import recording, timed, weighed

HERE = "a laptop"
BASE = CASE.with_(neurons=64, batch=4, time_steps=10, layers=1)


def unused(before: Case, after: Case) -> float:
    raise AssertionError(f"{before} to {after} needs no count")


def predicted(
    case: Case, *recordings: Recording, metric: str = "time", counted: Callable[[Case, Case], float] = unused
) -> Prediction | None:
    unit = "ns" if metric == "time" else "bytes"
    evidence = Evidence(samples(recordings, HERE))
    return evidence.predict(("a", "default"), case, ("train", metric), unit, counted)


def swept(law: Callable[[int], float], *steps: int, **fields: Any) -> Recording:
    cells = [timed("a", case=BASE.with_(time_steps=size), train=law(size)) for size in steps]
    return recording(*cells, **fields)


def test_recorded_case_is_measured() -> None:
    trials = [timed("a", trial, case=BASE, train=ms) for trial, ms in enumerate((3.0, 5.0, 4.0))]
    prediction = predicted(BASE, recording(*trials))
    assert prediction == Prediction(4e6, "one")
    assert prediction.words == "measured"


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("steps", [20, 70, 400])
def test_contender_grows_with_its_own_exponent(power: float, steps: int) -> None:
    prediction = predicted(BASE.with_(time_steps=steps), swept(lambda size: size**power, 10, 50, 100))
    assert prediction is not None
    assert prediction.value == pytest.approx(1e6 * steps**power, rel=1e-4)
    assert [(step.letter, step.ground) for step in prediction.steps] == [("T", "fitted")]
    assert prediction.steps[0].exponent == pytest.approx(power, abs=1e-4)


def test_two_sizes_give_an_exponent() -> None:
    prediction = predicted(BASE.with_(time_steps=40), swept(lambda size: size**2, 10, 20))
    assert prediction is not None and prediction.words == "T^2"
    assert prediction.value == pytest.approx(1600e6)


def test_last_step_counts_beyond_the_recorded_sizes() -> None:
    """A constant cost flattens small sizes: 10 to 20 is flat, 20 to 40 is linear."""
    record = swept(lambda size: max(20.0, size), 10, 20, 40)
    beyond = predicted(BASE.with_(time_steps=80), record)
    assert beyond is not None and beyond.value == pytest.approx(80e6)


def test_steepest_growth_stays_a_number() -> None:
    prediction = predicted(BASE.with_(time_steps=10**9), swept(lambda size: 1e-6 * 1e15 ** (size - 10), 10, 11))
    assert prediction is not None and prediction.value == MOST


def test_number_that_falls_with_a_size_stays() -> None:
    prediction = predicted(BASE.with_(time_steps=40), swept(lambda size: 100 / size, 10, 20))
    assert prediction is not None and prediction.value == pytest.approx(5e6)


@pytest.mark.parametrize(("axis", "letter"), [("batch", "B"), ("time_steps", "T"), ("layers", "L")])
def test_size_that_was_never_swept_is_linear(axis: str, letter: str) -> None:
    grown = BASE.with_(**{axis: 3 * getattr(BASE, axis)})
    prediction = predicted(grown, recording(timed("a", case=BASE, train=2.0)))
    assert prediction is not None and prediction.words == f"{letter}^1 assumed"
    assert prediction.value == pytest.approx(6e6)


def test_neurons_that_were_never_swept_are_counted() -> None:
    grown = BASE.with_(neurons=128, time_steps=20)
    ratios = []

    def counted(before: Case, after: Case) -> float:
        ratios.append((before.neurons, after.neurons, before.time_steps, after.time_steps))
        return 4.0

    prediction = predicted(grown, recording(timed("a", case=BASE, train=2.0)), counted=counted)
    assert prediction is not None and prediction.words == "T^1 assumed, N counted"
    assert prediction.value == pytest.approx(2e6 * 4 * 2)
    assert ratios == [(64, 128, 10, 10)], "one size changes at a time"


def test_nearest_case_is_scaled() -> None:
    near = timed("a", case=BASE.with_(batch=32), train=7.0)
    prediction = predicted(BASE.with_(batch=64, layers=2), recording(timed("a", case=BASE, train=1.0), near))
    assert prediction is not None and prediction.words.startswith("B^0.936, L^1 assumed")


def test_other_work_is_no_evidence() -> None:
    record = recording(timed("a", case=BASE, train=2.0), timed("b", case=BASE.with_(threads=2), train=2.0))
    for other in (BASE.with_(dtype="float64"), BASE.with_(reset="zero", detach_reset=True), BASE.with_(threads=2)):
        assert predicted(other, record) is None
    assert predicted(BASE.with_(seed=8), record) is not None, "other content of equal work"


def test_later_recording_counts() -> None:
    older, newer = (recording(timed("a", case=BASE, train=ms), name=name) for ms, name in ((1.0, "old"), (2.0, "new")))
    assert predicted(BASE, older, newer) == Prediction(2e6, "new")


def test_other_machine_gives_memory_and_no_time() -> None:
    many = BASE.with_(threads=16)
    foreign = recording(timed("a", case=many, train=2.0), weighed("a", case=many, host_mib=6), model="a server")
    assert predicted(many, foreign) is None
    peak = predicted(BASE, foreign, metric="host_peak")
    assert peak is not None and peak.value == 6 << 20, "threads do not matter for memory"


def test_own_machine_counts_before_others() -> None:
    foreign = recording(weighed("a", case=BASE, host_mib=9), name="z", model="a server")
    own = recording(weighed("a", case=BASE, host_mib=6), name="a")
    assert predicted(BASE, own, foreign, metric="host_peak") == Prediction(6 << 20, "a")


def test_sides_of_an_ab_test_are_no_evidence() -> None:
    assert predicted(BASE, recording(timed("a", case=BASE, train=2.0, side="new"))) is None


def test_nothing_recorded_predicts_nothing() -> None:
    assert predicted(BASE) is None
    assert Evidence([]).least(("a", "default"), ("train", "time")) is None
