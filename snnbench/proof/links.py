"""The links of a network: the operations between sites of neurons, each from the values that it really took.

Each is computed again in float64: its value and the gradients of its parameters, on some channels, and the gradient of
each value, summed over all operations that take it. Gradients of values are compared on some images, or on some
channels where an operation mixes images.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from snnbench.cases.answer import Recording
from snnbench.cases.operations import INPUT, Neurons, Operation, Sum
from snnbench.cases.problem import Graph
from snnbench.proof.comparison import Finding, compare_gradient
from snnbench.proof.extent import sampled
from snnbench.proof.tolerance import round_to

Array = NDArray[np.float64]
CHANNELS = 4
"""Channels of each operation that are computed again."""
IMAGES = 4
"""Images of each value whose gradients are computed again."""


class Links:
    """The operations between the sites of a recording of content of a problem.

    `tolerance` is the relative error allowed in an array whose entries sum so many terms, and `seed` draws the parts.
    """

    def __init__(self, problem: Graph, recording: Recording, seed: int, tolerance: Callable[[int], float]) -> None:
        self._problem, self._network, self._seed = problem, problem.operations(), seed
        self._answer, self._tolerance = recording.answer, tolerance
        self._values = {name: _by_image(value) for name, value in recording.values.items()}
        self._cotangents = {name: _by_image(value) for name, value in recording.cotangents.items()}
        drawn, dtype = problem.parameters(), problem.case.dtype
        self._parameters = {name: [round_to(each, dtype) for each in arrays] for name, arrays in drawn.items()}
        self._images = len(self._values[INPUT])

    def compare(self, finding: Finding) -> None:
        """Compare each operation's value and parameters, and each value's gradient."""
        gradients = iter(self._answer.weights or [])
        for operation in self._network:
            of_parameters = [next(gradients, None) for _ in operation.parameters]
            if not isinstance(operation, Neurons):
                self._compare_operation(finding, operation, of_parameters)
        consumers: dict[str, list[Operation]] = {}
        for operation in self._network:
            for name in operation.of:
                consumers.setdefault(name, []).append(operation)
        for name, taking in consumers.items():
            if not any(isinstance(operation, Neurons) for operation in taking):
                self._compare_cotangent(finding, name, taking)

    def reach_of_rounding(self, tolerance: float) -> list[float]:
        """How far two right passes may part in the gradient of each parameter, relative to its norm.

        On the way back each operation rounds by up to the `tolerance`. Independent errors add as their squares do. If
        terms cancel, the error of what arrives grows relative to what leaves. Such errors are taken from some channels.
        """
        reach: dict[str, float] = {}
        of_parameters: dict[str, list[float]] = {}
        for operation in reversed(self._network):
            arriving = reach.get(operation.name, 0.0)
            times, times_of_parameters = self._cancellations(operation)
            of_parameters[operation.name] = [np.hypot(arriving, tolerance) * each for each in times_of_parameters]
            leaving = arriving if isinstance(operation, Sum) else float(np.hypot(arriving * times, tolerance))
            for name in operation.of:
                reach[name] = max(reach.get(name, 0.0), leaving)
        return [each for operation in self._network for each in of_parameters[operation.name]]

    def _cancellations(self, operation: Operation) -> tuple[float, list[float]]:
        """How many times as large its terms are: of the gradient that leaves an operation, and of its parameters'.

        A normalisation of the batch makes its own terms cancel, and those of the convolution before it.
        """
        is_normalised = any(each.mixes_images and operation.name in each.of for each in self._network)
        if not (is_normalised or operation.mixes_images):
            return 1.0, [1.0 for _ in operation.parameters]
        channels = sampled(operation.shape[0], CHANNELS, self._seed)
        entering, parameters = self._part(operation, channels)
        cotangent = _float64(self._cotangents[operation.name][:, channels])
        gradients = operation.gradients(entering, parameters, cotangent)
        sizes = operation.gradient_sizes(entering, parameters, cotangent)
        norms = [float(np.linalg.norm(gradient)) for gradient in gradients]
        of_parameters = [max(1.0, size / norm) if norm else 1.0 for size, norm in zip(sizes, norms, strict=True)]
        times = operation.cancellation(entering, parameters, cotangent) if operation.mixes_images else 1.0
        return times, of_parameters

    def _compare_operation(
        self, finding: Finding, operation: Operation, gradients: Sequence[NDArray[np.generic] | None]
    ) -> None:
        channels = sampled(operation.shape[0], CHANNELS, self._seed)
        entering, parameters = self._part(operation, channels)
        expected = operation.value_of(channels, entering, parameters)
        value = self._values[operation.name][:, channels]
        compare_value(finding, f"value of {operation.name}", value, expected, self._tolerance(operation.terms))
        cotangent = _float64(self._cotangents[operation.name][:, channels])
        wanted = operation.gradients(entering, parameters, cotangent)
        tolerance = self._tolerance(self._images * int(np.prod(operation.shape[1:])))
        sizes = operation.gradient_sizes(entering, parameters, cotangent)
        for name, got, gradient, size in zip(operation.parameters, gradients, wanted, sizes, strict=True):
            part = None if got is None else got[channels]
            compare_gradient(finding, f"{name} of {operation.name}", part, gradient, tolerance, size)

    def _compare_cotangent(self, finding: Finding, name: str, taking: Sequence[Operation]) -> None:
        got = self._cotangents[name]
        if any(operation.mixes_images for operation in taking):
            (operation,) = taking
            channels = sampled(operation.shape[0], CHANNELS, self._seed)
            entering, parameters = self._part(operation, channels)
            cotangent = _float64(self._cotangents[operation.name][:, channels])
            (expected,) = operation.backward(entering, parameters, cotangent)
            got = got[:, channels]
        else:
            images = sampled(self._images, IMAGES, self._seed)
            got, expected = got[images], np.zeros(got[images].shape)
            for operation in taking:
                entering = [_float64(self._values[each][images]) for each in operation.of]
                parameters = [_float64(array) for array in self._parameters.get(operation.name, ())]
                back = operation.backward(entering, parameters, _float64(self._cotangents[operation.name][images]))
                for each, gradient in zip(operation.of, back, strict=True):
                    expected += gradient if each == name else 0.0
        terms = max(operation.terms for operation in taking)
        compare_value(finding, f"gradient of the value of {name}", got, expected, self._tolerance(terms))

    def _part(self, operation: Operation, channels: NDArray[np.intp]) -> tuple[list[Array], list[Array]]:
        """The entering values and the parameters of some of an operation's channels."""
        entering = [self._values[name] for name in operation.of]
        if operation.channelwise:
            entering = [value[:, channels] for value in entering]
        parameters = self._parameters.get(operation.name, ())
        return [_float64(value) for value in entering], [_float64(each[channels]) for each in parameters]


def compare_value(
    finding: Finding, name: str, got: NDArray[np.generic], expected: NDArray[np.generic], tolerance: float
) -> None:
    """Compare a value or its gradient as `compare_gradient` does. The finding lists gradients of parameters only."""
    part = Finding()
    compare_gradient(part, name, got, expected, tolerance)
    finding.complaints += [complaint.removeprefix("gradient of ") for complaint in part.complaints]


def _by_image(value: NDArray[np.generic]) -> NDArray[np.generic]:
    """[T, B, ...] as [images, ...]."""
    return value.reshape(-1, *value.shape[2:])


def _float64(array: NDArray[np.generic]) -> Array:
    return np.asarray(array, np.float64)
