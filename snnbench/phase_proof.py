"""The proof of a timed phase: what each of its answers is compared with, and what has to be new about its content."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from snnbench import afterwork
from snnbench.backends import Session
from snnbench.fresh import Content, Contents, Order, compare_gradients, copied, differing, in_first_order
from snnbench.spotcheck import SpotCheck
from snnbench.verify import Answer, Finding

LOOKS = 2
"""Passes after which the harness waits for the process to idle. After the others it reads the answer at once, so that
nobody can finish it meanwhile."""


def random_seed() -> int:
    """Another one in every process and phase, so that no library can know which part of its answer is compared."""
    return int.from_bytes(os.urandom(6))


@dataclass(slots=True)
class PhaseProof:
    """The answers of one phase. `check` is of content 0, `check_drawn(number)` of content drawn anew.

    `spot` is what was found of the first answer, and `fresh` of the others; `left_ns` is the CPU time that the process
    used after the clock had stopped, and `reading_ns` what reading an answer took beyond reading it again.
    """

    session: Session
    read: Callable[[Any], Answer]
    check: SpotCheck
    check_drawn: Callable[[int], SpotCheck]
    contents: Contents
    on_cpu: bool
    spot: Finding | None = None
    fresh: Finding = field(default_factory=Finding)
    left_ns: list[int] = field(default_factory=list)
    reading_ns: list[int] = field(default_factory=list)
    verified: Answer | None = None
    _content: Content | None = None

    def renew(self, drawn: bool) -> None:
        """Put content in place that no pass has seen."""
        self._content = self.contents.next(drawn)
        self.session.load(self._content.number, self._content.number)

    @property
    def order(self) -> Order | None:
        """The order of the samples in the content that is in place."""
        return self._content.order if self._content else None

    def keep(self, outputs: Any) -> None:
        """Compare the answer to the new content."""
        answer = self._read(outputs)
        content = self._content
        if content is None:
            raise ValueError("no content was renewed")
        if self.fresh.complaints:
            return  # the first says most
        if content.order is None:
            self._add(self.check_drawn(content.number).check(answer))
        else:
            self.judge(in_first_order(answer, content.order))

    def keep_last(self, outputs: Any) -> None:
        """Compare the answer to content 0."""
        self.judge(self._read(outputs))

    def judge(self, answer: Answer) -> None:
        """Compare an answer to content 0: the first with the reference, the others with the first where they can be."""
        case = self.check.case
        if self.verified is None:
            self.spot, self.verified = self.check.check(answer), answer
            return
        tolerance = max(self.check.tolerance(case.time_steps * case.batch), self.check.tolerance(case.neurons))
        differs = differing(answer, self.verified)
        if differs is None:
            self._add(self.check.check(answer))
        elif differs.any():
            self._add(self.check.check_where(answer, differs))
        else:
            compare_gradients(self.fresh, answer, self.verified, tolerance)

    def _read(self, outputs: Any) -> Answer:
        if not self.on_cpu:
            return copied(self.read(outputs))
        if len(self.left_ns) < LOOKS:
            self.left_ns.append(afterwork.cpu_ns())
            return copied(self.read(outputs))
        started = time.perf_counter_ns()
        answer = copied(self.read(outputs))
        first_ns = time.perf_counter_ns() - started
        copied(self.read(outputs))
        self.reading_ns.append(2 * first_ns - (time.perf_counter_ns() - started))
        return answer

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
        self.fresh.complaints += finding.complaints
