"""The layerwise check, for deep stacks and 16 bits, where one rounded hidden spike puts a sample on another path.

A reference that runs from the input on its own cannot predict such an answer. So it is judged in two steps:

* Each layer by itself is compared with the reference, on its entering spikes and its arriving cotangent, like a network
  of one layer: every margin and tolerance is that of one layer. The decay is the case's, or the case's rounded to 16
  bits for a library that holds it so; it is the same one in all layers.
* The network's answer must be that of its layers one after the other. The same program on the same numbers gives the
  same bits, so spikes must be equal at every place. A compiler may make other programs of a network than of its layers,
  and a recurrent layer magnifies what rounding moves. So a few samples of a network with recurrent layers may leave the
  path of its layers, as in network_check.py. Gradients may differ by the order of their sums: each whole
  gradient, and each row, column, step and sample of it, by at most the tolerance of one layer's gradient. If they
  differ by more where all of a layer is compared, two right answers may be off by the layer's rounding each.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, cached_property, partial

import numpy as np
from numpy.typing import NDArray

from snnbench.cases.answer import Answer
from snnbench.cases.problem import Problem
from snnbench.cases.rule import Rule, rule_of
from snnbench.proof import amplification
from snnbench.proof.chain import Link
from snnbench.proof.comparison import Finding, compare_gradient, compare_parts, relative_parts
from snnbench.proof.network_check import Tolerance
from snnbench.proof.spotcheck import SpotCheck
from snnbench.proof.tolerance import allowed_differences, round_to

Array = NDArray[np.float64]
Judged = tuple[SpotCheck, Finding]
"""The check of a layer by itself, and what it found."""
BOTH = 2.0
"""Two right answers may be off in opposite directions."""


class Layerwise:
    """The check of answers to one content.

    `run` runs the layers on that content, and `judge` makes the check of one layer by a rule; None is the case's rule.
    `first` gives the answer of the stack of the first layers, to name the layer at which a wrong stack goes astray.
    """

    def __init__(
        self,
        run: Callable[[], Sequence[Link]],
        judge: Callable[[Problem, Rule | None], SpotCheck],
        rule: Rule | None = None,
        first: Callable[[int], Answer] | None = None,
    ) -> None:
        self._run, self._judge, self._rule, self._first = run, judge, rule, first

    @cached_property
    def _links(self) -> Sequence[Link]:
        return self._run()

    @cached_property
    def _judged(self) -> list[Judged]:
        exact = self._judged_by(self._rule)
        if _are_correct(exact):
            return exact
        case = self._links[0].problem.case
        rule = self._rule or rule_of(case)
        decay = float(round_to(np.array([rule.beta], np.float32), case.dtype)[0])
        rounded = self._judged_by(replace(rule, beta=decay)) if decay != rule.beta else exact
        return rounded if _are_correct(rounded) else exact

    def _judged_by(self, rule: Rule | None) -> list[Judged]:
        checks = [self._judge(link.problem, rule) for link in self._links]
        return [(check, check.check(link.answer)) for check, link in zip(checks, self._links, strict=True)]

    def check(self, finding: Finding, answer: Answer, spikes: NDArray[np.generic], tolerance: Tolerance) -> None:
        """Compare `spikes` [T, B, N] and the answer's gradients, if it has any."""
        for number, (check, of_layer) in enumerate(self._judged):
            _add(finding, of_layer, number)
            finding.rates[str(number)] = of_layer.rate / check.rule.most_spikes  # of numbers above 1, the fewest places
        if finding.complaints:
            return
        astray = self._astray(spikes)
        if astray.all():
            finding.unprovable = "rounding of a hidden spike diverts every sample"
            return
        self._compare_spikes(finding, spikes, ~astray)
        if answer.weights is not None and not finding.complaints:
            self._compare_gradients(finding, answer, tolerance, ~astray)

    def _astray(self, spikes: NDArray[np.generic]) -> NDArray[np.bool_]:
        """[B]: the samples of a network with recurrent layers that rounding puts on another path, if they are few."""
        case, expected = self._links[0].problem.case, self._links[-1].answer.spikes
        differing = (spikes != expected).any(2)
        differs, none = differing.any(0), np.zeros(case.batch, bool)
        checks = [check for check, _ in self._judged]
        is_recurrent = any(link.problem.case.is_recurrent for link in self._links)
        sees_all = all(check.extent.neurons == check.case.neurons for check in checks)
        if not (is_recurrent and differs.any() and sees_all):
            return none
        close = np.logical_or.reduce([check.close() for check in checks])
        explained = np.logical_or.accumulate(close)[differing.argmax(0), np.arange(case.batch)]
        updates = sum(link.problem.case.updates for link in self._links)
        return differs if (differs <= explained).all() and differs.sum() <= allowed_differences(updates) else none

    def _compare_spikes(self, finding: Finding, spikes: NDArray[np.generic], agreeing: NDArray[np.bool_]) -> None:
        expected = self._links[-1].answer.spikes
        assert expected is not None  # otherwise its own check would have complained
        finding.differing += int((spikes != expected)[:, ~agreeing].sum())
        differs = (spikes != expected) & agreeing[:, None]
        if differs.any():
            t, b, n = (int(axis[0]) for axis in np.nonzero(differs))
            finding.unexplained += (count := int(differs.sum()))
            finding.differing += count
            finding.first_wrong = f"t={t}, b={b}, n={n}"
            finding.complaints.append(
                f"{count} of {differs.size} spikes differ from what its layers give one after the other, the first at "
                f"{finding.first_wrong}: expected {float(expected[t, b, n]):g}, got {float(spikes[t, b, n]):g}; "
                f"{self._where()}"
            )

    def _where(self) -> str:
        """The first layer whose spikes differ in the stack of the layers up to it."""
        for count in range(2, len(self._links)):
            if self._first is None:
                break
            spikes = self._first(count).spikes
            alone = self._links[count - 1].answer.spikes
            if spikes is None or alone is None or not np.array_equal(spikes, alone):
                return f"layer {count - 1} differs in a stack from the same layer by itself"
        return f"layer {len(self._links) - 1} differs in the whole stack only"

    def _compare_gradients(
        self, finding: Finding, answer: Answer, tolerance: Tolerance, agreeing: NDArray[np.bool_]
    ) -> None:
        """Compare the gradients of parameters if all samples agree, and that of the input for those that do."""
        case = self._links[0].problem.case
        magnified = [max(of_layer.tolerances.values(), default=0.0) for _, of_layer in self._judged]
        summed = max(tolerance(case.time_steps * case.batch), *magnified)
        for number, link in enumerate(self._links if agreeing.all() else ()):
            alone, (check, _) = link.answer, self._judged[number]
            if answer.weights is None or answer.biases is None or alone.weights is None or alone.biases is None:
                finding.complaints.append(f"no gradient of layer {number}")
                return
            name = f"of layer {number}"
            _compare(finding, f"weight {name}", answer.weights[number], alone.weights[0], summed, check)
            _compare(finding, f"bias {name}", answer.biases[number], alone.biases[0], summed, check)
            trained = link.problem.case.trained_constants
            for index, constant in enumerate(trained):
                got, expected = answer.constant(number * len(trained) + index), alone.constant(index)
                tolerated = max(tolerance(link.problem.case.summed), *magnified)
                _compare(finding, f"{constant} {name}", got, expected, tolerated, check)
        entering = self._links[0].answer.input
        if case.input_gradient and entering is not None:
            allowed, (check, _) = max(tolerance(case.fan_out), *magnified), self._judged[0]
            got = answer.input
            if got is not None and got.shape == entering.shape and not agreeing.all():
                got = np.where(agreeing[:, None], got, entering)
            _compare(finding, "input", got, entering, allowed, check)


def _add(finding: Finding, of_layer: Finding, number: int) -> None:
    """Add the finding of one layer under the layer's name; the rate is the last layer's."""
    finding.compared += of_layer.compared
    finding.differing += of_layer.differing
    finding.unexplained += of_layer.unexplained
    finding.allowed += of_layer.allowed
    finding.rate = of_layer.rate
    if of_layer.first_wrong and not finding.first_wrong:
        finding.first_wrong = f"layer {number}, {of_layer.first_wrong}"
    for values, more in (
        (finding.gradient_errors, of_layer.gradient_errors),
        (finding.tolerances, of_layer.tolerances),
        (finding.cosines, of_layer.cosines),
    ):
        values.update({_named(name, number): value for name, value in more.items()})
    finding.complaints += [f"layer {number} by itself: {complaint}" for complaint in of_layer.complaints]
    if of_layer.unprovable:
        finding.unprovable = finding.unprovable or f"layer {number} by itself: {of_layer.unprovable}"


def _named(gradient: str, number: int) -> str:
    return "input" if (gradient, number) == ("input", 0) else f"{gradient} of layer {number}"


def _compare(
    finding: Finding,
    name: str,
    got: NDArray[np.generic] | None,
    alone: NDArray[np.generic] | None,
    tolerance: float,
    check: SpotCheck,
) -> None:
    """Compare a gradient with that of the layer alone: as a whole, and each row, column, step or sample of it."""
    expected = np.asarray(alone, np.float64)
    if not check.everything:
        compare_gradient(finding, name, got, expected, tolerance)
        compare_parts(finding, name, got, expected, tolerance, range(expected.ndim))
        return
    parameter = name.partition(" ")[0]
    errors, least_size = cache(partial(check.errors_of, parameter)), check.size_of(parameter)

    def magnified_parts(axis: int) -> Array:
        worst: Array = np.max([relative_parts(error, expected, axis) for error in errors()], axis=0)
        return BOTH * amplification.FACTOR * worst

    def magnified() -> float:
        return BOTH * amplification.allowed(expected, errors(), check.case.dtype, least_size)

    compare_gradient(finding, name, got, expected, tolerance, least_size, magnified)
    for axis in range(0 if least_size else expected.ndim):
        compare_parts(finding, name, got, expected, tolerance, (axis,), partial(magnified_parts, axis))


def _are_correct(judged: Sequence[Judged]) -> bool:
    return all(finding.correct for _, finding in judged)
