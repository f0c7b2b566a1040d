"""The proof of a timed phase: new content, and each answer compared with the reference or a verified answer."""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snnbench.backends import Session
from snnbench.cases.answer import Answer, Held
from snnbench.proof.comparison import Finding
from snnbench.proof.fresh import Content, Contents, Memory, compare_gradients, copied, differing, in_first_order, waking
from snnbench.proof.passes import PhaseCalls
from snnbench.proof.recorded_check import RecordedCheck
from snnbench.proof.scan import agreement
from snnbench.proof.spotcheck import SpotCheck

PLACES = 256
"""Numbers of each array of an answer that are read when the clock stops, and again when all is read."""

Places = tuple[NDArray[np.intp], ...]


def random_seed() -> int:
    """A new seed in every process and phase, so that no library can know which part of its answer is compared."""
    return int.from_bytes(os.urandom(6))


@dataclass(slots=True)
class PhaseProof:
    """The answers of one phase. `check` is for content 0, `check_drawn(number)` for content drawn anew.

    `spot` is the finding of the first answer to content 0, and `fresh` that of the others. Copies reuse memory, because
    new memory takes longer than the copy.
    """

    session: Session
    piece: PhaseCalls
    check: SpotCheck | RecordedCheck
    check_drawn: Callable[[int], SpotCheck | RecordedCheck]
    contents: Contents
    on_cpu: bool
    spot: Finding | None = None
    fresh: Finding = field(default_factory=Finding)
    verified: Answer | None = None
    content: Content | None = None
    _coming: list[Content] = field(default_factory=list)
    _chosen: Content | None = None
    _answer: Answer | None = None
    _lacks_cotangent: bool = False
    _is_held: bool | None = None
    _memory: Memory = field(default_factory=dict)
    _random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(random_seed()))

    def __post_init__(self) -> None:
        if self.check.scanner:
            self.check.scanner.begin()

    def prepare(self, drawn: int) -> None:
        """Make content that no pass has seen: so many drawn anew, or content 0 in another order.

        The answer of one pass is compared. It is drawn at random, so no library can know which.
        """
        self._coming = self.contents.next(drawn)
        counting = self._coming[waking(drawn) :]
        self._chosen = counting[random_seed() % len(counting)]
        made = [content.number for content in self._coming if content.order is None or not self._holds()]
        self.contents.problem.draw(made, self.piece.goes_back)

    def load(self) -> None:
        """Put the next new content in place. Raises ValueError if none was prepared.

        A forward pass that prepares a backward pass finds another cotangent; `arrive` puts the right one in place.
        """
        if not self._coming:
            raise ValueError("no content was prepared")
        self.content, self._lacks_cotangent = self._coming.pop(0), self.piece.prepare is not None
        number = self.content.number
        self.session.load(number, number if self.piece.goes_back and not self._lacks_cotangent else 0)

    def reload(self) -> None:
        """Put content 0 in place."""
        self.session.load(0, 0)

    def arrive(self) -> None:
        """Put the cotangent of new content in place, which a forward pass must not know."""
        if self._lacks_cotangent and self.content:
            self.session.load_cotangent(self.content.number)
            self._lacks_cotangent = False

    def keep(self, outputs: Any) -> None:
        """Copy the answer of the pass whose answer is compared.

        As soon as the clock has stopped, some numbers are read at places that no library can know, and once more when
        the answer is copied.
        """
        if self.content is not self._chosen:
            return
        seen = self._glimpse(outputs)
        self._answer = self._read(outputs)
        if self.on_cpu and self._at(outputs, [places for places, _ in seen]) != [numbers for _, numbers in seen]:
            self.fresh.complaints.append("the answer was not done when the clock stopped: it has changed since")

    def compare(self) -> None:
        """Compare the kept answer with the right one. Raises ValueError if no answer was kept."""
        answer, content = self._answer, self._chosen
        if answer is None or content is None:
            raise ValueError("no answer was kept")
        self._answer = None
        if self.fresh.complaints:
            return  # later complaints follow from the first
        if content.order is None:
            self._add(self.check_drawn(content.number).check(answer))
        else:
            self.judge(in_first_order(answer, content.order))

    def keep_last(self, outputs: Any) -> None:
        """Compare the answer to content 0."""
        self.judge(self._read(outputs))

    def judge(self, answer: Answer) -> None:
        """Compare an answer to content 0: the first with the reference, later answers with the first if possible."""
        case = self.check.case
        if self.verified is None:
            finding = self.check.check(answer)
            if self.spot is None:
                self.spot, self.verified = finding, copied(answer)
            else:
                self._add(finding)
            return
        tolerances = self.spot.tolerances.values() if self.spot else ()
        of_format = self.check.tolerance(case.summed), self.check.tolerance(max(1, case.fan_out))
        if isinstance(answer.spikes, Held):
            self._agree(answer, self.verified, 2 * max(of_format))
            return
        tolerance = max(*of_format, *tolerances)
        differs = differing(answer, self.verified)
        if differs is None:
            self._add(self.check.check(answer))
        elif differs.any():
            self._add(self.check.check_where(answer, differs))
        else:
            finding = Finding()
            compare_gradients(finding, answer, self.verified, tolerance)
            if finding.complaints and self.check.everything:
                finding = self.check.check(answer)  # rounding may have decided a spike otherwise in a second run
            self._add(finding)
            self.fresh.rate = self.spot.rate if self.spot else self.fresh.rate

    def _agree(self, answer: Answer, verified: Answer, tolerance: float) -> None:
        """Compare an answer with a verified one where both are; one that differs by more, with the reference."""
        errors = agreement(answer, verified)
        if errors is None or not all(error <= tolerance for error in errors.values()):
            self._add(self.check.check(answer))
            return
        rate = self.spot.rate if self.spot else 0.0
        self._add(Finding(compared=math.prod(verified.spikes.shape), rate=rate, gradient_errors=errors))  # type: ignore[union-attr]

    def release(self) -> None:
        """Drop the copies of answers on a device, which the passes of the next phase may need."""
        if self._is_held:
            self.verified = self._answer = None
            self._memory.clear()

    def _read(self, outputs: Any) -> Answer:
        parts = self.piece.parts(outputs)
        return copied(self.session.held(*parts) if self._holds() else self.session.answer(*parts), self._memory)

    def _holds(self) -> bool:
        """Whether the device keeps the answers. The first passes must be over: their memory stays free."""
        if self._is_held is None:
            scanner = self.check.scanner
            self._is_held = self.session.arranges = scanner is not None and scanner.has_room()
        return self._is_held

    def _glimpse(self, outputs: Any) -> list[tuple[Places, bytes]]:
        """Random places of each array of an answer, and the numbers there."""
        if not self.on_cpu:
            return []
        storage = self.session.storage(*self.piece.parts(outputs))
        places = [tuple(self._random.integers(0, size, PLACES) for size in each.shape) for each in storage]
        return [(where, each[where].tobytes()) for where, each in zip(places, storage, strict=True)]

    def _at(self, outputs: Any, places: list[Places]) -> list[bytes]:
        storage = self.session.storage(*self.piece.parts(outputs))
        return [each[where].tobytes() for where, each in zip(places, storage, strict=True)]

    def _add(self, finding: Finding) -> None:
        self.fresh.compared += finding.compared
        self.fresh.differing += finding.differing
        self.fresh.unexplained += finding.unexplained
        self.fresh.rate = finding.rate
        self.fresh.first_wrong = self.fresh.first_wrong or finding.first_wrong
        for name, error in finding.gradient_errors.items():
            self.fresh.gradient_errors[name] = max(error, self.fresh.gradient_errors.get(name, 0.0))
        for name, cosine in finding.cosines.items():
            self.fresh.cosines[name] = min(cosine, self.fresh.cosines.get(name, 1.0))
        self.fresh.allowed = max(self.fresh.allowed, finding.allowed)
        self.fresh.tolerances |= finding.tolerances
        self.fresh.complaints += finding.complaints
        self.fresh.unprovable = self.fresh.unprovable or finding.unprovable
