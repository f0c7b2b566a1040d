"""One timed phase of a case with a loader: its epochs, and the proof that they do the work.

The content of each epoch is new to the network: every phase and repetition has an order of samples of its own. After
the clock the same loop runs over batches that the reference reads without Tonic, in the same order and from the same
state. Its outputs, losses and gradients or parameters must be those of the timed epoch.

That shows that the loop repeats itself, not that it does the work. So one step of it, drawn at random, is judged in
float64: from the parameters that the loop had reached, on its batch, with its outputs and its gradients.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snnbench.cases.operations import Operation
from snnbench.proof import epochs
from snnbench.proof.comparison import Finding
from snnbench.proof.passes import answer_of
from snnbench.proof.phase_proof import random_seed
from snnbench.proof.spot_checks import SpotChecks
from snnbench.worker import contention, timing, used_cpus
from snnbench.worker.fed import EpochSession
from snnbench.worker.measure import Measure
from snnbench.worker.messages import Request

LOADER, COMPUTE = "loader", "compute"
ORDERS = {"epoch": 0, "compute": 1000, "loader": 2000}
"""The number of the first order of samples of each phase."""
KEPT_BATCHES = 8
"""Batches of an epoch whose frames are compared with the reference's, and not only their labels and losses."""
RESIDENT_BATCHES = 64
"""The most batches that are on the device for `compute`; a longer epoch takes them in turn."""
REAL_BATCH = {"epoch": 3, "compute": 4}
"""The number of the content that holds a batch of the data, for the check of a step of each phase."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step of an epoch: its batch, the parameters before it, its outputs [B, classes] and its gradients."""

    numbers: list[int]
    parameters: list[Any]
    outputs: Any
    gradients: list[NDArray[Any]]


class TimedEpochs:
    """The phase `name`, timed for the request's repetitions. `findings` proves its answers."""

    def __init__(self, name: str, request: Request, fed: EpochSession, checks: SpotChecks) -> None:
        self.name, self._request, self._fed, self._checks = name, request, fed, checks
        self._case: Any = fed.case
        self._epochs: list[Any] = []
        self._states: list[list[NDArray[Any]]] = []
        self._timing = timing.Timing()
        self._foreign: dict[str, float] = {}

    def measure(self) -> None:
        """Time the epochs."""
        fed, request = self._fed, self._request
        if self.name != LOADER:
            fed.session.load(0, 0)
            for number in range(1 + request.warmup_passes):
                started = time.perf_counter_ns()
                fed.session.synchronise(fed.session.train())
                spent_ns = time.perf_counter_ns() - started
                if number:
                    self._timing.warmup_ns.append(spent_ns)
                else:
                    self._timing.first_call_ns = spent_ns
        trains, in_process = self.name != LOADER, self.name == COMPUTE or not self._case.workers
        loop = fed.loop(trains, in_process)
        fed.trainer.restart()
        for repetition in range(request.repetitions):
            batches, keep = self._batches_of(repetition), self._kept_of(repetition)
            before = self._usage()
            epoch = loop.run(batches, keep)
            del batches  # ends the loader's processes, whose seconds then count as this process's
            foreign = contention.between(before, self._usage()).items()
            self._foreign = {name: max(cpus, self._foreign.get(name, cpus)) for name, cpus in foreign}
            self._timing.repetitions_ns.append(epoch.wall_ns)
            self._epochs.append(epoch)
            if trains:
                self._states.append([_numpy(each) for each in fed.trainer.state()])
        self._timing.fresh_ns = list(self._timing.repetitions_ns)
        if self.name == LOADER:
            self._timing.first_call_ns = self._epochs[0].first_ns

    def measure_further(self, measures: Iterable[Measure]) -> None:
        """Measure nothing: an epoch is more than passes."""

    def as_dict(self) -> dict[str, Any]:
        """The raw durations, those of the parts, the mean loss and the accuracy of each epoch."""
        names = dict.fromkeys(part for epoch in self._epochs for part in epoch.parts_ns)
        loaders = dict.fromkeys(part for epoch in self._epochs for part in epoch.loader_ns)
        document = asdict(self._timing) | {
            "contention": self._foreign,
            "parts_ns": {part: [epoch.parts_ns.get(part, 0) for epoch in self._epochs] for part in names},
            "loader_ns": {part: [epoch.loader_ns.get(part, 0) for epoch in self._epochs] for part in loaders},
        }
        if self.name == LOADER:
            return document
        losses = [[float(loss) for loss in epoch.losses] for epoch in self._epochs]
        rights = [
            np.concatenate([_numpy(output).argmax(1) for output in epoch.outputs])
            == np.concatenate([_numpy(labels) for labels in epoch.labels])
            for epoch in self._epochs
        ]
        return document | {
            "losses": [float(np.mean(of_epoch)) for of_epoch in losses],
            "losses_digest": sha256(np.array(losses).tobytes()).hexdigest()[:16],
            "accuracies": [float(right.mean()) for right in rights],
        }

    def findings(self) -> Iterator[tuple[str, Finding]]:
        """(name of a check, its finding), until one is not correct."""
        content = Finding()
        for repetition, epoch in enumerate(self._epochs):
            self._compare_content(content, repetition, epoch)
        yield f"content-{self.name}", content
        if self.name == LOADER:
            return
        finding, step = self._run_again()
        yield f"losses-{self.name}", finding
        assert step is not None, "only a wrong epoch lacks it"
        yield from self._findings_of_step(step)

    def _batches_of(self, repetition: int) -> Iterable[Any]:
        order = self._order(repetition)
        if self.name != COMPUTE:
            loader: Iterable[Any] = self._fed.feed.loader(order)
            return loader
        numbers = self._fed.batches(order)
        resident = [self._fed.placed(each) for each in numbers[:RESIDENT_BATCHES]]
        return [resident[number % len(resident)] for number in range(len(numbers))]

    def _numbers_of(self, repetition: int) -> list[list[int]]:
        """The samples of each batch that a repetition ran on."""
        numbers = self._fed.batches(self._order(repetition))
        if self.name == COMPUTE:
            return [numbers[number % min(RESIDENT_BATCHES, len(numbers))] for number in range(len(numbers))]
        return numbers

    def _order(self, repetition: int) -> list[int]:
        return self._fed.order(ORDERS[self.name] + repetition)

    def _kept_of(self, repetition: int) -> list[int]:
        if self.name == COMPUTE:
            return []  # they are the reference's own
        count = self._case.batches
        random = np.random.Generator(np.random.Philox(random_seed()))
        return [int(each) for each in random.choice(count, min(KEPT_BATCHES, count), replace=False)]

    def _usage(self) -> contention.Usage:
        cpus = () if self._case.device.startswith("cuda") else self._request.cpus
        return contention.usage(cpus=cpus).with_ranks(0.0, 0.0, used_cpus.of_children_s())

    def _compare_content(self, finding: Finding, repetition: int, epoch: Any) -> None:
        numbers = self._numbers_of(repetition)
        if len(epoch.labels) != len(numbers):
            finding.complaints.append(f"{len(epoch.labels)} batches were loaded, expected {len(numbers)}")
            return
        for number, labels in enumerate(epoch.labels):
            epochs.compare_batches(finding, number, _numpy(labels), self._fed.reference.labels[numbers[number]])
        for number, frames in epoch.frames.items():
            expected, _ = self._fed.reference.batch(numbers[number])
            got = _numpy(frames)
            got = got.swapaxes(0, 1) if self._fed.trainer.batch_first else got
            epochs.compare_batches(finding, number, got, expected)

    def _run_again(self) -> tuple[Finding, Step | None]:
        """Run the same loop over the reference's batches, and compare all answers; also one step, if all are right."""
        finding, fed = Finding(), self._fed
        fed.trainer.restart()
        loop = fed.loop(trains=True, in_process=True)
        names, step = self._parameter_names, None
        # Not the first of all, from the first parameters, if there is another.
        chosen = 1 + random_seed() % max(1, len(self._epochs) * self._case.batches - 1)
        for repetition, epoch in enumerate(self._epochs):
            epochs.require_finite(finding, list(map(_numpy, epoch.losses)))
            if not finding.correct:
                break
            numbers = self._numbers_of(repetition)
            number = min(chosen, len(self._epochs) * len(numbers) - 1) - repetition * len(numbers)
            if 0 <= number < len(numbers):
                parts = [loop.run(map(fed.placed, numbers[:number]))]
                parameters = fed.trainer.parameters()
                with fed.trainer.apart() as gradients:
                    parts.append(loop.run(map(fed.placed, numbers[number : number + 1])))
                step = Step(numbers[number], parameters, epoch.outputs[number], gradients)
                parts.append(loop.run(map(fed.placed, numbers[number + 1 :])))
            else:
                parts = [loop.run(map(fed.placed, numbers))]
            outputs, losses = ([each for part in parts for each in getattr(part, of)] for of in ("outputs", "losses"))
            for what, mine, other in (("outputs", epoch.outputs, outputs), ("losses", epoch.losses, losses)):
                epochs.compare_outputs(finding, list(map(_numpy, mine)), list(map(_numpy, other)), what)
            state = [_numpy(each) for each in fed.trainer.state()]
            on_cpu = not self._case.device.startswith("cuda")
            if finding.correct:
                epochs.compare_states(finding, self._states[repetition], state, names, self._case, on_cpu)
        return finding, step

    def _findings_of_step(self, step: Step) -> Iterator[tuple[str, Finding]]:
        """The check of the whole network on a step's batch and parameters, and the step beside it."""
        fed, problem, recorder = self._fed, self._checks.problem, self._checks.recorder()
        frames, labels = fed.reference.batch(step.numbers)
        _, placed_labels, _ = fed.placed(step.numbers)
        cotangent = fed.trainer.arriving(step.outputs, placed_labels)
        content = REAL_BATCH[self.name]
        problem.put(content, frames, cotangent)
        problem.put_parameters(fed.trainer.own(step.parameters))  # type: ignore[attr-defined]
        for session in (fed.session, recorder):
            fed.trainer.put(session, step.parameters)
        fed.session.load(content, content)
        answer = answer_of("train", fed.session)
        check = self._checks.check(content, "train")
        yield "spot-train", check.check(answer)
        beside = Finding()
        epochs.compare_cotangent(beside, cotangent, _numpy(step.outputs), labels)
        epochs.compare_sums(beside, _numpy(step.outputs), answer.spikes, self._case)
        beside.compared += step.outputs.numel()
        epochs.compare_steps(beside, step.gradients, answer.weights or [], self._parameter_names, self._case)
        yield "step-train", beside

    @cached_property
    def _parameter_names(self) -> list[str]:
        operations: Sequence[Operation] = self._checks.problem.operations()  # type: ignore[attr-defined]
        return [f"{name} of {each.name}" for each in operations for name in each.parameters]


def _numpy(tensor: Any) -> NDArray[Any]:
    array: NDArray[Any] = tensor.detach().cpu().numpy()
    return array
