"""Answers that a device holds, for tests: NumPy's arrays in its place."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snnbench.cases import answer
from snnbench.cases.answer import Answer, Held
from snnbench.cases.problem import Problem
from snnbench.proof.scan import Scanner
from snnbench.proof.spotcheck import SpotCheck


class Arrays(answer.Arrays):
    """NumPy's arrays; `read` counts the numbers that were copied to the host."""

    m = np

    def __init__(self, free_bytes: int = 1 << 30) -> None:
        self.read, self._free_bytes = 0, free_bytes

    def exact(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def put(self, array: NDArray[np.float32]) -> Any:
        return array.copy()

    def float64(self, array: Any) -> Any:
        return np.asarray(array, np.float64)

    def numpy(self, array: Any) -> NDArray[Any]:
        copy = np.array(array)
        self.read += copy.size
        return copy

    def copied(self, array: Any, target: Any | None) -> Any:
        return np.array(array)

    def begin(self) -> None:
        """Nothing is counted."""

    def free_bytes(self) -> int:
        return self._free_bytes


def held(answer: Answer, arrays: answer.Arrays) -> Answer:
    """The answer, held by a device."""
    return answer.each(lambda array: Held(arrays.put(np.asarray(array)), arrays))


def scanning(problem: Problem, arrays: answer.Arrays, most_neurons: int | None = None, **options: Any) -> SpotCheck:
    """A spot check that scans, in small blocks; `most_neurons` is what it has time for."""
    check = SpotCheck(problem, 0, **options)
    layer = next(iter(problem.layers()), None)
    scanner = Scanner(arrays, problem.case, check.rule, layer, entries=2000)
    scanner.most_neurons = problem.case.neurons if most_neurons is None else most_neurons
    return SpotCheck(problem, 0, scanner=scanner, **options)
