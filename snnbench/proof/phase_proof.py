"""The proof of a timed phase: new content, and each answer compared with the reference or a verified answer."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from snnbench.backends import Session
from snnbench.cases.answer import Answer
from snnbench.proof.comparison import Finding
from snnbench.proof.fresh import Content, Contents, Memory, compare_gradients, copied, differing, in_first_order
from snnbench.proof.recorded_check import RecordedCheck
from snnbench.proof.spotcheck import SpotCheck

LOOKS = 3
"""Number of answers that are read again at first: their first reading may not take longer."""
READINGS_AGAIN = 3
"""Further readings of an answer. If all readings are equally slow, the first is the slowest in one look of four."""


def random_seed() -> int:
    """A new seed in every process and phase, so that no library can know which part of its answer is compared."""
    return int.from_bytes(os.urandom(6))


@dataclass(slots=True)
class PhaseProof:
    """The answers of one phase. `check` is for content 0, `check_drawn(number)` for content drawn anew.

    `spot` is the finding of the first answer to content 0, and `fresh` that of the others. `reading_ns` is the time of
    the first reading of an answer less that of its slowest other reading, for the first `looks` answers. Copies reuse
    memory, because new memory takes longer than the copy, and not always equally long.
    """

    session: Session
    read: Callable[[Any], Answer]
    check: SpotCheck | RecordedCheck
    check_drawn: Callable[[int], SpotCheck | RecordedCheck]
    contents: Contents
    on_cpu: bool
    spot: Finding | None = None
    fresh: Finding = field(default_factory=Finding)
    reading_ns: list[int] = field(default_factory=list)
    looks: int = LOOKS
    verified: Answer | None = None
    content: Content | None = None
    _memory: tuple[Memory, Memory] = field(default_factory=lambda: ({}, {}))

    def prepare(self, drawn: bool) -> None:
        """Make content that no pass has seen."""
        self.content = self.contents.next(drawn)
        for array in (self.contents.problem.input, self.contents.problem.cotangent):
            array(self.content.number)

    def load(self) -> None:
        """Put the new content in place. Raises ValueError if none was prepared."""
        if self.content is None:
            raise ValueError("no content was prepared")
        self.session.load(self.content.number, self.content.number)

    def touch(self) -> None:
        """Have the effect of `load` on caches and threads, and leave the content as it is.

        If `load` writes into an array, a library that checks only array versions would see new content. So as many
        bytes are copied elsewhere, by the session if it can.
        """
        if self.content is None or not getattr(self.session, "loads_in_place", True):
            return self.load()
        problem, number = self.contents.problem, self.content.number
        if touch := getattr(self.session, "touch", None):
            touch(number, number)
            return None
        copies = [np.copy(array) for array in (problem.input(number), problem.cotangent(number))]
        del copies

    def keep(self, outputs: Any) -> None:
        """Compare the answer to the new content. Raises ValueError if none was prepared."""
        answer = self._read(outputs)
        content = self.content
        if content is None:
            raise ValueError("no content was renewed")
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
            self.spot, self.verified = self.check.check(answer), copied(answer)
            return
        tolerances = self.spot.tolerances.values() if self.spot else ()
        of_format = self.check.tolerance(case.summed), self.check.tolerance(max(1, case.fan_in))
        tolerance = max(*of_format, *tolerances)
        differs = differing(answer, self.verified)
        if differs is None:
            self._add(self.check.check(answer))
        elif differs.any():
            self._add(self.check.check_where(answer, differs))
        else:
            compare_gradients(self.fresh, answer, self.verified, tolerance)
            self.fresh.rate = self.spot.rate if self.spot else self.fresh.rate

    def _read(self, outputs: Any) -> Answer:
        first, again = self._memory
        is_new = not again
        answer, first_ns = self._copied(outputs, first)
        if self.on_cpu and len(self.reading_ns) < self.looks:
            again_ns = max(self._copied(outputs, again)[1] for _ in range(READINGS_AGAIN))
            if not is_new:
                self.reading_ns.append(first_ns - again_ns)
        return answer

    def _copied(self, outputs: Any, memory: Memory) -> tuple[Answer, int]:
        """A copy of the answer, and the nanoseconds that it took."""
        started = time.perf_counter_ns()
        answer = copied(self.read(outputs), memory)
        return answer, time.perf_counter_ns() - started

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
