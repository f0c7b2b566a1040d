"""The spot checks of a process: they choose the compared part of each answer, the rule and the cost."""

from collections.abc import Callable
from functools import partial

from snnbench.backends import Session
from snnbench.cases.problem import Problem, Stack
from snnbench.cases.rule import Rule
from snnbench.proof.chain import Chain
from snnbench.proof.layerwise import Layerwise
from snnbench.proof.passes import answer_of
from snnbench.proof.phase_proof import random_seed
from snnbench.proof.spotcheck import SpotCheck


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
        self._whole: SpotCheck | None = None
        self._chain: Chain | None = None

    def check(self, which: int, phase: str) -> SpotCheck:
        """The spot check of the answers of a phase to one of the problem's two inputs."""
        if self._whole is None or self._whole.which != which:
            check = self._new(which, phase, self._budget_ns)
            if not check.everything or self.problem.case.is_judged_by_layer:
                return check
            self._whole = check
        return self._whole

    def check_drawn(self, number: int, phase: str) -> SpotCheck:
        """The spot check of content drawn anew: of a small part, because every phase has one."""
        return self._new(number, phase, 0)

    def layers(self) -> Chain:
        """The layers of the network by themselves. Building them resets a compiler."""
        if self._chain is None:
            assert isinstance(self.problem, Stack), "only a stack is judged by its layers"
            self._chain = Chain(self.problem, self._session)
        return self._chain

    def _new(self, which: int, phase: str, budget_ns: int) -> SpotCheck:
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
        return SpotCheck(self.problem, which, rule, guarded=guarded, budget_ns=budget_ns, seed=seed, network=network)
