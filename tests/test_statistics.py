"""Statistics on lists that were reckoned by hand."""

import pytest

from snnbench.statistics import Summary, summarise, trial_median


@pytest.mark.parametrize(
    ("trials", "expected"),
    [
        ([3.0, 1.0, 2.0, 5.0, 4.0], Summary(median=3.0, low=2.0, high=4.0, count=5)),
        ([4.0, 1.0, 3.0, 2.0], Summary(median=2.5, low=1.75, high=3.25, count=4)),
        ([1.0, 2.0], Summary(median=1.5, low=1.25, high=1.75, count=2)),
        ([7.0], Summary(median=7.0, low=7.0, high=7.0, count=1)),
        ([2.0, 2.0, 2.0], Summary(median=2.0, low=2.0, high=2.0, count=3)),
        ([1.0, 1.0, 1.0, 100.0], Summary(median=1.0, low=1.0, high=25.75, count=4)),
    ],
    ids=["odd", "even", "two", "one", "all equal", "an outlier"],
)
def test_a_summary_is_the_median_and_the_quartiles(trials: list[float], expected: Summary) -> None:
    """Quartiles stand at (count - 1) / 4 and 3 (count - 1) / 4 of the sorted values, between them in proportion.

    Hyndman & Fan 1996, definition 7.
    """
    assert summarise(trials) == expected


def test_without_trials_there_is_no_summary() -> None:
    with pytest.raises(ValueError, match="no trials"):
        summarise([])


@pytest.mark.parametrize(
    ("repetitions", "passes", "expected"),
    [([90, 10, 20], 1, 20.0), ([30, 10, 20, 90], 1, 25.0), ([90, 10, 20], 10, 2.0), ([8], 4, 2.0), ([6, 6, 6], 3, 2.0)],
    ids=["odd", "even", "several passes", "one", "all equal"],
)
def test_a_trial_is_the_median_of_its_repetitions_by_pass(
    repetitions: list[float], passes: int, expected: float
) -> None:
    assert trial_median(repetitions, passes) == expected
