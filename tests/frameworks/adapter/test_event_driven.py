"""Tests of the event-driven layer: a lie about half of the samples is found, and spikes of each layer are counted."""

from dataclasses import replace
from pathlib import Path

import pytest

from snnbench.adapter.loading import load, own_rule
from snnbench.adapter.reading import read
from snnbench.backends.torch import Backend
from snnbench.cases import reference
from snnbench.worker import floor
from snnbench.worker.measurement import CHECKED_INPUT, Measurement
from snnbench.worker.messages import Reply
from snnbench.workloads import linear_lif
from snnbench.workloads.linear_lif import Case
from tests.fakes import CASE, PHASES, profile, request

ADAPTER = Path(__file__).parents[3] / "adapters" / "event-driven.py"
SUMS = "(sums + bias)"


def verified(path: Path, case: Case) -> Reply:
    """The reply of the adapter at this path."""
    reply, declared = Reply({}), read(path).variants["default"]
    asked_for = replace(request("verify", case, phases=PHASES), variant="default")
    Measurement(asked_for, Backend(case), linear_lif.builder(load(path)), own_rule(load(path)), declared).run(reply)
    return reply


@pytest.mark.parametrize(("layers", "rate"), [(1, 0.01), (1, 0.05), (1, 0.3), (2, 0.05)])
@pytest.mark.parametrize("lie", ["", "(sums * (torch.arange(len(sums)) % 16 < 8)[:, None] + bias)"])
def test_half_of_the_samples_is_not_enough(tmp_path: Path, layers: int, rate: float, lie: str) -> None:
    text, path = ADAPTER.read_text(), tmp_path / "event-driven.py"
    assert text.count(SUMS) == 1
    honest = f"({lie} if len(sums) > 100 else {SUMS})" if lie else SUMS  # the exam has 40 rows
    path.write_text(text.replace(SUMS, honest))
    sizes = {"neurons": 256, "batch": 16, "time_steps": 40, "layers": layers, "dtype": "float32", "input_rate": rate}
    case = CASE.with_(**sizes, **profile("subtract"), surrogate="fast_sigmoid")
    reply = verified(path, case)
    assert reply.outcome is not None
    assert (reply.outcome.verdict == "exact") is not bool(lie), reply.outcome
    assert not lie or reply.outcome.kind == "incorrect"


@pytest.mark.parametrize("layers", [2, 3])
def test_proof_counts_the_spikes_of_each_layer(layers: int) -> None:
    """The whole answer of two layers is predicted, and three layers are judged one by one."""
    sizes = {"neurons": 64, "batch": 4, "time_steps": 40, "layers": layers, "input_rate": 0.05}
    case = CASE.with_(**sizes, **profile("subtract"), surrogate="fast_sigmoid")
    problem, reply = linear_lif.Problem(case), verified(ADAPTER, case)
    traces = reference.network_forward(problem.layers(), problem.input(CHECKED_INPUT), case)
    assert floor.rates_of(reply.checks) == pytest.approx({str(n): each.spikes.mean() for n, each in enumerate(traces)})
