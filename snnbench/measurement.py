"""One measurement: prove by the exam, measure, prove by the spot check what was measured."""

import re
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from snnbench import afterwork, contention, exam, fresh, memory, roofline, timing
from snnbench.adapter import AdapterError, Unavailable, Unsupported, Variant
from snnbench.backends import Backend, Build, Session
from snnbench.case import HALVES, Case
from snnbench.chain import Chain
from snnbench.fresh import Contents
from snnbench.inputs import Problem, odd
from snnbench.inputs import exam as exam_problem
from snnbench.layerwise import Layerwise
from snnbench.peaks import Peaks
from snnbench.phase_proof import PhaseProof, random_seed
from snnbench.rule import Rule
from snnbench.spotcheck import SpotCheck
from snnbench.statistics import trial_median
from snnbench.verify import Answer, Finding, verdict
from snnbench.wire import Reply, Request

OwnRule = Callable[[Case, str], Rule | None]
CHECKED = 1
"""The input and cotangent of the answers that verification checks, after passes on number 0."""
LOOKS = 3
"""How often a profiler is asked before it may say that a kernel did not run: it loses some now and then."""
BUSY_NS = 200_000_000
"""How long a card is kept busy before anything on it is timed: an idle one has a low clock for tens of milliseconds."""
SHOWN_NAMES = 6
"""Enough to see what ran in place of what was asked for."""


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

    def __init__(self, request: Request, backend: Backend, build: Build, own_rule: OwnRule, variant: Variant) -> None:
        self.request, self.backend, self.build, self.variant = request, backend, build, variant
        self.own_rule = own_rule
        self.problem = Problem(request.case)
        self.contents = Contents(self.problem, random_seed())
        self._whole_check: SpotCheck | None = None
        self._chain: Chain | None = None
        self.phases = tuple(name for name in request.phases if name == "inference" or not variant.inference_only)

    def run(self, reply: Reply) -> None:
        """Fill `reply`. An answer that is wrong, and not declared to be, ends it without a time."""
        case, variant = self.request.case, self.variant
        if refusal := variant.refusal(case):
            raise Unsupported(refusal)
        if self.request.phases and not self.phases:
            raise Unsupported(f"inference only: {variant.inference_only}")
        if variant.way == "amp" and case.dtype not in HALVES:
            raise Unsupported(f"autocast is for dtype {' and '.join(HALVES)} (asked for {case.dtype})")
        if not self._exam(reply):
            return
        session = self._session(self.problem)
        reply.settings["provider"] = session.provider()
        doing = {"verify": self._verify, "time": self._time, "memory": self._memory}[self.request.measure]
        doing(session, reply)
        reply.settings["provider"] = session.provider()  # a library may choose its kernel at the first call
        if not reply.outcome and variant.provider:
            self._prove(session, variant.provider, reply)
        if not reply.outcome:
            correct = all(check["correct"] for check in reply.checks.values())
            rule = self._rule(case)
            declared: dict[str, Any] = {"deviation": variant.deviation, "inference_only": variant.inference_only}
            declared["own_rule"] = asdict(rule) if rule else None
            reply.outcome = {"status": "measured", "verdict": verdict(case, correct, variant.deviation)}
            reply.outcome |= {name: value for name, value in declared.items() if value}

    def _prove(self, session: Session, patterns: tuple[str, ...], reply: Reply) -> None:
        """The kernels that a variant is named after must be among what a pass runs, whatever the library says of it.

        The first pattern is for the forward pass; the others run in `train` only.
        """
        phases = self.phases or (("inference",) if self.variant.inference_only else ("train",))
        matching: dict[str, None] = {}
        for phase in dict.fromkeys("inference" if name == "inference" else "train" for name in phases):
            wanted = patterns if phase == "train" else patterns[:1]
            names: dict[str, None] = {}
            for _ in range(LOOKS):
                names |= dict.fromkeys(session.ran(phase))
                lacking = [pattern for pattern in wanted if not any(re.search(pattern, name) for name in names)]
                if not lacking:
                    break
            if not names:
                step = "see what `snnbench doctor` says of profiling"
                raise Unavailable(f"the profiler saw nothing of {phase}, so which kernel ran is unknown; {step}")
            if lacking:
                ran = ", ".join(name[:60] for name in list(names)[:SHOWN_NAMES])
                reason = f"no kernel like {lacking[0]!r} ran in {phase} on {session.provider()}; what ran: {ran}"
                reply.outcome = {"status": "failed", "kind": "incorrect", "reason": reason}
                reply.phases, reply.memory, reply.peaks = {}, {}, {}
                return
            matching |= {name: None for pattern in wanted for name in names if re.search(pattern, name)}
        reply.settings["ran"] = list(matching)

    def _exam(self, reply: Reply) -> bool:
        """Every process sits the exam, for one layer and, where the case has more, for two."""
        for layers in (1, 2)[: min(2, self.request.case.layers)]:
            own = self._rule(self.request.case)
            case = self.request.case
            wider = own.threshold / (own.gain * case.threshold) if own else None
            problem = odd(case, layers, wider) if wider else exam_problem(case, layers)
            session = self._session(problem)

            def answer(which: int, cotangent: int, session: Session = session) -> Answer:
                session.load(which, cotangent)
                spikes, gradients = (session.inference(), None) if self.variant.inference_only else session.train()
                session.synchronise((spikes, gradients))
                return session.answer(spikes, gradients)

            rule = self._rule(problem.case)
            if rule:
                finding = self._own_exam(problem, answer, rule)
            else:
                finding = exam.sit(problem, answer, backward=not self.variant.inference_only)
            reply.checks[f"exam-{layers}"] = finding.as_dict()
            if not self._accept(reply, "exam", finding):
                return False
            if layers == 1 and rule is None:
                self._look_at_state(session, problem, reply)
        return True

    def _look_at_state(self, session: Session, problem: Problem, reply: Reply) -> None:
        """Whether a second pass without a reset goes on where the first ended, starts anew, or does neither.

        Asked of libraries that want a reset before every pass, run eagerly. It stands in the settings and decides
        nothing: every pass that is timed begins with the reset.
        """
        go_on = getattr(session, "inference_without_reset", None)
        if go_on is None or self.variant.way:
            return
        session.load(0, 0)
        session.synchronise(session.inference())
        session.load(1, 1)
        spikes = go_on()
        if spikes is not None:
            session.synchronise(spikes)
            reply.settings["state"] = exam.continuation(problem, session.answer(spikes, None).spikes)

    def _own_exam(self, problem: Problem, answer: Callable[[int, int], Answer], rule: Rule) -> Finding:
        """The exam's passes by a rule whose numbers are not exact in binary: what is close is left to rounding."""
        for which, cotangent in exam.PASSES:
            finding = SpotCheck(problem, which, rule, cotangent).check(answer(which, cotangent))
            if not finding.correct:
                break
        return finding

    def _rule(self, case: Case) -> Rule | None:
        """The rule that a variant is held to, where it is another neuron than the case's."""
        rule = self.own_rule(case, self.variant.built_as) if self.variant.deviation else None
        if not isinstance(rule, Rule | None):
            raise AdapterError(f"rule(case, {self.variant.built_as!r}) gave {rule!r}, expected a Rule or None")
        return rule

    def _verify(self, session: Session, reply: Reply) -> None:
        """What timing does, without a clock: every phase on one input, then on another, whose answer is checked."""
        if self.request.case.is_judged_by_layer:
            self._layers()
        for name in self.phases or (["inference"] if self.variant.inference_only else pieces(session)):
            for which in (0, CHECKED):
                session.load(which, which)
                answer = self._pass(name, session)
            check = self._check(CHECKED, name)
            if not self._spot(reply, name, check, check.check(answer), answer):
                return

    def _memory(self, session: Session, reply: Reply) -> None:
        phase = "train" if set(self.phases) - {"inference"} else "inference"
        measured, spikes, gradients = memory.measure(session, self.backend, phase)
        check, answer = self._check(0, phase), session.answer(spikes, gradients)
        if self._spot(reply, phase, check, check.check(answer), answer):
            reply.memory = measured

    def _time(self, session: Session, reply: Reply) -> None:
        """Time every phase, check its answers to old and new content, and that no time is below its floor."""
        case = self.request.case
        if case.is_judged_by_layer:
            self._layers()
        options = {"busy_ns": self._busy_ns} if self._busy_ns else {"settle": afterwork.settle}
        peaks = Peaks(self.backend, session, case, self.phases, **options)
        peaks.look()
        phases: dict[str, Any] = {}
        for name in self.phases:
            if phases:
                peaks.look_if_cheap()
            phases[name] = self._time_phase(session, name, reply)
            if reply.outcome:
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

    def _time_phase(self, session: Session, name: str, reply: Reply) -> dict[str, Any]:
        """The raw durations of a phase; an answer, or a time, that is not that of the work fails the cell."""
        request = self.request
        piece = pieces(session)[name]
        on_cpu = not request.case.device.startswith("cuda")
        drawn = partial(self._check_drawn, name=name)
        proof = PhaseProof(session, piece.read, self._check(0, name), drawn, self.contents, on_cpu)
        phase = timing.Phase(
            run=piece.run,
            wait=session.synchronise,
            compilations=self.backend.compilations,
            mark=session.mark,
            elapsed_ns=session.elapsed_ns,
            prepare=piece.prepare,
        )
        budget = timing.Budget(
            request.warmup_passes,
            request.repetitions,
            request.min_repetition_ns,
            request.max_phase_ns,
            self._busy_ns,
        )
        # While the host makes content and checks answers a card idles, and its clock falls.
        settle = afterwork.settle if on_cpu else lambda: timing.keep_busy(phase, self._busy_ns, time.perf_counter_ns)
        # In another order of the batch products may be rounded otherwise, and no other path of a sample is foretold.
        always = request.case.is_judged_by_layer

        def prepare(is_drawn: bool) -> None:
            proof.prepare(is_drawn or always)

        renewal = timing.Renewal(prepare, settle, proof.load, proof.keep, proof.touch)
        session.load(0, 0)
        # Beside a cell on a card others may run on other cards, with CPUs of their own.
        cpus = () if on_cpu else request.cpus
        before = contention.usage(cpus=cpus)
        measured, outputs = timing.measure(phase, budget, renewal)
        others = contention.between(before, contention.usage(cpus=cpus))
        if outputs is not None:
            proof.keep_last(outputs)
            timing.run_fresh(phase, measured, renewal, fresh.PASSES + 1, 1, time.perf_counter_ns)
        elif proof.spot is None:
            session.load(0, 0)
            proof.keep_last(timing.repeat(phase, 1, time.perf_counter_ns).outputs)
        del outputs
        spot = proof.spot or Finding()
        if self._spot(reply, name, proof.check, spot, proof.verified):
            reason = self._not_fresh(name, phase, measured, renewal, proof) if proof.fresh.correct else None
            reply.checks[f"fresh-{name}"] = proof.fresh.as_dict()
            if self._accept(reply, f"fresh passes of {name}", proof.fresh) and reason:
                reply.outcome = {"status": "failed", "kind": "incorrect", "reason": reason}
        return asdict(measured) | {"contention": others}

    def _not_fresh(
        self,
        name: str,
        phase: timing.Phase,
        measured: timing.Timing,
        renewal: timing.Renewal,
        proof: PhaseProof,
    ) -> str | None:
        """Why the time is not that of the work, or None: fresh passes take longer, or work goes on after the clock."""
        pass_ns = trial_median(measured.repetitions_ns, measured.passes)
        repeated_ns = pass_ns if measured.passes > 1 else min(measured.warmup_ns, default=pass_ns)
        waiting_ns = timing.synchronisation_ns(phase, time.perf_counter_ns)
        if late := afterwork.complaint(name, proof.reading_ns, pass_ns):
            return late
        for drawn, times in ((False, measured.fresh_ns), (True, measured.drawn_ns)):
            if len(times) < fresh.FEWEST_JUDGED and fresh.disagree(times, repeated_ns, waiting_ns):
                lacking = fresh.FEWEST_JUDGED - len(times)
                timing.run_fresh(phase, measured, renewal, lacking, lacking * drawn, time.perf_counter_ns)
            if not fresh.disagree(times, repeated_ns, waiting_ns):
                continue
            pairs: list[fresh.Pair] = []
            while fresh.undecided(pairs):
                pairs.append(timing.run_pair(phase, measured, renewal, drawn, fresh.REPEATS, time.perf_counter_ns))
            if fresh.are_kept(pairs):
                kind = "drawn anew" if drawn else "in another order"
                return (
                    f"a pass of {name} takes {fresh.slowdown(pairs):.3g} times as long on content {kind} as on content "
                    "that repeats: answers are kept"
                )
        return None

    @property
    def _busy_ns(self) -> int:
        return BUSY_NS if self.request.case.device.startswith("cuda") else 0

    def _check(self, which: int, name: str) -> SpotCheck:
        """The spot check of an input, by the rule that counts; of another part in every phase, unless it is of all."""
        if self._whole_check is None or self._whole_check.which != which:
            check = self._spot_check(which, name, self.request.check_ns)
            if not check.everything or self.request.case.is_judged_by_layer:
                return check
            self._whole_check = check
        return self._whole_check

    def _check_drawn(self, number: int, name: str) -> SpotCheck:
        """The spot check of content drawn anew: of a small part, for there is one for every phase."""
        return self._spot_check(number, name, 0)

    def _spot_check(self, which: int, name: str, budget_ns: int) -> SpotCheck:
        case, rule, seed = self.request.case, self._rule(self.request.case), random_seed()
        guarded = rule is None  # what is silent here fired in the exam

        def judge(layer: Problem, rule: Rule | None) -> SpotCheck:
            return SpotCheck(layer, 0, rule, guarded=guarded, budget_ns=budget_ns // case.layers, seed=seed)

        network = None
        if case.is_judged_by_layer:
            network = Layerwise(lambda: self._layers().links(which, partial(self._pass, name)), judge, rule)
        return SpotCheck(self.problem, which, rule, guarded=guarded, budget_ns=budget_ns, seed=seed, network=network)

    def _layers(self) -> Chain:
        """The layers of the network by themselves: a compiler forgets what it compiled before they are built."""
        if self._chain is None:
            self._chain = Chain(self.problem, self._session)
        return self._chain

    def _pass(self, name: str, session: Session) -> Answer:
        """The answer of one pass of a phase to what is in place."""
        piece = pieces(session)[name]
        outputs = piece.run(piece.prepare() if piece.prepare else None)
        session.synchronise(outputs)
        return piece.read(outputs)

    def _spot(self, reply: Reply, name: str, check: SpotCheck, finding: Finding, answer: Answer | None) -> bool:
        reply.checks[f"spot-{name}"] = finding.as_dict()
        if answer and self.variant.deviation and name == ("inference" if self.variant.inference_only else "train"):
            reply.checks[f"common-{name}"] = SpotCheck(self.problem, check.which).distance(answer).as_dict()
        return self._accept(reply, f"spot check of {name}", finding)

    def _accept(self, reply: Reply, name: str, finding: Finding) -> bool:
        if finding.correct or (self.variant.deviation and not self._rule(self.request.case)):
            return True
        reply.outcome = {"status": "failed", "kind": "incorrect", "reason": f"{name}: {finding.message}"}
        return False

    def _session(self, problem: Problem) -> Session:
        return self.backend.session(self.build, self.variant, problem)
