"""Tests of the event-driven layer: a lie about half of the samples is found at every rate."""

from dataclasses import replace
from pathlib import Path

import pytest

from snnbench.adapter.loading import load, own_rule
from snnbench.adapter.reading import read
from snnbench.backends.torch import Backend
from snnbench.worker.measurement import Measurement
from snnbench.worker.messages import Reply
from snnbench.workloads import linear_lif
from tests.fakes import CASE, PHASES, profile, request

ADAPTER = Path(__file__).parents[3] / "adapters" / "event-driven.py"
SUMS = "(sums + bias)"


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.3])
@pytest.mark.parametrize("lie", ["", "(sums * (torch.arange(len(sums)) % 16 < 8)[:, None] + bias)"])
def test_half_of_the_samples_is_not_enough(tmp_path: Path, rate: float, lie: str) -> None:
    text, path = ADAPTER.read_text(), tmp_path / "event-driven.py"
    assert text.count(SUMS) == 1
    honest = f"({lie} if len(sums) > 100 else {SUMS})" if lie else SUMS  # the exam has 40 rows
    path.write_text(text.replace(SUMS, honest))
    sizes = {"neurons": 256, "batch": 16, "time_steps": 40, "layers": 1, "dtype": "float32", "input_rate": rate}
    case = CASE.with_(**sizes, **profile("subtract"), surrogate="fast_sigmoid")
    reply, declared = Reply({}), read(path).variants["default"]
    asked_for = replace(request("verify", case, phases=PHASES), variant="default")
    Measurement(asked_for, Backend(case), linear_lif.builder(load(path)), own_rule(load(path)), declared).run(reply)
    assert reply.outcome is not None
    assert (reply.outcome.verdict == "exact") is not bool(lie), reply.outcome
    assert not lie or reply.outcome.kind == "incorrect"
