"""One measurement of a request: the exam first, then the measurement and the spot check of its answers."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from snnbench import workloads
from snnbench.adapter.declaration import Variant
from snnbench.adapter.refusal import AdapterError, Incorrect, Unsupported
from snnbench.backends import Backend, Build, Session
from snnbench.cases import nodes
from snnbench.cases.answer import Answer
from snnbench.cases.case import HALVES, Case
from snnbench.cases.outcome import failed, measured, skipped
from snnbench.cases.problem import Problem
from snnbench.cases.rule import Rule
from snnbench.proof import cause, exam, state
from snnbench.proof.comparison import Finding, verdict
from snnbench.proof.fresh import Contents
from snnbench.proof.passes import answer_of, pieces
from snnbench.proof.phase_proof import random_seed
from snnbench.proof.provider import kernels_that_ran
from snnbench.proof.spot_checks import Check, SpotChecks
from snnbench.proof.spotcheck import SpotCheck
from snnbench.worker import fed, floor, garbage, measure, unfinished_work, used_cpus
from snnbench.worker.instructions import Count, uncounted
from snnbench.worker.messages import Announce, Reply, Request, silent
from snnbench.worker.peaks import Peaks
from snnbench.worker.relay import Relay
from snnbench.worker.timed_epochs import TimedEpochs
from snnbench.worker.timed_phase import BUSY_NS, TimedPhase
from snnbench.worker.turns import Turns
from snnbench.worker.used_cpus import UsedCpus

OwnRule = Callable[[Case, str], Rule | None]
FIRST_DRAWN = 1 << 16
"""Numbers of content drawn anew begin here, or later: the problem's own inputs and cotangents are below."""
TWICE = "backward through the graph a second time"
"""What PyTorch says of a gradient that goes back into a graph whose backward pass is over."""
CHECKED_INPUT = 1
"""The number of the input and cotangent that verification checks, after passes on number 0."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The worker's counter of instructions, its turns with another worker, its place in a relay, and its notes."""

    instructions: Count = uncounted
    turns: Turns | None = None
    relay: Relay | None = None
    announce: Announce = silent


ALONE = Surroundings()
"""Those of a worker without company."""


class Measurement:
    """A request being done on one backend."""

    def __init__(
        self,
        request: Request,
        backend: Backend,
        build: Build,
        own_rule: OwnRule,
        variant: Variant,
        around: Surroundings = ALONE,
    ) -> None:
        self.request, self.backend, self.build, self.variant = request, backend, build, variant
        self.instructions, self.turns = around.instructions, around.turns
        self.relay, self.announce = around.relay, around.announce
        self.own_rule, self.workload = own_rule, workloads.of(request.case)
        self.problem = self.workload.Problem(request.case)
        self.phases = tuple(name for name in request.phases if name == "inference" or not variant.inference_only)

    def run(self, reply: Reply) -> None:
        """Fill `reply`. If an answer is wrong and no deviation is declared, the reply has no time."""
        case, variant = self.request.case, self.variant
        if refusal := variant.refusal(case):
            raise Unsupported(refusal)
        if self.request.phases and not self.phases:
            raise Unsupported(f"inference only: {variant.inference_only}")
        if variant.way == "amp" and case.dtype not in HALVES:
            raise Unsupported(f"autocast is for dtype {' and '.join(HALVES)} (asked for {case.dtype})")
        if variant.way == "amp" and not self.workload.products(case, "train"):
            raise Unsupported("autocast casts the operands of products, and this work has none")
        self.backend.refuse(self.problem, variant)
        if not self._exam(reply):
            return
        if self.request.measure != "verify":
            garbage.collect_as_usual()
        if self.request.measure == "time":
            self._wait()
        own = None if self.request.measure in ("time", "verify") else measure.own(self.request.measure, self.backend)
        if own:
            own.before_build()
        started = time.perf_counter_ns()
        session = self._session(self.problem)
        session.synchronise(None)
        self._build_ns = time.perf_counter_ns() - started
        if own:
            own.after_build()
        reply.settings["provider"] = session.provider()
        if session.split:
            reply.settings["split"] = session.split
        if own:
            self._measure(own, session, reply)
        else:
            {"verify": self._verify, "time": self._time}[self.request.measure](session, reply)
        reply.settings["provider"] = session.provider()  # a library may choose its kernel at the first call
        if not reply.outcome and variant.provider:
            self._prove(session, variant.provider, reply)
        if not reply.outcome:
            correct = all(check["correct"] for check in reply.checks.values())
            reply.outcome = measured(
                verdict(case, correct, variant.deviation),
                deviation=variant.deviation,
                inference_only=variant.inference_only,
                own_rule=asdict(self.rule) if self.rule else None,
            )

    def _wait(self) -> None:
        """Draw what a pass needs, and return once it is this worker's turn.

        A worker that keeps off its card has waited already.
        """
        self.problem.draw()
        on_card = self.request.case.device.startswith("cuda")
        if self.relay and (self.relay.uses_card or not on_card):
            self.request = self.relay.wait(self.request)

    def _prove(self, session: Session, patterns: tuple[str, ...], reply: Reply) -> None:
        """Fail the reply if a pass does not run the kernels that its variant names. Raises Unavailable."""
        phases = self._of_passes or (("inference",) if self.variant.inference_only else ("train",))
        names, complaint = kernels_that_ran(session, phases, patterns)
        if complaint:
            reply.outcome = failed("incorrect", complaint)
            reply.phases, reply.memory, reply.peaks, reply.probes = {}, {}, {}, {}
            reply.settings.pop("probes_ms", None)
        else:
            reply.settings["ran"] = names

    def _exam(self, reply: Reply) -> bool:
        """Run the workload's exams, and return whether all were passed."""
        case, own = self.request.case, self.rule
        drive = own.threshold / (own.gain * case.threshold) if own else None
        for number, problem in enumerate(self.workload.exams(case, drive), start=1):
            session = self._session(problem)

            def answer(which: int, cotangent: int, session: Session = session) -> Answer:
                session.load(which, cotangent)
                try:
                    spikes, gradients = (session.inference(), None) if self.variant.inference_only else session.train()
                except RuntimeError as error:
                    first, *_ = str(error).split(". ")
                    leaks = case.cuts_gradient and TWICE in first
                    mistake = cause.STATE_KEPT if which else cause.GRADIENT_CARRIED if leaks else ""
                    if not mistake or self.backend.failure_kind(error):
                        raise
                    raise Incorrect(f"exam: {mistake}; it raises {type(error).__name__}: {first}") from error
                session.synchronise((spikes, gradients))
                return session.answer(spikes, gradients)

            rule, backward = self._rule_of(problem.case), not self.variant.inference_only
            finding = self._own_exam(problem, answer, rule) if rule else exam.run_exam(problem, answer, backward)
            reply.checks[f"exam-{number}"] = finding.as_dict()
            if not self._accept(reply, "exam", finding):
                return False
            if number == 1 and rule is None:
                reply.settings |= {} if self.variant.way else state.of(session, problem)
        return True

    def _own_exam(self, problem: Problem, answer: Callable[[int, int], Answer], rule: Rule) -> Finding:
        """The exam's passes by a rule with numbers that are not exact in binary: rounding decides close spikes."""
        for which, cotangent in exam.PASSES:
            finding = SpotCheck(problem, which, rule, cotangent).check(answer(which, cotangent))
            if not finding.correct:
                break
        return finding

    @property
    def _of_passes(self) -> tuple[str, ...]:
        """The phases of single passes that are verified; an epoch trains, batch by batch."""
        return ("train",) if self.request.case.is_fed else self.phases

    @cached_property
    def _checks(self) -> SpotChecks:
        return SpotChecks(self.problem, self.rule, self.request.check_ns, self._session)

    @cached_property
    def rule(self) -> Rule | None:
        """The rule that the variant is held to if its neuron is another than the case's. Raises AdapterError."""
        return self._rule_of(self.request.case)

    def _rule_of(self, case: Case) -> Rule | None:
        rule = self.own_rule(case, self.variant.built_as) if self.variant.deviation else None
        if not isinstance(rule, Rule | None):
            raise AdapterError(f"rule(case, {self.variant.built_as!r}) gave {rule!r}, expected a Rule or None")
        return rule

    def _verify(self, session: Session, reply: Reply) -> None:
        """Run every phase on one input, then on another, without a clock; check the second answer."""
        self._checks.prepare()
        for name in self._of_passes or (["inference"] if self.variant.inference_only else pieces(session)):
            for which in (0, CHECKED_INPUT):
                session.load(which, which)
                answer = answer_of(name, session)
            check = self._checks.check(CHECKED_INPUT, name)
            if not self._spot(reply, name, check, check.check(answer), answer):
                return

    def _measure(self, own: measure.OwnCell, session: Session, reply: Reply) -> None:
        """Do a measure that has cells of its own, and check the answer of its pass."""
        phase = "train" if set(self.phases) - {"inference"} else "inference"
        spikes, gradients = own.measure(session, phase)
        check, answer = self._checks.check(0, phase), session.answer(spikes, gradients)
        if self._spot(reply, phase, check, check.check(answer), answer):
            if reason := own.complaint():
                reply.outcome = failed("incorrect", reason)
            else:
                setattr(reply, self.request.measure, own.of_record())

    def _work(self, session: Session) -> measure.Work:
        """What is timed, on a CPU that idles or a card that is busy."""
        on_card = self.request.case.device.startswith("cuda")
        settle, busy_ns = (lambda: None, BUSY_NS) if on_card else (unfinished_work.settle, 0)
        given = (self.request, self.backend, self.build, self.variant, self.problem)
        return measure.Work(*given, session, settle, busy_ns)

    def _time(self, session: Session, reply: Reply) -> None:
        """Time every phase, check its answers to old and new content, and compare its time with the floor."""
        case = self.request.case
        if arrays := session.arrays():
            self._checks.scan_with(arrays)
        self._checks.prepare()
        work = self._work(session)
        peaks = Peaks(work, self.phases)
        peaks.look()
        measures = measure.of(work)
        for each in measures:
            each.begin()
        phases: dict[str, Any] = {}
        measured: dict[str, TimedEpochs | TimedPhase] = {}
        with ExitStack() as stack:
            feed = stack.enter_context(fed.fed(case, session, self.announce)) if case.is_fed else None
            reply.settings |= feed.settings() if feed else {}
            contents = Contents(self.problem, random_seed(), FIRST_DRAWN + random_seed())
            reply.settings["first_content"] = contents.first
            for number, name in enumerate(self.phases, start=1):
                if phases:
                    peaks.look_if_cheap()
                used = UsedCpus(self.instructions)
                if self.turns:
                    self.turns.step = number
                if feed:
                    timed: TimedEpochs | TimedPhase = TimedEpochs(name, self.request, feed, self._checks)
                else:
                    timed = TimedPhase(name, work, self._checks, contents, used.count, self.turns)
                timed.measure()
                allowed = case.cpus(nodes.count()) + (0 if self.request.cpus else case.loaders)
                cpus = used.cpus(timed.as_dict(), allowed)
                too_many = used_cpus.complaint(name, cpus, allowed)
                if reason := too_many or used_cpus.unpinned(name, self.request.cpus):
                    reply.outcome = failed("incorrect", reason)
                    return
                if not self._proved(timed, reply):
                    return
                timed.measure_further(measures)
                if isinstance(timed, TimedPhase):
                    timed.proof.release()
                measured[name] = timed
                phases[name] = timed.as_dict()
                phases[name]["contention"]["timed_cpus"] = cpus
                if compilations := phases[name]["compilations"]:
                    reply.outcome = failed("recompiled", f"{compilations} compilations in the timed region of {name}")
                    return
        rates = floor.rates_of(reply.checks)
        peaks.look_until(lambda: not floor.any_under(case, peaks.by_name, phases, rates))
        for name in floor.complaints(case, peaks.by_name, phases, rates):
            if isinstance(timed := measured[name], TimedPhase):
                timed.time_again(peaks.look)
                phases[name] |= timed.durations()
                reply.checks[f"fresh-{name}"] = timed.proof.fresh.as_dict()
                if not self._accept(reply, f"fresh passes of {name}", timed.proof.fresh):
                    return
        if reasons := floor.complaints(case, peaks.by_name, phases, rates):
            reply.outcome = failed("below-floor", "; ".join(reasons.values()))
            return
        for each in measures:
            each.end()
        for name, phase in phases.items():
            phase |= floor.beside(case, name, peaks.by_name, phase) | {"build_ns": self._build_ns}
        reply.phases, reply.peaks = phases, peaks.as_dict()
        reply.settings |= {"turns": self.turns.taken} if self.turns else {}
        for each in measures:
            reply.settings |= each.settings(phases)
            for name, part in each.of_record().items():
                setattr(reply, name, part)

    def _proved(self, timed: TimedEpochs | TimedPhase, reply: Reply) -> bool:
        """Whether the answers of a timed phase are right and its time is that of the work."""
        if isinstance(timed, TimedEpochs):
            for name, finding in timed.findings():
                reply.checks[name] = finding.as_dict()
                if not self._accept(reply, name.replace("-", " of ", 1), finding):
                    break
            return not reply.outcome
        name, proof = timed.name, timed.proof
        if not self._spot(reply, name, proof.check, proof.spot or Finding(), proof.verified):
            return False
        reason = timed.not_the_work() if proof.fresh.correct else None
        if proof.fresh != Finding():  # a single pass has the spot check alone
            reply.checks[f"fresh-{name}"] = proof.fresh.as_dict()
        if self._accept(reply, f"fresh passes of {name}", proof.fresh) and reason:
            reply.outcome = failed("incorrect", reason)
        return not reply.outcome

    def _spot(self, reply: Reply, name: str, check: Check, finding: Finding, answer: Answer | None) -> bool:
        reply.checks[f"spot-{name}"] = finding.as_dict()
        if answer and self.variant.deviation and name == ("inference" if self.variant.inference_only else "train"):
            reply.checks[f"common-{name}"] = SpotCheck(self.problem, check.which).distance(answer).as_dict()
        return self._accept(reply, f"spot check of {name}", finding)

    def _accept(self, reply: Reply, name: str, finding: Finding) -> bool:
        if finding.correct and finding.unprovable:
            reply.outcome = skipped("unprovable", f"{name}: {finding.unprovable}")
            return False
        if finding.correct or (self.variant.deviation and not self.rule):
            return True
        reply.outcome = failed("incorrect", f"{name}: {finding.message}")
        return False

    def _session(self, problem: Problem) -> Session:
        return self.backend.session(self.build, self.variant, problem)
