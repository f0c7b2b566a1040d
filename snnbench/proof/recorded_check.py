"""The check of a network of operations, from a recording: a pass that also shows each value and its gradient.

A reference that runs from the images on its own cannot predict the answer of a deep network, because a spike that
rounding moves changes everything after it. So a pass is recorded, and three things are compared:

* Each site of neurons by itself, on the current and the cotangent that it really got, like a network of one layer.
* Each operation between sites, in float64, from the values that it really took (links.py).
* The timed answer with the recorded one, bit by bit. The same program on the same numbers gives the same bits, so a
  neuron that is honest only while it is recorded is found. A card or a compiler may give the sums of a recorded pass
  another order. Then the outputs have the same bits, and the gradients are equal but for rounding.

Content drawn anew has a smaller check: each site, in part, and all bits.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snnbench.cases import recurrence
from snnbench.cases.answer import Answer, Recording
from snnbench.cases.operations import INPUT, Neurons
from snnbench.cases.problem import Graph
from snnbench.cases.rule import Rule
from snnbench.proof.comparison import Finding, compare_gradient
from snnbench.proof.links import Links, compare_value
from snnbench.proof.spotcheck import SpotCheck
from snnbench.proof.tolerance import gradient_tolerance, round_to

LARGEST_REACH = 0.25
"""Two passes whose gradients part by more say nothing about each other, so such a pass is refused, right or wrong."""


class RecordedCheck:
    """The check of answers to content `which` of a problem. `record` runs that content, and records it.

    A `whole` check compares the operations between sites, too. Its sites share `budget_ns`, and `seed` draws the parts.
    """

    rule: Rule | None = None
    everything = False
    scanner = None

    def __init__(
        self, problem: Graph, which: int, record: Callable[[], Recording], whole: bool, budget_ns: int, seed: int
    ) -> None:
        self.which, self.case, self._problem = which, problem.case, problem
        self._record, self._whole, self._budget_ns, self._seed = record, whole, budget_ns, seed

    def tolerance(self, summed: int) -> float:
        """Relative error allowed in a gradient whose entries are sums of so many terms."""
        return gradient_tolerance(self.case, summed=summed)

    def check(self, answer: Answer) -> Finding:
        """Compare an answer, which may have no gradients, with the recording, after the check of the recording."""
        judged = self._judged
        finding = Finding(
            judged.compared, judged.differing, judged.unexplained, judged.allowed, judged.first_wrong, judged.rate,
            dict(judged.rates), neurons=judged.neurons, samples=judged.samples, seed=judged.seed,
            complaints=list(judged.complaints), tolerances=dict(judged.tolerances), unprovable=judged.unprovable,
        )  # fmt: skip
        if answer.weights is not None:
            finding.gradient_errors, finding.cosines = dict(judged.gradient_errors), dict(judged.cosines)
        if finding.correct:
            self._compare_bits(finding, answer)
        return finding

    def check_where(self, answer: Answer, differs: NDArray[np.bool_]) -> Finding:
        """Do `check`: all bits are compared."""
        return self.check(answer)

    @cached_property
    def recording(self) -> Recording:
        """The recorded pass."""
        return self._record()

    @cached_property
    def _judged(self) -> Finding:
        finding = Finding()
        network, recording = self._problem.operations(), self.recording
        missing = [each.name for each in network if each.name not in recording.values]
        if missing:
            finding.complaints.append(f"no value of {', '.join(missing)}")
            return finding
        sites = [operation for operation in network if isinstance(operation, Neurons)]
        for operation in sites:
            of_site = self._judge_site(operation, len(sites))
            _add(finding, of_site, operation.name)
            finding.rates[operation.name] = of_site.rate
        finding.rate = float(np.mean([*finding.rates.values()]))
        neurons = sum(operation.count for operation in sites)
        is_everything = finding.neurons == neurons
        finding.samples, finding.seed = (self.case.batch, None) if is_everything else (0, self._seed)
        if not np.array_equal(recording.values[INPUT], self._problem.input(self.which)):
            finding.complaints.append("the recorded input is not the input")
        if self._whole and finding.correct:
            Links(self._problem, recording, self._seed, self.tolerance).compare(finding)
        return finding

    def _judge_site(self, operation: Neurons, sites: int) -> Finding:
        (current,), cotangents = operation.of, self.recording.cotangents
        cotangent = _by_neuron(cotangents[operation.name])
        if not np.isfinite(cotangent).all() or not cotangent.any():
            return Finding(complaints=["their cotangent is not finite" if cotangent.any() else "no cotangent arrives"])
        entering, gradient = _by_neuron(self.recording.values[current]), _by_neuron(cotangents[current])
        spikes = _by_neuron(self.recording.values[operation.name])
        if operation.recurrent:
            own = round_to(self._problem.parameters()[operation.name][0], self.case.dtype)
            entering, cotangent = recurrence.given_own(entering, spikes, cotangent, gradient, own)
        problem = self._problem.site(operation, entering, cotangent)
        check = SpotCheck(problem, 0, budget_ns=self._budget_ns // sites, seed=self._seed)
        finding = check.check(Answer(spikes, [], [], gradient))
        if operation.recurrent and finding.correct:
            self._compare_own(finding, operation, gradient, spikes)
        return finding

    def _compare_own(self, finding: Finding, operation: Neurons, gradient: NDArray[Any], spikes: NDArray[Any]) -> None:
        """Compare the gradient of the weights of a site's own spikes with that for the recorded ones."""
        network = self._problem.operations()
        names = [(each.name, parameter) for each in network for parameter in each.parameters]
        got = (self.recording.answer.weights or [])[names.index((operation.name, "recurrent"))]
        exact = gradient.astype(np.float64), spikes.astype(np.float64)
        expected, size, part = recurrence.own_gradient(*exact), recurrence.own_size(*exact), Finding()
        compare_gradient(part, "the weights of their own spikes", got, expected, self.tolerance(self.case.summed), size)
        finding.complaints += part.complaints

    def _compare_bits(self, finding: Finding, answer: Answer) -> None:
        recorded = self.recording.answer
        if answer.spikes is None or recorded.spikes is None or answer.spikes.shape != recorded.spikes.shape:
            finding.complaints.append("no output, or one of another shape than when the pass is recorded")
            return
        if differing := int((answer.spikes != recorded.spikes).sum()):
            size = recorded.spikes.size
            finding.complaints.append(f"{differing} of {size} outputs are others than when the pass is recorded")
            return
        if answer.weights is None:
            return
        network = self._problem.operations()
        names = [f"{parameter} of {each.name}" for each in network for parameter in each.parameters]
        pairs = list(zip(names, answer.weights, recorded.weights or [], strict=True))
        if self.recording.repeats_bits:
            others = [name for name, got, expected in pairs if not np.array_equal(got, expected)]
            finding.complaints += _first([f"the gradient of {name} is not the recorded one" for name in others])
            return
        reach = Links(self._problem, self.recording, self._seed, self.tolerance).reach_of_rounding(
            self.tolerance(self.case.summed)
        )
        off = Finding()
        for (name, got, expected), tolerance in zip(pairs, reach, strict=True):
            compare_value(off, f"timed gradient of {name}", got, expected, min(tolerance, LARGEST_REACH))
        finding.complaints += _first(off.complaints)


def _add(finding: Finding, of_site: Finding, name: str) -> None:
    finding.compared += of_site.compared
    finding.differing += of_site.differing
    finding.unexplained += of_site.unexplained
    finding.neurons = (finding.neurons or 0) + (of_site.neurons or 0)
    if of_site.first_wrong and not finding.first_wrong:
        finding.first_wrong = f"{name}, {of_site.first_wrong}"
    finding.gradient_errors |= {f"current of {name}": error for error in of_site.gradient_errors.values()}
    finding.cosines |= {f"current of {name}": cosine for cosine in of_site.cosines.values()}
    finding.allowed += of_site.allowed
    finding.tolerances |= {f"current of {name}": allowed for allowed in of_site.tolerances.values()}
    finding.complaints += [f"{name} by themselves: {complaint}" for complaint in of_site.complaints]
    if of_site.unprovable:
        finding.unprovable = finding.unprovable or f"{name} by themselves: {of_site.unprovable}"


def _first(complaints: list[str]) -> list[str]:
    """The first of several complaints, with the number of the others."""
    more = f" (and {len(complaints) - 1} more)" if len(complaints) > 1 else ""
    return [f"{complaints[0]}{more}"] if complaints else []


def _by_neuron(value: NDArray[np.generic]) -> NDArray[np.generic]:
    """[T, B, ...] as [T, B, N]."""
    return value.reshape(*value.shape[:2], -1)
