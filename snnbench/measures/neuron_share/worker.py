"""The neuron's share of a pass: the pass, and the same pass with the identity in place of each neuron.

    share = 1 - time without neurons / time

Both passes run in one process, in turn: repetition by repetition, each time in the other order. So a change of the
machine's speed meets both, and each pair has a share of its own. The linear layers are those of the library's own
network, in its order of steps: over all time steps at once, or in each time step.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from snnbench.adapter.refusal import Unsupported
from snnbench.proof import linear_layers
from snnbench.proof.passes import answer_of, pieces
from snnbench.worker import timing
from snnbench.worker.measure import Measure, Timed, Work

WARM_UPS = 3
"""Untimed passes without neurons before the first pair, beside the pass that is checked."""


@dataclass(frozen=True, slots=True)
class WithoutNeurons:
    """Repetitions of a phase without neurons, and beside each one a repetition of the whole phase."""

    passes: int
    repetitions_ns: list[int]
    whole_passes: int
    whole_ns: list[int]


class LinearLayers(Measure):
    """A network without its neurons, beside the network that is timed. `reason` says why it has no time."""

    def __init__(self, work: Work) -> None:
        super().__init__(work)
        request, backend, problem = work.request, work.backend, work.problem
        self._session: Any = None
        self.reason = ""
        if request.case.is_divided or not problem.layers():
            self.reason = "only a stack of linear layers and neurons has a pass without neurons"
        else:
            # A library's output may be late; that of its linear layers is not.
            prompt = replace(work.variant, latency=0)
            self._session = self._if_it_fits(
                lambda: backend.session(backend.without_neurons(work.build, prompt), prompt, problem)
            )

    def after(self, timed: Timed) -> dict[str, Any]:
        """The key `without_neurons`, if there is such a pass and no other process takes turns with this one."""
        pairs = None if timed.takes_turns else self.beside(timed.name, timed.phase, timed.timing.passes)
        return {"without_neurons": asdict(pairs)} if pairs else {}

    def settings(self, phases: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Why the share was not measured."""
        return {"neuron_share": f"not measured: {self.reason}"} if self.reason else {}

    def beside(
        self, name: str, whole: timing.Phase, whole_passes: int, clock: timing.Clock = time.perf_counter_ns
    ) -> WithoutNeurons | None:
        """Pairs of repetitions of the phase `name`, without neurons and with them; None if there is no such pass.

        The phase `backward` has none: each of its passes needs a forward pass before.
        """
        if self._session is None or whole.prepare is not None:
            return None
        pairs: WithoutNeurons | None = self._if_it_fits(lambda: self._pairs(name, whole, whole_passes, clock))
        return pairs

    def _pairs(self, name: str, whole: timing.Phase, whole_passes: int, clock: timing.Clock) -> WithoutNeurons | None:
        request, session = self.work.request, self._session
        session.load(0, 0)
        if wrong := linear_layers.complaint(self.work.problem, session.network.gain, answer_of(name, session)):
            self._session, self.reason = None, wrong
            return None
        phase = replace(whole, run=pieces(session)[name].run, wait=session.synchronise)
        warm_ns = min(timing.repeat(phase, 1, clock).wall_ns for _ in range(WARM_UPS))
        budget = timing.Budget(0, request.repetitions, request.min_repetition_ns, request.max_phase_ns)
        sides = (phase, timing.passes_needed(phase, warm_ns, budget, clock)), (whole, whole_passes)
        durations: tuple[list[int], list[int]] = [], []
        started = clock()
        for number in range(request.repetitions):
            if number >= timing.FEWEST_REPETITIONS and clock() - started > request.max_phase_ns:
                break
            for side in (0, 1) if number % 2 else (1, 0):
                durations[side].append(timing.repeat(*sides[side], clock).wall_ns)
        return WithoutNeurons(sides[0][1], durations[0], whole_passes, durations[1])

    def _if_it_fits(self, run: Callable[[], Any]) -> Any:
        """The result of `run`; None if memory is short or the way is not for linear layers alone."""
        try:
            return run()
        except Unsupported as error:
            self.reason = str(error)
        except Exception as error:  # a framework raises errors of its own if a second network does not fit
            if self.work.backend.failure_kind(error) is None:
                raise
            self.reason = "no memory for the network without neurons beside the whole one"
        self._session = None
        return None


MEASURE = LinearLayers
