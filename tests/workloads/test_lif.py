"""Tests of the workload of neurons alone: its problem, its exam, its floor, and lies of a neuron without a product."""

from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import numpy as np
import pytest

from snnbench import workloads
from snnbench.cases import reference
from snnbench.cases.case import PROFILES
from snnbench.cases.outcome import Outcome
from snnbench.proof.extent import Extent, extent
from snnbench.proof.spotcheck import SpotCheck
from snnbench.worker import floor
from snnbench.worker.messages import Measure
from snnbench.workloads import lif
from tests.answers import answer_to
from tests.examination import reply_to
from tests.fakes import CASE, LIF, PHASES, profile, request

NEURON = '''
"""A fake library that gives its neuron."""

import numpy as np

from snnbench.backends.numpy import Neuron
from snnbench.cases import reference

BACKEND = "numpy"


def right(case):
    def forward(current):
        trace = reference.forward(current, case)
        return trace.spikes, trace

    return Neuron(forward, lambda trace, cotangent: reference.backward(cotangent, trace, case))


def neuron(case, variant):
'''


def fake(body: str = "return right(case)") -> str:
    """A fake library with this body of `neuron`."""
    return NEURON + indent(dedent(body), "    ") + "\n"


def altered(forward: str = "return honest.forward(x)", backward: str = "return honest.backward(kept, g)") -> str:
    """The honest neuron with another forward or backward pass; `large` is true beyond the size of the exam."""
    return fake(
        f"honest = right(case)\nlarge = case.neurons > 37\nstate = {{}}\n\n"
        f"def forward(x):\n{indent(dedent(forward), '    ')}\n\n"
        f"def backward(kept, g):\n{indent(dedent(backward), '    ')}\n\n"
        "return Neuron(forward, backward)"
    )


@pytest.mark.parametrize("measure", ["verify", "time", "memory"])
@pytest.mark.parametrize("name", PROFILES)
def test_honest_neuron_is_exact(tmp_path: Path, name: str, measure: Measure) -> None:
    reply = reply_to(tmp_path, fake(), request(measure, LIF.with_(**profile(name))))
    assert reply.outcome == Outcome(status="measured", verdict="exact")
    trained = next(name for name in ("spot-train", "spot-backward") if name in reply.checks)
    assert reply.checks[trained]["compared"] == LIF.updates
    assert set(reply.checks[trained]["gradient_errors"]) == {"input"}
    assert set(reply.checks["exam-1"]["gradient_errors"]) == {"input"} and "exam-2" not in reply.checks
    assert set(reply.peaks) == ({"copy", "call"} if measure == "time" else set())


LIES = {
    "decays by another factor": fake("return right(case.with_(beta=case.beta - 0.01))"),
    "decays by another factor beyond the exam": fake(
        "return right(case.with_(beta=case.beta - 0.01) if case.neurons > 37 else case)"
    ),
    "resets in another way": fake("return right(case.with_(reset='zero'))"),
    "detaches the reset": fake("return right(case.with_(detach_reset=not case.detach_reset))"),
    "has another surrogate": fake("return right(case.with_(slope=case.slope * 1.05))"),
    "leaves the last sample out": altered(
        "spikes, kept = honest.forward(x)\nif large:\n    spikes[:, -1] = 0\nreturn spikes, kept"
    ),
    "leaves the last step out": altered(
        "spikes, kept = honest.forward(x)\nif large:\n    spikes[-1] = 0\nreturn spikes, kept"
    ),
    "answers for the first input again": altered(
        "return state.setdefault('answer', honest.forward(x)) if large else honest.forward(x)"
    ),
    "gives a single neuron another gradient": altered(
        backward="got = honest.backward(kept, g)\nif large:\n    got[:, :, 3] *= 1.01\nreturn got"
    ),
    "ignores the order of time in its gradient": altered(
        backward="return honest.backward(kept, g[::-1] if large else g)"
    ),
    "gives no gradient": altered(backward="return None"),
    "carries the state from pass to pass": altered(
        "before = state.get('x', x[:0])\nstate['x'] = x[-3:].copy()\n"
        "spikes, kept = honest.forward(np.concatenate([before, x]))\n"
        "return (spikes[len(before):], kept) if large else honest.forward(x)"
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_lie_is_incorrect_and_has_no_time(tmp_path: Path, lie: str) -> None:
    reply = reply_to(tmp_path, LIES[lie], request("time", LIF))
    assert reply.outcome is not None and reply.outcome.kind == "incorrect", reply.outcome
    assert not reply.phases and not reply.peaks


def test_build_without_weights_runs_alone(tmp_path: Path) -> None:
    build = "def build(case, weights, variant):\n    return made(case, variant).alone(case.neurons)\n"
    reply = reply_to(tmp_path, fake().replace("def neuron(", "def made(") + build, request("verify", LIF))
    assert reply.outcome == Outcome(status="measured", verdict="exact")


def test_neuron_alone_gives_a_stack_of_linear_layers(tmp_path: Path) -> None:
    reply = reply_to(tmp_path, fake(), request("verify", CASE.with_(layers=2)))
    assert reply.outcome == Outcome(status="measured", verdict="exact")


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("beta", [0.2, 0.9])
def test_currents_fire_at_any_threshold(name: str, beta: float) -> None:
    for threshold in (0.3, 1.0, 8.0):
        case = LIF.with_(beta=beta, threshold=threshold, neurons=500, **profile(name))
        spikes = reference.forward(lif.Problem(case).input(0).astype(np.float64), case).spikes
        assert 0.05 < spikes.mean() < 0.4, (name, beta, threshold)


@pytest.mark.parametrize("name", PROFILES)
def test_exam_is_exact_in_float32(name: str) -> None:
    [problem] = lif.exams(LIF.with_(**profile(name)))
    for which in (0, 1):
        currents = problem.input(which)
        assert np.abs(currents).max() <= 2.25 and np.array_equal(currents * 16, np.round(currents * 16))
        exact = reference.forward(currents.astype(np.float64), problem.case)
        assert np.array_equal(exact.potential, exact.potential.astype(np.float32)), "24 bits hold each potential"
        assert np.abs(exact.potential - problem.case.threshold).min() >= 2.0**-13
        assert 0.1 < exact.spikes.mean() < 0.6


def test_floor_counts_bytes_only() -> None:
    values = LIF.time_steps * LIF.batch * LIF.neurons
    bytes_ = {phase: floor.least_bytes(LIF, phase) for phase in PHASES}
    assert bytes_ == {"inference": 8 * values, "forward": 8 * values, "backward": 12 * values, "train": 16 * values}
    assert floor.flops(LIF, "train") == 0 and floor.needed(LIF, PHASES) == ["copy", "call"]
    peaks = {"copy": floor.Peak(1000, 1, 0, [500]), "call": floor.Peak(2, 1, 0, [10**9])}
    assert floor.floor_ns(LIF, "train", peaks) == 16 * values / 2, "an empty call is no part of it"


def test_beyond_the_budget_neurons_alone_are_compared() -> None:
    large = LIF.with_(neurons=100_000, time_steps=256, batch=1)
    part = extent(large, 2 * 10**9)
    assert part.samples == 0 and 1000 < part.neurons < large.neurons
    assert extent(LIF, 2 * 10**9) == Extent(LIF.neurons, LIF.batch)


@pytest.mark.parametrize("wrong", ["spikes", "input"])
def test_sampled_check_sees_every_compared_neuron(wrong: str) -> None:
    case = LIF.with_(neurons=400)
    problem = lif.Problem(case)
    answer: Any = answer_to(problem, 0, 0)
    assert SpotCheck(problem, 0).check(answer).correct
    check = SpotCheck(problem, 0, seed=5)
    assert check.extent.samples == 0 and check.extent.neurons < 400
    array = getattr(answer, wrong)
    array[:, :, check._few.neurons[-1]] = 0.5
    finding = check.check(answer)
    assert not finding.correct and finding.neurons == check.extent.neurons


def test_every_case_decodes_to_itself() -> None:
    for case in (CASE, LIF):
        assert workloads.decode(case.as_dict()) == case
        assert workloads.of(case).Case is type(case)
    with pytest.raises(TypeError, match="unknown workload 'lyf'"):
        workloads.decode({"workload": "lyf"})


def test_name_of_a_linear_case_is_that_of_old_recordings() -> None:
    assert CASE.with_(neurons=256).key == "6336e512df498c2c"
