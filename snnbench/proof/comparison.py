"""Comparison of a pass's answer with the reference's, spike by spike and gradient by gradient.

Tolerances come from number formats. A case that magnifies rounding has a wider one (amplification.py). No tolerance was
tuned until a library passed.
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snnbench.cases.case import Case
from snnbench.cases.outcome import Verdict
from snnbench.cases.rule import Rule, rule_of

ENTRIES_AT_ONCE = 1 << 13
"""Numbers in float64 at once: a cache holds them, BLAS starts no threads for them, and whole arrays take gigabytes."""
UNPROVABLE = 0.5
"""A gradient that rounding may move by more of its size proves nothing."""


@dataclass(slots=True)
class Finding:
    """The result of one comparison. Errors are relative, in the Euclidean norm.

    `neurons` were compared over the whole batch, and `samples` of the batch over all neurons. If that was not
    everything, `seed` says which neurons and samples. `tolerances` are those of gradients, and `allowed` that of
    differing spikes, where the case magnifies rounding beyond the format's. `cause` is the mistake that explains a
    wrong answer, and `steps` has the first steps of the first wrong neuron: step, current, potential, spikes expected
    and got. `unprovable` is the reason why an answer without a complaint proves nothing. `rates` are the shares of
    spikes that are not 0: of each layer, by its number, or of each site of neurons, by its name.
    """

    compared: int = 0
    differing: int = 0
    unexplained: int = 0
    allowed: int = 0
    first_wrong: str = ""
    rate: float = 0.0
    rates: dict[str, float] = field(default_factory=dict)
    expected_rate: float | None = None
    gradient_errors: dict[str, float] = field(default_factory=dict)
    tolerances: dict[str, float] = field(default_factory=dict)
    cosines: dict[str, float] = field(default_factory=dict)
    neurons: int | None = None
    samples: int | None = None
    seed: int | None = None
    complaints: list[str] = field(default_factory=list)
    cause: str = ""
    steps: list[list[float]] = field(default_factory=list)
    unprovable: str = ""

    @property
    def correct(self) -> bool:
        """No complaint was made."""
        return not self.complaints

    @property
    def message(self) -> str:
        """The cause and every complaint on one line."""
        return "; ".join([self.cause, *self.complaints] if self.cause else self.complaints)

    def as_dict(self) -> dict[str, Any]:
        """For a reply."""
        rare = ("rates", "allowed", "tolerances", "cause", "steps", "unprovable")
        given = {name: value for name, value in asdict(self).items() if value or name not in rare}
        return given | {"correct": self.correct}


def verdict(case: Case, correct: bool, deviation: str | None) -> Verdict:
    """The verdict on a contender from its checks and its declared deviation."""
    if not correct:
        return "deviates" if deviation else "incorrect"
    if deviation:
        return "deviates"
    return "exact" if case.is_exact_format else "equivalent"


def moved(what: str, share: float) -> str:
    """The sentence that rounding may move something by so large a share of its size."""
    return f"rounding may move {what} by {f'{share:.0%} of' if share < 1 else 'more than'} its size"


def compare_spikes(
    finding: Finding,
    got: NDArray[Any],
    expected: NDArray[Any],
    potential: NDArray[Any],
    neuron: Case | Rule,
    margin: NDArray[Any] | float = 0.0,
    numbers: tuple[NDArray[Any], NDArray[Any]] | None = None,
) -> NDArray[Any]:
    """Compare [T, B, N] spikes by position, and complain. Returns where they differ.

    A difference is explained if the reference's potential is within `margin` of a change of the number of spikes, and
    the answer is a possible number of spikes. `numbers` are the batch and neuron numbers of the last two axes, if these
    are not counted from 0. The parameters are the two answers and the rule between them.
    """
    if got.shape != expected.shape:
        finding.complaints.append(f"spikes have the shape {list(got.shape)}, expected {list(expected.shape)}")
        return np.ones(expected.shape, bool)
    differs: NDArray[np.bool_] = got != expected
    rule = rule_of(neuron)
    far_off = np.abs(got - expected) > 1  # rounding cannot change a number of spikes by two
    wrong = differs & ((rule.distance(potential) > margin) | ~rule.possible(got) | far_off)
    finding.compared += differs.size
    finding.differing += int(differs.sum())
    finding.unexplained += int(wrong.sum())
    spikes = got.sum(dtype=np.float64) if rule.possible(got).all() else np.count_nonzero(got)
    finding.rate = float(spikes) / got.size if got.size else 0.0  # finite even if the answer is not
    shown = wrong if wrong.any() else differs
    if shown.any() and (wrong.any() or not finding.first_wrong):
        t, b, n = (int(axis[0]) for axis in np.nonzero(shown))
        batch, column = (b, n) if numbers is None else (int(numbers[0][b]), int(numbers[1][n]))
        finding.first_wrong = (
            f"t={t}, b={batch}, n={column}: u={potential[t, b, n]:.6g}, "
            f"expected {expected[t, b, n]:g}, got {float(got[t, b, n]):g}"
        )
    if wrong.any():
        where = f", the first at {finding.first_wrong}"
        finding.complaints.append(f"{int(differs.sum())} of {differs.size} spikes differ{where}")
    return differs


def compare_parts(
    finding: Finding,
    name: str,
    got: NDArray[Any] | None,
    expected: NDArray[Any],
    tolerance: float,
    axes: Iterable[int],
    magnified: Callable[[], NDArray[np.float64]] | None = None,
) -> None:
    """Compare each part of a gradient along these axes, unless the gradient has a complaint; complain about the worst.

    The error of a part is relative to its own norm, or to the root mean square of all such norms if that is larger. A
    larger error than `tolerance` is held to `magnified()`, a tolerance for each part. The parameters are the two
    gradients and the rule between them.
    """
    if finding.complaints or finding.unprovable or got is None:
        return
    error = np.asarray(got, np.float64) - expected
    for axis in axes:
        relative = relative_parts(error, expected, axis)
        allowed = np.full(relative.shape, tolerance)
        if (relative > tolerance).any() and magnified:
            allowed = np.maximum(allowed, magnified())
        worst = int((relative / allowed).argmax())
        if relative[worst] > allowed[worst]:
            off_by = f"{relative[worst]:.2g} at {worst} of axis {axis} ({allowed[worst]:.1g} allowed)"
            finding.complaints.append(f"gradient of {name} is off by {off_by}")
            return


def relative_parts(error: NDArray[Any], expected: NDArray[Any], axis: int) -> NDArray[np.float64]:
    """The error of each part along an axis, relative to its size or to the root mean square of all sizes."""
    off, size = (_norms(array, axis) for array in (error, expected))
    relative: NDArray[np.float64] = off / np.maximum(np.maximum(size, np.sqrt(np.mean(size**2))), np.finfo(float).tiny)
    return relative


def _norms(array: NDArray[Any], axis: int) -> NDArray[np.float64]:
    """The Euclidean norm of each part along an axis."""
    norms: NDArray[np.float64] = np.sqrt((array**2).sum(tuple(other for other in range(array.ndim) if other != axis)))
    return norms


def sums(got: NDArray[Any], expected: NDArray[Any]) -> tuple[float, float, float, float]:
    """The norms of what is expected, of what was got and of the difference, and the scalar product, in float64."""
    squares, mine, theirs = np.zeros(4), np.empty(ENTRIES_AT_ONCE), np.empty(ENTRIES_AT_ONCE)
    of_got, of_expected = (np.ascontiguousarray(array).reshape(-1) for array in (got, expected))
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is the caller's complaint
        for start in range(0, of_got.size, ENTRIES_AT_ONCE):
            part = slice(start, start + ENTRIES_AT_ONCE)
            a, b = mine[: len(of_got[part])], theirs[: len(of_got[part])]
            a[...], b[...] = of_got[part], of_expected[part]
            squares[:2] += b @ b, a @ a
            squares[3] += a @ b
            a -= b
            squares[2] += a @ a
    scale, size, error = np.sqrt(squares[:3]).tolist()
    return scale, size, error, float(squares[3])


def compare_gradient(
    finding: Finding,
    name: str,
    got: NDArray[Any] | None,
    expected: NDArray[Any],
    tolerance: float,
    least_size: float = 0.0,
    magnified: Callable[[], float] | None = None,
    fewest: float | None = None,
) -> None:
    """Compare one gradient in the Euclidean norm, and complain.

    The error is relative to the size of what is expected, or to `least_size` if that is larger: sums of terms that
    cancel are rounded as larger sums are. A larger error is held to `magnified()`, the tolerance by the recurrence of
    the case, which takes a while. If that exceeds UNPROVABLE, right and wrong look alike. If that is smaller than
    `tolerance`, it takes its place, but no error below `fewest` is held to it. The parameters are the two gradients and
    the rule between them.
    """
    if got is None or got.shape != expected.shape:
        shape = "none" if got is None else list(got.shape)
        finding.complaints.append(f"gradient of {name}: got shape {shape}, expected {list(expected.shape)}")
        return
    scale, size, error, product = sums(got, expected)
    against = max(scale, least_size)
    relative = error / against if against else float(error > 0)
    if magnified and fewest is not None and fewest < relative <= tolerance:
        tolerance = max(fewest, min(tolerance, magnified()))
    if magnified and not relative <= tolerance:
        wider = magnified()
        if not wider <= UNPROVABLE:
            finding.unprovable = moved(f"the gradient of {name}", wider)
            return
        tolerance = max(tolerance, wider)
        finding.tolerances[name] = max(tolerance, finding.tolerances.get(name, 0.0))
    # A reply is JSON, which has no NaN and no infinity, so a value that is not finite is a complaint of its own.
    if not np.isfinite([size, relative]).all():
        finding.complaints.append(f"gradient of {name} is not finite")
        return
    finding.gradient_errors[name] = max(relative, finding.gradient_errors.get(name, 0.0))
    cosine = product / (scale * size) if scale and size else float(scale == size)
    finding.cosines[name] = min(cosine, finding.cosines.get(name, 1.0))
    if scale > 0 and size == 0:
        finding.complaints.append(f"gradient of {name} is zero")
    elif relative > tolerance:
        finding.complaints.append(
            f"gradient of {name} is off by {relative:.2g} (relative; {tolerance:.1g} allowed), cosine {cosine:.6f}"
        )
