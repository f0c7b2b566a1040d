"""The chain of a network: each layer as a network of its own, on the spikes of the layer before it.

The library builds every link like the network, with the weights of that layer, and runs it in the same way. So each
layer shows its spikes and gradients, in any framework, without inspecting the timed network.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from snnbench.adapter.refusal import Incorrect
from snnbench.backends import Session
from snnbench.cases.answer import Answer
from snnbench.cases.problem import Problem, Stack
from snnbench.proof.fresh import copied

Array = NDArray[np.float32]
Pass = Callable[[Session], Answer]
"""Runs one pass of a phase, and reads its answer."""


@dataclass(frozen=True, slots=True)
class Link:
    """The problem of one layer by itself (content 0: its input and the arriving cotangent), and its answer."""

    problem: Problem
    answer: Answer


class Chain:
    """The layers of a problem, each in a `session` of its own."""

    def __init__(self, problem: Stack, session: Callable[[Problem], Session]) -> None:
        self.problem, self._make = problem, session
        entering, cotangent = problem.input(0), problem.cotangent(0)
        self._cases = [problem.layer(number, entering, cotangent).case for number in range(problem.case.sites)]
        self._problems = [
            problem.layer(number, _of_shape(entering, case.input_shape), _of_shape(cotangent, case.shape))
            for number, case in enumerate(self._cases)
        ]
        self._sessions = [session(layer) for layer in self._problems]

    def links(self, which: int, run: Pass) -> list[Link]:
        """Run the layers from the first to the last on content `which`, and, with gradients, back to the first.

        Raises Incorrect if the next layer cannot take a layer's answer, or if a layer's spikes change in a second run.
        """
        links: list[Link] = []
        entering, cotangent = self.problem.input(which), self.problem.cotangent(which)
        for number in range(len(self._sessions)):
            links.append(self._run(number, entering, _of_shape(cotangent, self._cases[number].shape), run))
            spikes, shape = links[-1].answer.spikes, links[-1].problem.case.shape
            entering = _passed_on(f"spikes of layer {number} by itself", spikes, shape)
        if links[-1].answer.weights is None:
            return links
        for number in reversed(range(len(links) - 1)):
            arriving, shape = links[number + 1].answer.input, links[number].problem.case.shape
            cotangent = _passed_on(f"input gradient of layer {number + 1} by itself", arriving, shape)
            links[number] = self._run(number, links[number].problem.input(0), cotangent, run)
            spikes = _passed_on(f"spikes of layer {number} by itself", links[number].answer.spikes, cotangent.shape)
            if not np.array_equal(spikes, links[number + 1].problem.input(0)):
                raise Incorrect(f"layer {number} by itself gives other spikes to the same input when it runs again")
        return links

    def first(self, which: int, count: int, run: Pass) -> Answer:
        """The answer of the stack of the first layers, built and run like the whole network, to content `which`."""
        problem = self.problem.first(count)
        cotangent = _of_shape(self.problem.cotangent(which), problem.case.shape)
        problem.put(0, self.problem.input(which), cotangent)
        session = self._make(problem)
        session.load(0, 0)
        return copied(run(session))

    def _run(self, number: int, entering: Array, cotangent: Array, run: Pass) -> Link:
        self._problems[number].put(0, entering, cotangent)
        self._sessions[number].load(0, 0)
        return Link(self.problem.layer(number, entering, cotangent), copied(run(self._sessions[number])))


def _of_shape(array: Array, shape: tuple[int, ...]) -> Array:
    """The array, or its numbers in another shape: content of a layer before its own is known."""
    return array if array.shape == shape else np.resize(array, shape)


def _passed_on(name: str, array: NDArray[np.generic] | None, shape: tuple[int, ...]) -> Array:
    """A layer's answer as the input of the next layer. Raises Incorrect."""
    if array is None or array.shape != shape:
        raise Incorrect(f"{name}: got shape {'none' if array is None else list(array.shape)}, expected {list(shape)}")
    return np.ascontiguousarray(array, np.float64 if array.dtype == np.float64 else np.float32)
