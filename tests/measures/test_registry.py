"""Tests of the measures as the registry finds them."""

from snnbench import measures
from snnbench.worker.measure import Measure, OwnCell


def test_halves_of_each_measure_agree_on_when_it_is_measured() -> None:
    """A measure that nobody asks for and that is not always done would never be measured."""
    assert measures.workers().keys() <= measures.harnesses().keys()
    for name, half in measures.workers().items():
        if issubclass(half.MEASURE, Measure):
            assert half.MEASURE.IS_ALWAYS is not measures.harnesses()[name].is_asked_for
        else:
            assert issubclass(half.MEASURE, OwnCell) and measures.harnesses()[name].cells == name
