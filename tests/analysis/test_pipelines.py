"""Tests of the models' times beside the measured times of a pipeline, on numbers worked out by hand."""

from typing import Any

from snnbench.analysis.pipelines import Pipeline, PipelineTimes, pipelines
from snnbench.analysis.results import results_by_case
from snnbench.recording.record import Record
from tests.fakes import CASE, DIVIDED
from tests.recordings import deviating, failed, timed

TWO, FOUR = DIVIDED.with_(devices=2), DIVIDED.with_(devices=4)
TEMPORAL: dict[str, Any] = {"settings": {"split": "temporal"}}


def modelled(*records: Record, phase: str = "train") -> list[Pipeline]:
    results = results_by_case(records)
    return pipelines(results, results, phase)


def test_models_start_from_one_device_of_the_same_contender() -> None:
    """Ts = 12 ms: 6 and 3 by the paper; 4 and 12 blocks make these 6 (1 + 1/4) and 3 (1 + 3/12)."""
    records = [timed("a", case=case, train=ms, **TEMPORAL) for case, ms in ((DIVIDED, 12.0), (TWO, 8.0), (FOUR, 7.0))]
    records += [timed("b", case=case, train=1.0, settings={"split": "batch"}) for case in (DIVIDED, TWO, FOUR)]
    by_devices = {one.case.processes: one for one in modelled(*records)}
    assert by_devices == {
        1: Pipeline(DIVIDED, "a", 12e6, PipelineTimes(12e6, 12e6)),
        2: Pipeline(TWO, "a", 8e6, PipelineTimes(6e6, 7.5e6)),
        4: Pipeline(FOUR, "a", 7e6, PipelineTimes(3e6, 3.75e6)),
    }


def test_single_column_cannot_overlap() -> None:
    """One block: the second device starts when the first has ended."""
    alone = DIVIDED.with_(batch=1, neurons=1)
    records = [timed("a", case=alone.with_(devices=k), train=12.0, **TEMPORAL) for k in (1, 2)]
    assert {one.case.processes: one.predicted.filled for one in modelled(*records)} == {1: 12e6, 2: 12e6}


def test_undivided_work_has_no_model() -> None:
    assert modelled(*(timed("a", case=CASE.with_(neurons=n), train=1.0, **TEMPORAL) for n in (1, 2))) == []


def test_older_record_without_a_split_has_no_model() -> None:
    assert modelled(*(timed("a", case=case, train=1.0) for case in (DIVIDED, TWO))) == []


def test_models_need_a_time_of_one_device() -> None:
    two = timed("a", case=TWO, train=8.0, **TEMPORAL)
    single = timed("a", case=DIVIDED, train=12.0, **TEMPORAL)
    assert modelled(two) == []
    assert modelled(two, failed("a", "crash", "died", case=DIVIDED, **TEMPORAL)) == []
    assert modelled(two, deviating("a", case=DIVIDED, train=12.0, **TEMPORAL)) == []
    shorter = DIVIDED.with_(time_steps=5)
    assert [one.case for one in modelled(two, timed("a", case=shorter, train=12.0, **TEMPORAL))] == [shorter]
    assert modelled(two, single, phase="forward") == []
    assert len(modelled(two, single)) == 2


def test_failed_pipeline_has_models_and_no_time() -> None:
    records = [timed("a", case=DIVIDED, train=12.0, **TEMPORAL), failed("a", "crash", "died", case=TWO)]
    _, two = sorted(modelled(*records), key=lambda one: one.case.processes)
    assert two == Pipeline(TWO, "a", None, PipelineTimes(6e6, 7.5e6))
