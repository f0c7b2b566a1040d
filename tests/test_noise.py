"""What trials of the same thing differ by, and what can be seen through it."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_ind

from snnbench import noise
from snnbench.noise import Noise, detectable
from tests.fakes import CASE
from tests.recordings import recording, timed


def test_the_spread_is_that_of_logarithms_pooled_over_cases() -> None:
    other = CASE.resized(neurons=96)
    records = [timed("a", trial, train=ms) for trial, ms in enumerate((1.0, math.e))]
    records += [timed("a", trial, other, train=ms) for trial, ms in enumerate((5.0, 5.0, 5.0))]
    found = noise.measured(recording(*records, name="aa"))
    # variances 1/2 and 0
    assert found.spreads == pytest.approx({"train": 0.5})
    assert (found.recording, found.trials) == ("aa", 2)


def test_one_trial_says_nothing() -> None:
    with pytest.raises(ValueError, match="nothing is known of their spread"):
        noise.measured(recording(timed("a", train=1.0)))
    assert detectable(0.02, 1) == math.inf
    assert Noise("aa", 10, {"train": 0.02}).detectable("forward", 5) is None


def test_what_can_be_detected_against_a_table() -> None:
    """Cohen 1988, table 2.4.1: two groups of 17 show d = 1 with power 0.8 at alpha 0.05, two-sided."""
    assert math.log1p(detectable(1.0, 17)) == pytest.approx(1.0, abs=0.01)
    assert detectable(0.0, 5) == 0.0
    assert detectable(0.02, 3) > detectable(0.02, 5) > detectable(0.02, 10) > 0.02


def test_what_can_be_detected_is_detected_so_often() -> None:
    random = np.random.default_rng(0)
    effect = math.log1p(detectable(0.02, 5))
    old, new = random.normal(0, 0.02, (4000, 5)), random.normal(effect, 0.02, (4000, 5))
    found = (ttest_ind(old, new, axis=1, equal_var=False).pvalue < 0.05).mean()
    assert found == pytest.approx(0.8, abs=0.03), "Welch's t has a little less power than Student's"


def test_what_was_found_is_kept_by_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNNBENCH_HOME", str(tmp_path / "home"))
    assert noise.known("a laptop") is None
    first, second = Noise("one", 10, {"train": 0.02}), Noise("two", 10, {"train": 0.03})
    noise.keep("a laptop", first)
    path = noise.keep("a server", second)
    assert (noise.known("a laptop"), noise.known("a server"), noise.known("another")) == (first, second, None)
    noise.keep("a laptop", second)
    assert noise.known("a laptop") == second
    for broken in ("{", '{"a laptop": {"spreads": 1}}', '{"a laptop": 3}'):
        path.write_text(broken)
        with pytest.raises(ValueError, match="delete it and run `snnbench doctor --aa` again"):
            noise.known("a laptop")


def test_the_table_has_what_3_5_and_10_trials_show() -> None:
    header, _, row = noise.table(Noise("aa", 10, {"train": 0.02})).splitlines()
    assert header == "| phase | spread between trials | seen with 3 trials | seen with 5 trials | seen with 10 trials |"
    assert row.startswith("| train | 2.0% | 6.") and row.endswith(" |")
