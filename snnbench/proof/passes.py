"""The passes of a session: the calls of each phase, and the answer of a pass."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from snnbench.backends import Session
from snnbench.cases.answer import Answer


@dataclass(frozen=True, slots=True)
class PhaseCalls:
    """A phase's `run`, its `prepare` before that, and `parts`: the spikes and the gradients of its outputs.

    `goes_back`: it has a backward pass, which reads the cotangent.
    """

    run: Callable[[Any], Any]
    parts: Callable[[Any], tuple[Any, Any]]
    prepare: Callable[[], Any] | None = None
    goes_back: bool = True


def pieces(session: Session) -> dict[str, PhaseCalls]:
    """The piece of every phase of a session."""
    return {
        "inference": PhaseCalls(lambda _: session.inference(), lambda spikes: (spikes, None), goes_back=False),
        "forward": PhaseCalls(
            lambda _: session.forward(), lambda kept: (session.spikes_of(kept), None), goes_back=False
        ),
        "backward": PhaseCalls(
            lambda kept: (kept, session.backward(kept)),
            lambda outputs: (session.spikes_of(outputs[0]), outputs[1]),
            session.forward,
        ),
        "train": PhaseCalls(lambda _: session.train(), lambda outputs: outputs),
    }


def answer_of(phase: str, session: Session) -> Answer:
    """The answer of one pass of a phase to the loaded content."""
    piece = pieces(session)[phase]
    outputs = piece.run(piece.prepare() if piece.prepare else None)
    session.synchronise(outputs)
    return session.answer(*piece.parts(outputs))
