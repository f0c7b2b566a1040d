"""Tests of run-to-run noise and of the smallest detectable change."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_ind

from snnbench.analysis import noise
from snnbench.analysis.cells import ComparedCell, Side, judged
from snnbench.analysis.decision import Thresholds
from snnbench.analysis.noise import Noise, by_chance, detectable
from snnbench.report.text.noise_table import table
from snnbench.worker.durations import summarise
from tests.fakes import CASE
from tests.recordings import recording, timed


def test_spread_is_of_logarithms_pooled_over_cases() -> None:
    other = CASE.with_(neurons=96)
    records = [timed("a", trial, train=ms) for trial, ms in enumerate((1.0, math.e))]
    records += [timed("a", trial, other, train=ms) for trial, ms in enumerate((5.0, 5.0, 5.0))]
    estimate = noise.measured(recording(*records, name="aa"))
    # variances 1/2 and 0
    assert estimate.spreads == pytest.approx({"cpu train": 0.5})
    assert (estimate.recording, estimate.trials) == ("aa", 2)


def test_spreads_of_cpu_and_gpu_are_separate() -> None:
    card = CASE.with_(device="cuda")
    records = [timed("a", trial, train=ms) for trial, ms in enumerate((1.0, math.e))]
    records += [timed("a", trial, card, train=ms) for trial, ms in enumerate((1.0, 1.0))]
    estimate = noise.measured(recording(*records))
    assert estimate.spreads == pytest.approx({"cpu train": math.sqrt(0.5), "cuda train": 0.0})
    assert estimate.by_chance("cuda", "train", 5) == 0.0
    assert (estimate.by_chance("cpu", "train", 5) or 0) > 1
    assert estimate.by_chance("cpu", "forward", 5) is estimate.by_chance("tpu", "train", 5) is None


def test_one_trial_has_no_spread() -> None:
    with pytest.raises(ValueError, match="nothing is known of their spread"):
        noise.measured(recording(timed("a", train=1.0)))
    assert by_chance(0.02, 1) == detectable(0.02, 1) == math.inf


def test_chance_difference_is_students_critical_value() -> None:
    """2.306 with 8 degrees of freedom and 12.706 / 4.303 with 2, from any table, times sqrt(2 / n) times the spread."""
    assert by_chance(0.01, 5) == pytest.approx(math.expm1(2.306 * 0.01 * math.sqrt(2 / 5)), rel=1e-3)
    assert by_chance(0.01, 2) == pytest.approx(math.expm1(4.303 * 0.01), rel=1e-3)
    assert by_chance(0.0, 5) == 0.0


@pytest.mark.parametrize("trials", [3, 5, 10])
def test_detectable_change_passes_the_bar_in_80_percent(trials: int) -> None:
    """Mean logarithms pass in 80 % of cases or more; the medians of the shown ratio pass a little less often."""
    random = np.random.default_rng(0)
    spread, change = 0.05, math.log1p(detectable(0.05, trials))
    old, new = random.normal(0, spread, (4000, trials)), random.normal(change, spread, (4000, trials))
    bar = math.log1p(by_chance(spread, trials))
    assert (new.mean(1) - old.mean(1) > bar).mean() > 0.79
    assert (np.median(new, 1) - np.median(old, 1) > bar).mean() > 0.74
    same = random.normal(0, spread, (4000, trials))
    assert (abs(same.mean(1) - old.mean(1)) > bar).mean() < 0.05


def test_compare_finds_a_detectable_change_in_two_of_three() -> None:
    """The change must pass compare's own test, too. A bar as large as the change would pass at most half of these."""
    random = np.random.default_rng(1)
    known, factor, words = Noise("aa", 10, {"cpu train": 0.05}), 1 + detectable(0.05, 5), []
    for _ in range(300):
        old, new = (summarise(random.lognormal(0, 0.05, 5).tolist()) for _ in range(2))
        new = summarise([factor * trial for trial in new.trials])
        cell = ComparedCell(CASE, "a", "train", "time", Side(old, []), Side(new, []))
        words += [one.word for one in judged([cell], Thresholds(), known.by_chance)]
    assert words.count("slower") / len(words) == pytest.approx(0.66, abs=0.07)


def test_detectable_change_agrees_with_a_table() -> None:
    """Cohen 1988, table 2.4.1: two groups of 17 show d = 1 with power 0.8 at alpha 0.05, two-sided."""
    assert math.log1p(detectable(1.0, 17)) == pytest.approx(1.0, abs=0.01)
    assert detectable(0.0, 5) == 0.0
    assert detectable(0.02, 3) > detectable(0.02, 5) > detectable(0.02, 10) > 0.02


def test_power_at_the_detectable_change_is_80_percent() -> None:
    random = np.random.default_rng(0)
    effect = math.log1p(detectable(0.02, 5))
    old, new = random.normal(0, 0.02, (4000, 5)), random.normal(effect, 0.02, (4000, 5))
    power = (ttest_ind(old, new, axis=1, equal_var=False).pvalue < 0.05).mean()
    assert power == pytest.approx(0.8, abs=0.03), "Welch's t has a little less power than Student's"


def test_noise_is_stored_by_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNNBENCH_HOME", str(tmp_path / "home"))
    assert noise.known("a laptop") is None
    first, second = Noise("one", 10, {"cpu train": 0.02}), Noise("two", 10, {"cpu train": 0.03})
    noise.keep("a laptop", first)
    path = noise.keep("a server", second)
    assert (noise.known("a laptop"), noise.known("a server"), noise.known("another")) == (first, second, None)
    noise.keep("a laptop", second)
    assert noise.known("a laptop") == second
    old = '{"a laptop": {"recording": "aa", "trials": 10, "spreads": {"train": 0.02}}}'  # without a device
    for broken in ("{", '{"a laptop": {"spreads": 1}}', '{"a laptop": 3}', old):
        path.write_text(broken)
        with pytest.raises(ValueError, match="delete it and run `snnbench doctor --aa` again"):
            noise.known("a laptop")


def test_table_has_columns_for_each_number_of_trials() -> None:
    header, _, row = table(Noise("aa", 10, {"cpu train": 0.02}), (3, 5)).splitlines()
    assert header == (
        "| phase | spread between trials | by chance with 3 trials | by chance with 5 trials "
        "| detectable with 3 trials | detectable with 5 trials |"
    )
    assert row == "| cpu train | 2.0% | 4.6% | 3.0% | 6.3% | 4.1% |"
