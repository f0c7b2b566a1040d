"""One measurement: prove by the exam, measure, prove by the spot check what was measured."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from snnbench import contention, exam, memory, roofline, timing
from snnbench.adapter import Unsupported
from snnbench.backends import Backend, Build, Session
from snnbench.inputs import Problem
from snnbench.inputs import exam as exam_problem
from snnbench.layout import Layout
from snnbench.peaks import Peaks
from snnbench.spotcheck import SpotCheck
from snnbench.statistics import trial_median
from snnbench.verify import Answer, Finding, verdict
from snnbench.wire import Reply, Request

CHECKED = 1
"""The input and cotangent that the last timed pass runs on."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What a phase runs, what must exist before that, and how to read what came out."""

    run: Callable[[Any], Any]
    read: Callable[[Any], Answer]
    prepare: Callable[[], Any] | None = None


def pieces(session: Session) -> dict[str, Piece]:
    """Every phase of a session."""
    return {
        "inference": Piece(lambda _: session.inference(), lambda spikes: session.answer(spikes, None)),
        "forward": Piece(lambda _: session.forward(), lambda kept: session.answer(session.spikes_of(kept), None)),
        "backward": Piece(
            lambda kept: (kept, session.backward(kept)),
            lambda outputs: session.answer(session.spikes_of(outputs[0]), outputs[1]),
            session.forward,
        ),
        "train": Piece(lambda _: session.train(), lambda outputs: session.answer(*outputs)),
    }


class Measurement:
    """A request being done on one backend."""

    def __init__(self, request: Request, backend: Backend, build: Build, layout: Layout, deviation: str | None) -> None:
        self.request, self.backend, self.build = request, backend, build
        self.layout, self.deviation = layout, deviation
        self.problem = Problem(request.case)

    def run(self, reply: Reply) -> None:
        """Fill `reply`. An answer that is wrong, and not declared to be, ends it without a time."""
        case = self.request.case
        if case.layers > 1 and case.dtype in ("float16", "bfloat16"):
            raise Unsupported(f"several layers in {case.dtype} cannot be verified: rounded spikes change every path")
        if not self._exam(reply):
            return
        session = self._session(self.problem)
        reply.settings["provider"] = session.provider()
        doing = {"verify": self._verify, "time": self._time, "memory": self._memory}[self.request.measure]
        doing(session, reply)
        reply.settings["provider"] = session.provider()  # a library may choose its kernel at the first call
        if not reply.outcome:
            correct = all(check["correct"] for check in reply.checks.values())
            reply.outcome = {"status": "measured", "verdict": verdict(self.request.case, correct, self.deviation)}
            if self.deviation:
                reply.outcome["deviation"] = self.deviation

    def _exam(self, reply: Reply) -> bool:
        """Every process sits the exam, for one layer and, where the case has more, for two."""
        for layers in (1, 2)[: min(2, self.request.case.layers)]:
            problem = exam_problem(self.request.case, layers)
            session = self._session(problem)

            def answer(which: int, cotangent: int, session: Session = session) -> Answer:
                session.load(which, cotangent)
                spikes, gradients = session.train()
                session.synchronise((spikes, gradients))
                return session.answer(spikes, gradients)

            finding = exam.sit(problem, answer)
            reply.checks[f"exam-{layers}"] = finding.as_dict()
            if not self._accept(reply, "exam", finding):
                return False
        return True

    def _verify(self, session: Session, reply: Reply) -> None:
        """What timing does, without a clock: every phase on one input, then on another, whose answer is checked."""
        check = SpotCheck(self.problem, CHECKED)
        every = pieces(session)
        for name in self.request.phases or every:
            piece = every[name]
            for which in (0, CHECKED):
                session.load(which, which)
                outputs = piece.run(piece.prepare() if piece.prepare else None)
                session.synchronise(outputs)
            if not self._spot(reply, name, check, piece.read(outputs)):
                return

    def _memory(self, session: Session, reply: Reply) -> None:
        phase = "train" if set(self.request.phases) - {"inference"} else "inference"
        measured, spikes, gradients = memory.measure(session, self.backend, phase)
        if self._spot(reply, phase, SpotCheck(self.problem, 0), session.answer(spikes, gradients)):
            reply.memory = measured

    def _time(self, session: Session, reply: Reply) -> None:
        """Time every phase, check what the last repetition of each one gave, and that no time is below its floor."""
        check = SpotCheck(self.problem, CHECKED)
        peaks = Peaks(self.backend, session, self.request.case, self.request.phases)
        peaks.look()
        phases: dict[str, Any] = {}
        for name in self.request.phases:
            if phases:
                peaks.look_if_cheap()
            phases[name], answer = self._time_phase(session, name)
            if not self._spot(reply, name, check, answer):
                return
            if compilations := phases[name]["compilations"]:
                reason = f"{compilations} compilations inside the timed region of {name}"
                reply.outcome = {"status": "failed", "kind": "recompiled", "reason": reason}
                return
        peaks.look_until(lambda: not any(self._under(name, phase, peaks) for name, phase in phases.items()))
        if reason := self._too_fast(phases, peaks):
            reply.outcome = {"status": "failed", "kind": "below-floor", "reason": reason}
            return
        for name, phase in phases.items():
            phase |= self._floor(name, phase, peaks)
        reply.phases, reply.peaks = phases, peaks.as_dict()

    def _under(self, name: str, phase: dict[str, Any], peaks: Peaks) -> bool:
        """Whether a time leaves a doubt about the peaks, or they about it."""
        return roofline.under(self.request.case, name, peaks.found, phase["repetitions_ns"], phase["passes"])

    def _too_fast(self, phases: dict[str, Any], peaks: Peaks) -> str:
        """The complaints about phases whose time cannot be true, or nothing."""
        case = self.request.case
        found = (
            roofline.complaint(case, name, peaks.found, phase["repetitions_ns"], phase["passes"])
            for name, phase in phases.items()
        )
        return "; ".join(complaint for complaint in found if complaint)

    def _floor(self, name: str, phase: dict[str, Any], peaks: Peaks) -> dict[str, Any]:
        """What a phase is at the least, and how many times that it took."""
        case = self.request.case
        floor_ns = roofline.floor_ns(case, name, peaks.found)
        return {
            "flops": roofline.flops(case, name),
            "least_bytes": roofline.least_bytes(case, name),
            "floor_ns": round(floor_ns),
            "times_floor": round(trial_median(phase["repetitions_ns"], phase["passes"]) / floor_ns, 4),
        }

    def _time_phase(self, session: Session, name: str) -> tuple[dict[str, Any], Answer]:
        request = self.request
        piece = pieces(session)[name]
        phase = timing.Phase(
            run=piece.run,
            wait=session.synchronise,
            compilations=self.backend.compilations,
            mark=session.mark,
            elapsed_ns=session.elapsed_ns,
            prepare=piece.prepare,
        )
        budget = timing.Budget(
            request.warmup_passes, request.repetitions, request.min_repetition_ns, request.max_phase_ns
        )
        session.load(0, 0)
        before = contention.usage()
        measured, outputs = timing.measure(phase, budget, lambda: session.load(CHECKED, CHECKED))
        others = contention.between(before, contention.usage())
        return asdict(measured) | {"contention": others}, piece.read(outputs)

    def _spot(self, reply: Reply, name: str, check: SpotCheck, answer: Answer) -> bool:
        finding = check.check(answer)
        reply.checks[f"spot-{name}"] = finding.as_dict()
        return self._accept(reply, f"spot check of {name}", finding)

    def _accept(self, reply: Reply, name: str, finding: Finding) -> bool:
        if finding.correct or self.deviation:
            return True
        reply.outcome = {"status": "failed", "kind": "incorrect", "reason": f"{name}: {finding.message}"}
        return False

    def _session(self, problem: Problem) -> Session:
        return self.backend.session(self.build, self.request.variant, self.layout, problem)
