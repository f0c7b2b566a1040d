"""Noise: how much trials of one and the same thing differ on a machine, and what change can be seen through that.

An A/A experiment runs one contender many times and compares it with itself. What is found is kept in
SNNBENCH_HOME/noise.json, by machine model, and `compare` calls effects that are smaller inconclusive.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, variance
from typing import Any

from snnbench.environments import home
from snnbench.record import Recording
from snnbench.standing import standings

FILE = "noise.json"
POWER, ALPHA = 0.8, 0.05


@dataclass(frozen=True, slots=True)
class Noise:
    """Standard deviation of the logarithm of trial medians, by phase, pooled over the cases of an A/A experiment."""

    recording: str
    trials: int
    spreads: dict[str, float]

    def detectable(self, phase: str, trials: int) -> float | None:
        """The relative change of a phase that `trials` trials a side show; None where the phase was not measured."""
        return detectable(self.spreads[phase], trials) if phase in self.spreads else None


def measured(recording: Recording) -> Noise:
    """What trials differed by in a recording. Raises ValueError where no phase has two trials."""
    variances: dict[str, list[float]] = {}
    fewest = 0
    for found in standings(recording.records).values():
        for standing in found:
            for (phase, metric), summary in standing.summaries.items():
                if metric == "time" and summary.count > 1:
                    variances.setdefault(phase, []).append(variance([math.log(ns) for ns in summary.trials]))
                    fewest = min(fewest or summary.count, summary.count)
    if not variances:
        raise ValueError(f"{recording.folder}: no phase was timed in two trials, so nothing is known of their spread")
    spreads = {phase: math.sqrt(fmean(each)) for phase, each in variances.items()}
    return Noise(recording.name, fewest, spreads)


def detectable(spread: float, trials: int, power: float = POWER, alpha: float = ALPHA) -> float:
    """The least relative change that Welch's t finds with this power, with `trials` trials on each side.

    `spread` is the standard deviation of the logarithm of trial medians, alike on both sides, so the statistic has
    2 * trials - 2 degrees of freedom and, under a true log ratio d, the noncentral t distribution with noncentrality
    d / (spread * sqrt(2 / trials)) (Cohen 1988, section 2.2). For one cell: among many a change must be larger. One
    trial a side shows nothing: infinity.
    """
    from scipy.optimize import brentq
    from scipy.stats import nct, t

    if trials < 2:
        return math.inf
    if spread == 0:
        return 0.0
    freedom = 2 * trials - 2
    limit = t.ppf(1 - alpha / 2, freedom)

    def lacking(noncentrality: float) -> float:  # the tail on the other side is nothing at this power
        return float(nct.sf(limit, freedom, noncentrality)) - power

    noncentrality = brentq(lacking, 0.1, 15.0)
    return math.expm1(noncentrality * spread * math.sqrt(2 / trials))


def keep(model: str, noise: Noise) -> Path:
    """Remember what a machine of this model was found to be like, in place of what was known before."""
    path = home() / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(_kept() | {model: asdict(noise)}, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    fresh.replace(path)
    return path


def known(model: str) -> Noise | None:
    """What is known of a machine of this model, or None."""
    found = _kept().get(model)
    if found is None:
        return None
    try:
        spreads = {str(phase): float(spread) for phase, spread in found["spreads"].items()}
        return Noise(str(found["recording"]), int(found["trials"]), spreads)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(_broken(error)) from error


def table(noise: Noise, counts: Sequence[int] = (3, 5, 10)) -> str:
    """Spread and detectable change by phase, Markdown."""
    columns = ["phase", "spread between trials", *(f"seen with {count} trials" for count in counts)]
    lines = [f"| {' | '.join(columns)} |", "| --- |" + " ---: |" * (len(columns) - 1)]
    for phase, spread in noise.spreads.items():
        cells = [phase, f"{spread:.1%}", *(f"{detectable(spread, count):.1%}" for count in counts)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _kept() -> dict[str, Any]:
    try:
        found = json.loads((home() / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ValueError(_broken(error)) from error
    return found if isinstance(found, dict) else {}


def _broken(error: Exception) -> str:
    return f"{home() / FILE}: {type(error).__name__}: {error}; delete it and run `snnbench doctor --aa` again"
