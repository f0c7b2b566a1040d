"""Coverage: how much of a case's answer was compared with the reference, over all processes and phases."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from snnbench.cases.case import Case
from snnbench.proof.extent import sampled

EVERYTHING = "all"


def coverage(case: Case, checks: Iterable[Mapping[str, Any]]) -> str:
    """`all`, or the share of neurons and number of samples that spot checks compared; "" if no check records it.

    A check that compares a part draws it anew and records the seed. Where no product mixes neurons, the part is neurons
    over the whole batch, and no sample is drawn.
    """
    neurons, samples = np.zeros(case.neurons, bool), np.zeros(case.batch, bool)
    has_extent = False
    for check in checks:
        if check.get("neurons") is None:
            continue
        has_extent = True
        if check.get("seed") is None:
            return EVERYTHING
        neurons[sampled(case.neurons, check["neurons"], check["seed"])] = True
        samples[sampled(case.batch, check["samples"], check["seed"])] = True
    if not has_extent:
        return ""
    if neurons.all() or samples.all():
        return EVERYTHING
    share = f"{neurons.mean():.0%}" if neurons.mean() >= 0.005 else "under 1%"
    return f"{share} of neurons" + (f", {samples.sum()} of {case.batch} samples" if samples.any() else "")
