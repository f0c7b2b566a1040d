"""Run-to-run noise: how much trials of the same work differ on a machine, and which change is detectable.

An A/A experiment runs one contender many times and compares it with itself. The result is kept in
SNNBENCH_HOME/noise.json, by machine model. Two sizes follow from it: the run-to-run difference, which `compare`
requires an observed ratio to exceed, and the larger true change that exceeds it most of the time.
"""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, variance
from typing import Any

from snnbench.analysis.results import results_by_case
from snnbench.exits import UserError
from snnbench.files import home, write_whole
from snnbench.recording.reading import Recording
from snnbench.recording.record import RecordingError

FILE = "noise.json"
POWER, ALPHA = 0.8, 0.05


@dataclass(frozen=True, slots=True)
class Noise:
    """Standard deviation of the logarithm of trial medians, pooled over the cases of an A/A experiment.

    `spreads` are by device and phase, as `cpu train`: a CPU's noise does not predict that of its GPU.
    """

    recording: str
    trials: int
    spreads: dict[str, float]

    def by_chance(self, device: str, phase: str, trials: int) -> float | None:
        """The run-to-run difference with `trials` trials a side; None if it was not measured."""
        spread = self.spreads.get(_place(device, phase))
        return None if spread is None else by_chance(spread, trials)


def measured(recording: Recording) -> Noise:
    """The noise of a recording. Raises RecordingError if no phase has two trials."""
    variances: dict[str, list[float]] = {}
    fewest = 0
    for case, results in results_by_case(recording.records).items():
        for result in results:
            for (phase, metric), summary in result.summaries.items():
                if metric == "time" and summary.count > 1:
                    here = variances.setdefault(_place(case.device, phase), [])
                    here.append(variance([math.log(ns) for ns in summary.trials]))
                    fewest = min(fewest or summary.count, summary.count)
    if not variances:
        raise RecordingError(
            f"{recording.folder}: no phase was timed in two trials, so nothing is known of their spread"
        )
    spreads = {place: math.sqrt(fmean(each)) for place, each in variances.items()}
    return Noise(recording.name, fewest, spreads)


def by_chance(spread: float, trials: int, alpha: float = ALPHA) -> float:
    """The relative change that two sides of the same work exceed with probability `alpha`, with `trials` trials each.

    The critical effect of Student's t with 2 * trials - 2 degrees of freedom, where spread * sqrt(2 / trials) is the
    standard error of a difference of mean logarithms. An observed ratio must exceed it. A true change of this size
    exceeds it only half of the time; a `detectable` one does most of the time. Infinity for one trial.
    """
    from scipy.special import stdtrit

    if trials < 2:
        return math.inf
    return math.expm1(float(stdtrit(2 * trials - 2, 1 - alpha / 2)) * spread * math.sqrt(2 / trials))


def detectable(spread: float, trials: int, power: float = POWER, alpha: float = ALPHA) -> float:
    """The least relative change that Welch's t finds with this power, with `trials` trials on each side.

    `spread` is the standard deviation of the logarithm of trial medians, the same on both sides. So the statistic has
    2 * trials - 2 degrees of freedom and, under a true log ratio d, the noncentral t distribution with noncentrality
    d / (spread * sqrt(2 / trials)) (Cohen 1988, section 2.2). This holds for one cell; among many, a change must be
    larger. Infinity for one trial a side.
    """
    from scipy.optimize import brentq
    from scipy.stats import nct, t

    if trials < 2:
        return math.inf
    if spread == 0:
        return 0.0
    freedom = 2 * trials - 2
    limit = t.ppf(1 - alpha / 2, freedom)

    def lacking(noncentrality: float) -> float:  # the other tail is negligible at this power
        return float(nct.sf(limit, freedom, noncentrality)) - power

    noncentrality = brentq(lacking, 0.1, 15.0)
    return math.expm1(noncentrality * spread * math.sqrt(2 / trials))


def keep(model: str, noise: Noise) -> Path:
    """Store the noise of a machine model, in place of an earlier one; returns the file."""
    path = home() / FILE
    document = json.dumps(_kept() | {model: asdict(noise)}, indent=2, sort_keys=True) + "\n"
    write_whole(path, document.encode())
    return path


def known(model: str) -> Noise | None:
    """The stored noise of a machine model, or None. Raises UserError if the file is malformed."""
    kept_noise = _kept().get(model)
    if kept_noise is None:
        return None
    try:
        spreads = {str(place): float(spread) for place, spread in kept_noise["spreads"].items()}
        if without := [place for place in spreads if " " not in place]:
            raise ValueError(f"{', '.join(without)}: names no device")
        return Noise(str(kept_noise["recording"]), int(kept_noise["trials"]), spreads)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise UserError(_broken(error)) from error


def _place(device: str, phase: str) -> str:
    return f"{device} {phase}"


def _kept() -> dict[str, Any]:
    try:
        document = json.loads((home() / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise UserError(_broken(error)) from error
    return document if isinstance(document, dict) else {}


def _broken(error: Exception) -> str:
    return f"{home() / FILE}: {type(error).__name__}: {error}; delete it and run `snnbench doctor --aa` again"
