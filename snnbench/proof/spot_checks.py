"""The spot checks of a process: they choose the compared part of each answer, the rule and the cost."""

from collections.abc import Callable
from functools import partial
from typing import Any

from snnbench.backends import Session
from snnbench.cases.answer import Arrays, Recording
from snnbench.cases.problem import Graph, Problem, Stack
from snnbench.cases.rule import Rule, rule_of
from snnbench.proof import scan
from snnbench.proof.chain import Chain
from snnbench.proof.layerwise import Layerwise
from snnbench.proof.passes import answer_of
from snnbench.proof.phase_proof import random_seed
from snnbench.proof.recorded_check import RecordedCheck
from snnbench.proof.scan import Scanner
from snnbench.proof.spotcheck import SpotCheck

Check = SpotCheck | RecordedCheck


class SpotChecks:
    """The spot checks of a problem's answers by `rule`; None is the rule of the case.

    A check of whole answers is made once, and may take `budget_ns`. A check of a part takes another part each time.
    `session` builds the library's network for a problem.
    """

    def __init__(
        self, problem: Problem, rule: Rule | None, budget_ns: int, session: Callable[[Problem], Session]
    ) -> None:
        self.problem = problem
        self._rule, self._budget_ns, self._session = rule, budget_ns, session
        self._whole: Check | None = None
        self._chain: Chain | None = None
        self._recorder: Session | None = None
        self._scanner: Scanner | None = None

    def scan_with(self, arrays: Arrays) -> None:
        """Scan answers where this device holds them, unless a scan does not know the neuron."""
        case, rule = self.problem.case, self._rule or rule_of(self.problem.case)
        if not isinstance(self.problem, Graph) and scan.knows(case, rule):
            self._scanner = Scanner(arrays, case, rule, next(iter(self.problem.layers()), None))

    def check(self, which: int, phase: str) -> Check:
        """The spot check of the answers of a phase to one of the problem's two inputs."""
        if self._whole is None or self._whole.which != which:
            check = self._new(which, phase, self._budget_ns)
            if isinstance(check, RecordedCheck):
                self._whole = check  # one recording serves all phases
                return check
            if not check.everything or self.problem.case.is_judged_by_layer:
                return check
            self._whole = check
        return self._whole

    def check_drawn(self, number: int, phase: str) -> Check:
        """The spot check of content drawn anew: of a small part, because every phase has one."""
        return self._new(number, phase, 0)

    def prepare(self) -> None:
        """Build what the checks run beside the timed network, before it: building resets a compiler."""
        if isinstance(self.problem, Graph):
            self.recorder()
        elif self.problem.case.is_judged_by_layer:
            self.layers()

    def recorder(self) -> Session:
        """A second network of operations, to be recorded."""
        if self._recorder is None:
            self._recorder = self._session(self.problem)
        return self._recorder

    def layers(self) -> Chain:
        """The layers of the network by themselves."""
        if self._chain is None:
            assert isinstance(self.problem, Stack), "only a stack is judged by its layers"
            self._chain = Chain(self.problem, self._session)
        return self._chain

    def _recording(self, which: int) -> Recording:
        recorder = self.recorder()
        recorder.load(which, which)
        recording: Recording = recorder.recorded()
        return recording

    def _new(self, which: int, phase: str, budget_ns: int) -> Check:
        if isinstance(self.problem, Graph):
            record = partial(self._recording, which)
            return RecordedCheck(self.problem, which, record, budget_ns > 0, budget_ns, random_seed())
        case, rule, seed = self.problem.case, self._rule, random_seed()
        guarded = rule is None  # a deviating neuron that is silent here fired in the exam

        def judge(layer: Problem, rule: Rule | None) -> SpotCheck:
            return SpotCheck(layer, 0, rule, guarded=guarded, budget_ns=budget_ns // case.sites, seed=seed)

        network = None
        if case.is_judged_by_layer:
            run = partial(answer_of, phase)
            network = Layerwise(
                lambda: self.layers().links(which, run),
                judge,
                rule,
                lambda count: self.layers().first(which, count, run),
            )
        options: dict[str, Any] = {"guarded": guarded, "seed": seed, "network": network, "scanner": self._scanner}
        return SpotCheck(self.problem, which, rule, budget_ns=budget_ns, **options)
