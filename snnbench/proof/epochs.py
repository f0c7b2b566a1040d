"""The proof of epochs: the loaded batches are those of the reference, and all outputs and gradients are those of a loop
over the reference's batches, bit by bit.

The same program on the same numbers gives the same bits. So a strategy that loads other frames, a step that is left
out, or an answer that is kept from another epoch gives other outputs, gradients or parameters. A card may add the terms
of a gradient in another order each time; there gradients without an optimiser are compared within rounding.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snnbench.cases.case import Case
from snnbench.proof.comparison import Finding, compare_gradient
from snnbench.proof.links import compare_value
from snnbench.proof.tolerance import gradient_tolerance

Arrays = Sequence[NDArray[Any]]


def compare_batches(finding: Finding, number: int, got: NDArray[Any], expected: NDArray[Any]) -> None:
    """Compare the frames [T, B, channels] or the labels [B] of a loaded batch with the reference's."""
    if got.shape != expected.shape:
        finding.complaints.append(f"batch {number} has the shape {list(got.shape)}, expected {list(expected.shape)}")
        return
    differing = int((got != expected).sum())
    finding.compared += got.size
    finding.differing += differing
    finding.unexplained += differing
    if differing and not finding.complaints:
        position = tuple(int(axis[0]) for axis in np.nonzero(got != expected))
        what = "frame" if got.ndim > 1 else "label"
        where = f"{what} {list(position)} is {got[position]:g}, expected {expected[position]:g}"
        finding.complaints.append(f"{differing} of {got.size} numbers of batch {number} are others, the first: {where}")


def require_finite(finding: Finding, losses: Arrays) -> None:
    """Complain about the first loss that is not a finite number."""
    for number, loss in enumerate(losses):
        if not np.isfinite(loss).all():
            finding.complaints.append(
                f"the loss of batch {number} is {float(loss):g}: it learns too fast, or overflows"
            )
            return


def compare_outputs(finding: Finding, got: Arrays, expected: Arrays, what: str) -> None:
    """Compare the losses or the outputs of all batches, bit by bit."""
    if len(got) != len(expected):
        finding.complaints.append(f"{what} of {len(got)} batches, expected {len(expected)}")
        return
    for number, (mine, other) in enumerate(zip(got, expected, strict=True)):
        finding.compared += mine.size
        if differing := int((mine != other).sum()) if mine.shape == other.shape else mine.size:
            finding.differing += differing
            finding.unexplained += differing
            finding.complaints.append(f"the {what} of batch {number} and of {len(got)} in all are not the reference's")
            return


def compare_states(
    finding: Finding, got: Arrays, expected: Arrays, names: Sequence[str], case: Case, repeats_bits: bool
) -> None:
    """Compare the gradients that added up, or the learned parameters, after an epoch."""
    tolerance = gradient_tolerance(case, summed=case.summed)
    for name, mine, other in zip(names, got, expected, strict=True):
        if repeats_bits:
            if not np.array_equal(mine, other):
                finding.complaints.append(f"{name} is not the reference's after the epoch")
                return
        else:
            compare_gradient(finding, name, mine, other, tolerance)
        finding.compared += mine.size


def compare_steps(finding: Finding, got: Arrays, expected: Arrays, names: Sequence[str], case: Case) -> None:
    """Compare the gradients of the loop's step with those that the layerwise check has proved.

    Both are right within their tolerance, and sums over time may have another order where the cotangent is constant.
    """
    tolerance = 2 * gradient_tolerance(case, summed=case.summed)
    for name, mine, other in zip(names, got, expected, strict=True):
        if finding.correct:
            compare_gradient(finding, name, mine, other, tolerance)


def compare_sums(finding: Finding, outputs: NDArray[Any], spikes: NDArray[Any] | None, case: Case) -> None:
    """Compare the outputs [B, classes] of the loop's step with the sum over time of the proved ones [T, B, classes]."""
    expected = np.zeros(0) if spikes is None else spikes.sum(0, dtype=np.float64)
    compare_value(finding, "output of the step", outputs, expected, gradient_tolerance(case, summed=case.summed))


def compare_cotangent(
    finding: Finding, got: NDArray[np.float32], outputs: NDArray[Any], labels: NDArray[np.int64]
) -> None:
    """Compare dL/d(output) [T, B, classes] of the mean cross entropy with its definition: (softmax - one) / B."""
    shifted = outputs.astype(np.float64) - outputs.max(1, keepdims=True)
    expected = np.exp(shifted) / np.exp(shifted).sum(1, keepdims=True)
    expected[np.arange(len(labels)), labels] -= 1.0
    expected /= len(labels)
    compare_gradient(finding, "output", got, np.broadcast_to(expected, got.shape), 1e-5)
