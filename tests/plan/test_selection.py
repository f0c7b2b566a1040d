"""The conditions of --only."""

import pytest

from snnbench.adapter.contender import Work
from snnbench.plan.selection import SelectionError, of_cases, parse
from tests import fakes

CASE = fakes.CASE.with_(
    neurons=512,
    batch=16,
    time_steps=100,
    threads=2,
    beta=0.9,
    reset="zero",
    detach_reset=True,
    input_rate=0.1,
    seed=1,
)
BOX = Work(CASE, "norse", "box")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("neurons=512", True),
        ("neurons==512", True),
        ("neurons = 512.0", True),
        ("neurons=5", False),
        ("neurons=256|512", True),
        ("neurons!=256|512", False),
        ("neurons!=256", True),
        ("neurons<512", False),
        ("neurons<=512", True),
        ("neurons>99", True),  # as text, "512" > "99" is false
        ("neurons>=513", False),
        ("beta>0.85", True),
        ("neurons>=512,dtype=float32", True),
        ("neurons>=512, dtype=float64", False),
        ("dtype=float32|float64", True),
        ("dtype!=float32|float64", False),
        ("profile=zero", True),
        ("profile=zero-attached", False),
        ("reset=zero", True),
        ("detach_reset=true", True),
        ("input_gradient=false", False),
        ("device=cuda", False),
        ("library=norse", True),
        ("library=nor", False),
        ("library=nor*", True),
        ("library=*se", True),
        ("library=norse/box", True),
        ("library=norse/lif", False),
        ("library=*/box", True),
        ("library=sinabs|norse/*", True),
        ("library!=norse", False),
        ("library!=norse/lif", True),
        ("variant=box", True),
        ("variant=l*", False),
    ],
)
def test_a_condition_holds_or_does_not(expression: str, expected: bool) -> None:
    assert parse(expression)(BOX) is expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        *[("neurons=512", True), ("neurons>=8,profile=zero", True), ("dtype!=float64", True)],
        *[("library=norse", False), ("variant=box", False), ("neurons=512,variant!=box", False)],
        *[("library!=norse,neurons=512", False), (" variant = box ", False)],
    ],
)
def test_condition_on_a_contender_is_not_of_cases(expression: str, expected: bool) -> None:
    assert of_cases(expression) is expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("neuron=5", "--only: unknown key 'neuron' (did you mean 'neurons'?)"),
        ("Neurons=5", "--only: unknown key 'Neurons' (did you mean 'neurons'?)"),
        ("time-steps=5", "--only: unknown key 'time-steps' (did you mean 'time_steps'?)"),
        ("neurons=many", "--only: neurons: 'many' is not a number"),
        ("neurons<many", "--only: neurons: 'many' is not a number"),
        ("neurons<5|6", "--only: neurons< takes one value, not 2"),
        ("dtype<float64", "--only: dtype has no order (expected dtype=... or dtype!=...)"),
        (
            "dtype=float23",
            "--only: dtype: 'float23' is not one of float32, float64, bfloat16, float16 (did you mean 'float32'?)",
        ),
        (
            "profile=substract",
            "--only: profile: 'substract' is not one of subtract, zero, subtract-detached, zero-attached, none "
            "(did you mean 'subtract'?)",
        ),
        ("detach_reset=1", "--only: detach_reset: '1' is not one of true, false"),
        ("library=", "--only: 'library=' lacks a value"),
        ("library=norse|", "--only: 'library=norse|' lacks a value"),
        ("norse", "--only: 'norse': expected a condition such as neurons>=512 or library=norse|sinabs"),
        ("", "--only: '': expected a condition such as neurons>=512 or library=norse|sinabs"),
        ("neurons=5,", "--only: '': expected a condition such as neurons>=512 or library=norse|sinabs"),
    ],
)
def test_mistake_in_a_condition_is_one_line(expression: str, expected: str) -> None:
    with pytest.raises(SelectionError) as caught:
        parse(expression)
    assert str(caught.value) == expected
