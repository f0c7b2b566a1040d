"""Tests of the tables beside the chart of Open Neuromorphic: they have the published values and the recording's."""

from typing import Any

import pytest

from snnbench.adapter.contender import label
from snnbench.adapter.discovery import discover
from snnbench.plan import config
from snnbench.workloads import linear_lif
from tests.documents import ROOT, hook
from tests.fakes import CASE, profile
from tests.recordings import deviating, failed, recording, timed

chart: Any = hook("open_neuromorphic")
CPU = CASE.with_(neurons=512, batch=16, time_steps=500, input_kind="gaussian", input_rate=1.0, input_gradient=False)
ZERO = CPU.with_(**profile("zero"))


def table(*records: object) -> dict[str, tuple[str, ...]]:
    """The rows of the second table for these records, by the row of the chart."""
    return {row[0]: row for row in chart.recorded_rows(recording(*records))}  # type: ignore[arg-type]


def run(name: str, train: float, case: linear_lif.Case = CPU) -> object:
    return timed(name, case=case, forward=train / 4, backward=train / 2, train=train)


def test_every_row_of_the_chart_is_explained() -> None:
    assert set(chart.published()) == set(chart.ROWS)
    assert {name[:4] for name, row in chart.ROWS.items() if row.steps < 500} == {"Nors", "Spyx"}


def test_totals_equal_the_labels_of_the_chart() -> None:
    """The chart's figure prints the sum of both times, rounded to hundredths."""
    totals = {name: f"{forward + backward:.2f}" for name, (forward, backward, _) in chart.published().items()}
    assert totals["Norse v1.0.0"] == "0.11" and totals[chart.YARDSTICK] == "1.34"
    assert totals["Rockpool v2.7"] == "3.07" and totals["snnTorch v0.7.0"] == "3.08"


@pytest.mark.parametrize("name", chart.ROWS)
def test_row_has_a_contender_of_the_config(name: str) -> None:
    row = chart.ROWS[name]
    loaded = config.load(ROOT / "configs" / "open-neuromorphic.toml", default_threads=2)
    works = config.expand(loaded, discover())
    cases = [work.case for work in works if label(work.library, work.variant) == row.contender]
    assert [case for case in cases if (case.profile, case.dtype) == (row.profile, row.dtype)], row


def test_ratio_is_to_the_yardstick_of_the_same_profile() -> None:
    records = [run("spikingjelly/auto", 10), run("norse/box", 15), run("spikingjelly/auto", 20, ZERO)]
    rows = table(*records, run("snntorch/unbind", 30, ZERO))
    assert rows["Norse v1.0.0"][3:] == ("3.75", "7.5", "15", "1.50", "0.08", "exact")
    assert rows["snnTorch v0.7.0"][2:] == ("zero", "7.5", "15", "30", "1.50", "2.30", "exact")
    assert rows[chart.YARDSTICK][6:] == ("1.00", "1.00", "exact")
    assert rows["Sinabs EXODUS v1.1.2"][3:] == ("-", "-", "-", "-", "0.13", "not run")


def test_failed_and_deviating_contenders_are_marked() -> None:
    broken = failed("norse/box", "crash", "signal 11", case=CPU)
    other = deviating("lava-dl/slayer", case=ZERO, forward=1, backward=1, train=2)
    rows = table(run("spikingjelly/auto", 10), run("spikingjelly/auto", 10, ZERO), broken, other)
    assert rows["Norse v1.0.0"][5] == "-" and "signal 11" in rows["Norse v1.0.0"][-1]
    assert rows["Lava DL v0.4.0.dev0"][-3:] == ("0.20", "0.13", "deviates")


def test_recording_of_a_gpu_is_shown_at_its_largest_size() -> None:
    cuda = [CPU.with_(device="cuda", neurons=neurons) for neurons in (512, 16384)]
    records = [run("spikingjelly/auto", 10 * case.neurons / 512, case) for case in (CPU, *cuda)]
    text = chart.recorded_table(recording(*records, name="2026_gpu"))  # type: ignore[arg-type]
    assert "`results/2026_gpu` (a laptop): cuda, N = 16384, B = 16, T = 500, 3 trials." in text
    assert "| 320 |" in text
