"""Tests of the tables beside the chart of Open Neuromorphic: they have the published values and the recording's."""

from typing import Any

import pytest

from snnbench.adapter.contender import label
from snnbench.adapter.discovery import discover
from snnbench.plan import config
from snnbench.report.site.published import Beside, load
from snnbench.workloads import linear_lif
from tests.documents import ROOT, hook
from tests.fakes import CASE, profile
from tests.recordings import deviating, failed, recording, timed

chart: Any = hook("open_neuromorphic")
PUBLISHED = load("open-neuromorphic")
YARDSTICK = "SpikingJelly PyTorch v0.0.0.0.15"
CPU = CASE.with_(neurons=512, batch=16, time_steps=500, input_kind="gaussian", input_rate=1.0, input_gradient=False)
ZERO = CPU.with_(**profile("zero"))


def table(*records: object) -> dict[str, Beside]:
    """The rows of the second table for these records, by the row of the chart."""
    return {one.row.name: one for one in chart.rows(recording(*records))}  # type: ignore[arg-type]


def run(name: str, train: float, case: linear_lif.Case = CPU) -> object:
    return timed(name, case=case, forward=train / 4, backward=train / 2, train=train)


def test_totals_equal_the_labels_of_the_chart() -> None:
    """The chart's figure prints the sum of both times, rounded to hundredths."""
    totals = {row.name: f"{row.value:.2f}" for row in PUBLISHED.group[0].row if row.value}
    assert totals["Norse v1.0.0"] == "0.11" and totals[YARDSTICK] == "1.34"
    assert totals["Rockpool v2.7"] == "3.07" and totals["snnTorch v0.7.0"] == "3.08"


@pytest.mark.parametrize("name", ["open-neuromorphic", "temporal-fusion", "temporal-fusion-table1", "loading"])
def test_row_has_a_contender_of_the_config(name: str) -> None:
    published = load(name)
    assert published
    works = config.expand(config.load(ROOT / "configs" / f"{name}.toml", default_threads=2), discover())
    for group in published.group:
        for row in group.row:
            cases = [work.case for work in works if label(work.library, work.variant) in row.contenders]
            fields = {**group.case, **row.case}
            assert [case for case in cases if all(getattr(case, key) == value for key, value in fields.items())], row


def test_ratio_is_to_the_yardstick_of_the_same_profile() -> None:
    records = [run("spikingjelly/auto", 10), run("norse/box", 15), run("spikingjelly/auto", 20, ZERO)]
    rows = table(*records, run("snntorch/unbind", 30, ZERO))
    norse, snntorch, missing = (rows[name] for name in ("Norse v1.0.0", "snnTorch v0.7.0", "Sinabs EXODUS v1.1.2"))
    assert (list(norse.ratios), norse.word, chart.there(norse)) == ([1.5], "exact", "0.08")
    assert (list(snntorch.ratios), chart.there(snntorch)) == ([1.5], "2.30")
    assert rows[YARDSTICK].ratios == [1, 1] and rows[YARDSTICK].times_ns == [10e6, 20e6]
    assert (list(missing.times_ns), missing.word) == ([], "")


def test_failed_and_deviating_contenders_are_marked() -> None:
    broken = failed("norse/box", "crash", "signal 11", case=CPU)
    other = deviating("lava-dl/slayer", case=ZERO, train=2)
    rows = table(run("spikingjelly/auto", 10), run("spikingjelly/auto", 10, ZERO), broken, other)
    assert not rows["Norse v1.0.0"].times_ns and "signal 11" in rows["Norse v1.0.0"].word
    assert (rows["Lava DL v0.4.0.dev0"].ratios, rows["Lava DL v0.4.0.dev0"].word) == ([0.2], "deviates")


def test_recording_of_a_gpu_is_shown_at_its_largest_size() -> None:
    cuda = [CPU.with_(device="cuda", neurons=neurons) for neurons in (512, 16384)]
    records = [run("spikingjelly/auto", 10 * case.neurons / 512, case) for case in (CPU, *cuda)]
    text = chart.recorded_table(recording(*records, name="2026_gpu"))  # type: ignore[arg-type]
    assert "`results/2026_gpu` (a laptop): cuda, N = 16384, B = 16, T = 500, 3 trials." in text
    assert "| 320 |" in text
