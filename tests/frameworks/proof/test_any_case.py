"""Tests that no setting accuses the loop in plain torch."""

from typing import Any

import numpy as np
import pytest

from tests.drawn import drawn, judge
from tests.frameworks.torch_loop import torch_loop


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("seed", range(4))
def test_torch_loop_is_accused_in_no_drawn_case(seed: int, dtype: Any) -> None:
    case = drawn(seed, surrogate="fast_sigmoid", dtype=dtype)
    case = case.with_(time_steps=min(200, case.time_steps), threshold=max(0.01, case.threshold**0.25))
    with np.errstate(all="ignore"):
        verdicts = judge(case, (), {"torch": torch_loop})
    assert not verdicts.accused and not verdicts.hindrance.startswith("too silent")
