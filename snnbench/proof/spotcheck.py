"""The spot check: the timed case at full size against float64, as a whole if that costs little.

Neurons are independent given their input current, and samples are independent of each other. If the whole case would
take longer than a budget, a part of it is compared: some neurons over the whole batch (their spikes, their rows of the
weight gradient, their bias gradient), and some samples over all neurons (their spikes and input gradients). Every check
draws another part. A network of several layers has no independent neurons: network_check.py compares it whole.

The reference's reset follows the answer's spikes, so each spike is judged by itself: it may differ only if the
reference's potential is so close to the threshold that rounding decides.

A worker compares the answers of several phases to one input. Currents do not depend on an answer, and the reference
depends only on the answer's spikes (following.py). So each is computed once for all answers that agree.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snnbench.cases import constants, recurrence, reference
from snnbench.cases.answer import Answer, Held
from snnbench.cases.case import HALVES
from snnbench.cases.problem import Layer, Problem
from snnbench.cases.rule import Rule, rule_of
from snnbench.proof.comparison import Finding, compare_gradient, compare_spikes
from snnbench.proof.extent import Extent, extent, sampled
from snnbench.proof.following import Followed, Input
from snnbench.proof.gradients import Gradients, of_constant
from snnbench.proof.jumps import FARTHEST
from snnbench.proof.network_check import Network, NetworkCheck
from snnbench.proof.sample import FirstLayer, GivenCurrents, Sample, Source
from snnbench.proof.scan import Scanner
from snnbench.proof.tolerance import (
    allowed_by_chance,
    allowed_differences,
    gradient_tolerance,
    of_potentials,
    out_of_window,
    round_to,
)

Array = NDArray[np.float64]
MOST_COLUMNS = 1024


class SpotCheck:
    """The reference of one numbered input of a problem; `check` compares a pass's answer with it.

    The neuron is the case's, or the `rule` that a library declares. Such a neuron may be too silent for the case, so
    without `guarded` the firing rate is not checked. If the whole comparison would take longer than `budget_ns`, `seed`
    draws a part. `network` compares several layers; network_check.py is the default. A `scanner` scans answers that a
    device holds, too. The parameters after `which` are options of the comparison.
    """

    def __init__(
        self,
        problem: Problem,
        which: int,
        rule: Rule | None = None,
        cotangent: int | None = None,
        guarded: bool = True,
        budget_ns: int = 0,
        seed: int = 0,
        network: Network | None = None,
        scanner: Scanner | None = None,
    ) -> None:
        self.which, self.guarded, self.seed, self.scanner = which, guarded, seed, scanner
        self.extent = extent(problem.case, budget_ns)
        self.case, self.rule = problem.case, rule or rule_of(problem.case)
        self.layers: list[Layer] = problem.layers()
        self.inputs = problem.input(which)
        if not (problem.enters_as_spikes or self.case.is_exact_format):
            self.inputs = round_to(self.inputs, self.case.product_format).astype(np.float32)
        self._cotangent = problem.cotangent(which if cotangent is None else cotangent)
        self._take(self.inputs)
        # A library may hold the decay in 16 bits; that is no other neuron.
        self._is_other_neuron = replace(self.rule, beta=self.case.beta) != rule_of(self.case)
        self._given = network

    def _take(self, inputs: NDArray[np.float32], recurrent: Array | None = None) -> None:
        """Compare with the reference on these `inputs` of the first layer from here on."""
        self._linear = FirstLayer(self.layers[0], inputs, self.case, self.rule) if self.layers else None
        self._source: Source = self._linear or GivenCurrents(inputs, self.case, self.rule)
        self._input = Input(self.case, self.rule, self._source, self._cotangent, recurrent)
        self._followed: dict[str, Followed] = {}
        self.__dict__.pop("_few", None)

    def _take_spikes(self, spikes: NDArray[np.generic]) -> None:
        """Give a recurrent layer these spikes [T, B, N] of its own: its neurons are then independent, but backward."""
        if not self.case.is_recurrent or self.case.sites > 1:
            return
        _, recurrent = recurrence.split(self.layers[0][0], self.case.entering)
        own = recurrence.beside_own(self.inputs, np.asarray(spikes, np.float32))
        self._take(own, round_to(np.asarray(recurrent), self.case.product_format))

    def tolerance(self, summed: int) -> float:
        """Relative error allowed in a gradient whose entries are sums of so many terms."""
        return gradient_tolerance(self.case, summed=summed)

    def check(self, answer: Answer) -> Finding:
        """Compare the spikes of `answer`, and its gradients, if it has any. Gradients need their spikes."""
        finding = Finding()
        if isinstance(answer.spikes, Held):
            self.extent = extent(self.case, 0)  # a scan compares the rest
        if answer.spikes is None:
            finding.complaints.append("no spikes")
        elif (answer.weights is None) != (answer.biases is None):
            finding.complaints.append(f"no gradient of {'weight' if answer.weights is None else 'bias'}")
        elif answer.spikes.shape != self.case.shape:
            nothing = np.broadcast_to(0.0, self.case.shape)
            compare_spikes(finding, answer.spikes, nothing, nothing, self.rule)
        elif self.case.sites == 1:
            self._take_spikes(answer.spikes)
            self._parts(finding, answer, answer.spikes)
            finding.rates = {"0": finding.rate / self.rule.most_spikes} if self.case.is_recurrent else {}
        else:
            self._network.check(finding, answer, answer.spikes, self.tolerance)
        finding.neurons, finding.samples = self.extent.neurons, self.extent.samples
        finding.seed = None if self.everything else self.seed
        if self.scanner and isinstance(answer.spikes, Held) and finding.correct and not finding.unprovable:
            self._scan(finding, answer, answer.spikes, self.scanner)
        if finding.correct and self.guarded:
            self._guard(finding)
        return finding

    def check_where(self, answer: Answer, differs: NDArray[np.bool_]) -> Finding:
        """Do `check`, and compare each neuron with spikes [T, B, N] that differ somewhere from another answer's.

        Of over MOST_COLUMNS such neurons, some are compared.
        """
        finding = Finding()
        if self.case.sites == 1 and not self.everything and answer.spikes is not None:
            self._columns(finding, answer.spikes, *np.nonzero(differs.any(0)))
            self._limit(finding, finding.differing, finding.compared)
        return finding if finding.complaints else self.check(answer)

    def errors_of(self, gradient: str) -> list[Array]:
        """The errors by rounding, in several runs, of the last answer's gradient of a parameter or the input.

        Raises ValueError unless everything is compared.
        """
        if self._linear is None or not self.everything:
            raise ValueError("of a part of the neurons no gradient is whole")
        followed = self._followed["few"]
        functions: dict[str, Callable[[Array], Array]] = {
            "weight": self._linear.weight_gradient,
            "bias": lambda current: current.sum((0, 1)),
            "input": self._linear.input_gradient,
        }
        functions |= {name: partial(of_constant, name, followed) for name in self.rule.trained}
        return list(map(functions[gradient], followed.errors))

    def size_of(self, gradient: str) -> float:
        """The least size that errors of the last answer's gradient are relative to: that of a constant's terms."""
        followed = self._followed["few"]
        if gradient not in self.rule.trained:
            return 0.0
        return constants.size(constants.terms(gradient, followed.gradient, followed.trace, self.rule))

    def close(self) -> NDArray[np.bool_]:
        """[T, B]: whether rounding may decide about a spike of a compared neuron of the last answer."""
        followed = self._followed["few"]
        distance = self.rule.distance(followed.trace.potential)
        near = distance <= FARTHEST * self.rule.threshold
        is_close: NDArray[np.bool_] = np.any(near & (distance <= followed.margin(near)), axis=2)
        return is_close

    @property
    def everything(self) -> bool:
        """Whether all spikes and gradients are compared."""
        return self.extent == Extent(self.case.neurons, self.case.batch)

    def distance(self, answer: Answer) -> Finding:
        """The distance of a deviating answer from the free-running reference, on sampled neurons.

        Spikes are counted, without complaints. The gradients belong to two different spike trains.
        """
        finding = Finding()
        if answer.spikes is None or answer.spikes.shape != self.case.shape or self.case.sites > 1:
            return finding
        sample = self._few
        trace = reference.forward(sample.current, self.rule)
        got = np.asarray(answer.spikes[:, :, sample.neurons], np.float64)
        compare_spikes(finding, got, trace.spikes, trace.potential, self.rule)
        finding.expected_rate = float(trace.spikes.mean())
        finding.neurons, finding.samples = self.extent.neurons, 0
        finding.seed = None if self.everything else self.seed
        if answer.weights is not None:
            gradient = reference.backward(self._input.cotangent_of(sample), trace, self.rule)
            if self._linear is not None:
                got = answer.weights[0][sample.neurons]
                compare_gradient(finding, "weight", got, self._linear.weight_gradient(gradient), np.inf)
            elif answer.input is not None:
                got = answer.input[:, sample.batch[:, None], sample.neurons]
                compare_gradient(finding, "input", got, gradient, np.inf)
        finding.complaints.clear()
        return finding

    @cached_property
    def _few(self) -> Sample:
        """Some neurons, or all, over the whole batch."""
        neurons = sampled(self.case.neurons, self.extent.neurons, self.seed)
        return self._draw(np.arange(self.case.batch), neurons)

    @cached_property
    def _some(self) -> Sample:
        """Some samples of the batch over all neurons; the same as `_few` if everything is compared."""
        if self.everything:
            return self._few
        return self._draw(sampled(self.case.batch, self.extent.samples, self.seed), np.arange(self.case.neurons))

    def _draw(self, batch: NDArray[np.intp], neurons: NDArray[np.intp]) -> Sample:
        return self._source.draw(batch, neurons)

    @cached_property
    def _network(self) -> Network:
        return self._given or NetworkCheck(self.case, self.rule, self.layers, self.inputs, self._cotangent)

    def _parts(self, finding: Finding, answer: Answer, spikes: NDArray[np.generic]) -> None:
        """Compare neurons, and then samples, unless the neurons were everything or no product mixes neurons."""
        sample = self._few
        followed = self._compare(finding, "few", sample, spikes[:, :, sample.neurons])
        if self._linear is not None and answer.weights is not None and not finding.complaints:
            Gradients(finding, followed, answer).compare_parameters(self._linear)
        if finding.complaints:
            return
        samples = self.extent.samples
        if isinstance(spikes, Held) and self.scanner and self.scanner.most_neurons == self.case.neurons:
            samples = 0  # all are scanned, and one over all neurons would take the host seconds
            self._require_input_gradient(finding, answer)
        if samples and not self.everything:
            sample = self._some
            followed = self._compare(finding, "some", sample, spikes[:, sample.batch])
        is_sampled = self._linear is None or samples > 0
        if answer.weights is not None and self.case.input_gradient and is_sampled and not finding.complaints:
            Gradients(finding, followed, answer).compare_input()

    def _scan(self, finding: Finding, answer: Answer, spikes: Any, scanner: Scanner) -> None:
        """Scan the whole answer, or many of its neurons, and compare the places that a scan suspects as any others."""
        case, everyone = self.case, np.arange(self.case.batch)
        neurons = sampled(case.neurons, scanner.most_neurons, self.seed)
        scan = scanner.scan(self.inputs, self._cotangent, answer, neurons)
        compared = case.time_steps * case.batch * len(neurons)
        judged = Finding()
        if scan.differing:
            samples, places = np.nonzero(scan.differs)
            self._columns(judged, spikes, samples, neurons[places])
            self._limit(judged, scan.differing, compared)
        for name, sums in scan.gradients.items():
            of_samples = name == "input" and self._linear is not None
            tolerance = self.tolerance(max(1, case.fan_out) if name == "input" else case.time_steps * case.batch)
            suspects, is_within = sums.suspects(tolerance), sums.relative <= tolerance
            if is_within:
                finding.gradient_errors[name], finding.cosines[name] = sums.relative, sums.cosine
            if not len(suspects) or judged.complaints:
                continue
            part = (suspects, np.arange(case.neurons)) if of_samples else (everyone, neurons[suspects])
            sample = self._draw(*part)
            followed = self._compare(judged, None, sample, spikes[:, part[0][:, None], part[1]])
            gradients = Gradients(judged, followed, answer)
            if name == "input":
                gradients.compare_input()
            elif self._linear is not None:
                gradients.compare_parameters(self._linear)
            if not is_within:  # the numbers are those of the suspects, with their tolerance
                for numbers in ("gradient_errors", "cosines", "tolerances"):
                    getattr(finding, numbers).update(
                        {key: each for key, each in getattr(judged, numbers).items() if key == name}
                    )
        finding.complaints += judged.complaints
        finding.first_wrong = judged.first_wrong or finding.first_wrong
        finding.unprovable, finding.allowed = judged.unprovable, max(finding.allowed, judged.allowed)
        finding.unexplained += judged.unexplained
        finding.neurons = len(neurons)
        if finding.neurons == case.neurons:
            finding.samples, finding.seed, finding.differing = case.batch, None, 0
            finding.rate = scan.fired / compared
        else:
            compared += case.time_steps * case.neurons * (finding.samples or 0)
        finding.compared, finding.differing = compared, finding.differing + scan.differing

    def _columns(self, finding: Finding, spikes: Any, batch: NDArray[np.intp], neurons: NDArray[np.intp]) -> None:
        """Compare the spikes of pairs of a sample and a neuron; of over MOST_COLUMNS pairs, some that are drawn."""
        drawn = sampled(len(batch), MOST_COLUMNS, self.seed)
        b, n = batch[drawn], neurons[drawn]
        current, summing = self._source.columns(b, n)
        got = np.asarray(spikes[:, b, n], np.float64)
        rule = self.rule.at(n)
        trace = reference.forward(current, rule, forced=got)
        margin = of_potentials(trace, rule, self.case.dtype, current, summing)
        expected = self.rule.fired(trace.potential)
        potential = trace.potential[:, None]  # shaped like one sample; only messages use its number
        compare_spikes(finding, got[:, None], expected[:, None], potential, self.rule, margin[:, None], (b[:1], n))

    def _require_input_gradient(self, finding: Finding, answer: Answer) -> None:
        """Complain about a gradient of the input that is missing or of another shape."""
        got, shape = answer.input, self.inputs.shape
        is_wanted = answer.weights is not None and self.case.input_gradient and not finding.complaints
        if is_wanted and (got is None or got.shape != shape):
            compare_gradient(finding, "input", got, np.broadcast_to(0.0, shape), np.inf)

    def _compare(self, finding: Finding, name: str | None, sample: Sample, spikes: NDArray[Any]) -> Followed:
        """Compare the spikes of a sample with the reference that follows them, the last one if they are the same.

        A sample with a name is the same in every answer.
        """
        got = np.asarray(spikes, np.float64)
        followed = self._followed.get(name or "")
        if followed is None or not np.array_equal(followed.spikes, got):
            followed = Followed(self._input, sample, got)
            if name:
                self._followed[name] = followed
        potential = followed.trace.potential
        expected = self.rule.fired(potential)
        margin = followed.margin(got != expected)
        differs = compare_spikes(finding, got, expected, potential, self.rule, margin, (sample.batch, sample.neurons))
        self._limit(finding, int(differs.sum()), differs.size, followed)
        return followed

    def _limit(self, finding: Finding, count: int, compared: int, followed: Followed | None = None) -> None:
        """Complain if so many explained differences are more than rounding makes.

        The number follows from `followed`, the reference on these neurons, or from the whole case if they were chosen
        for their differences.
        """
        is_exact = self.case.is_exact_format
        if not is_exact and (followed is None or self.case.dtype not in HALVES or self._is_other_neuron):
            return
        allowed = allowed_differences(compared) if is_exact else 1
        if count > allowed and not self._is_other_neuron:
            expected = followed.expected_differences if followed else self._moved_everywhere
            finding.allowed = allowed = max(allowed, allowed_by_chance(expected))
        if count > allowed and finding.correct:
            finding.complaints.append(
                f"{count} of {compared} spikes differ, {allowed} allowed; the first at {finding.first_wrong}"
            )

    @cached_property
    def _moved_everywhere(self) -> float:
        """How many spikes of the whole case rounding moves, on average."""
        sample = self._few
        free = reference.forward(sample.current, self.rule.at(sample.neurons))
        followed = Followed(self._input, sample, free.spikes)
        return followed.expected_differences * self.case.updates / sample.positions

    def _guard(self, finding: Finding) -> None:
        reason = out_of_window(finding.rate, self.rule.most_spikes, self.case.QUIETEST)
        if self._is_other_neuron:
            finding.complaints += [reason] if reason else []
        else:
            finding.unprovable = finding.unprovable or reason
