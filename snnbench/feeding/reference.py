"""The reference of a loader: frames of the same samples by their definition, read without Tonic."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snnbench.datasets.frames import KEPT_CHANNELS, Frames, frames
from snnbench.datasets.heidelberg import CHANNELS, DatasetError, opened
from snnbench.datasets.source import Source

LARGEST_KEPT_BYTES = 1 << 30
"""Frames are kept in memory up to this size."""
DIGESTED = 256
"""The number of samples whose frames enter the digest, beside all labels."""


class Reference:
    """The samples of a source, in frames of so many time steps. Raises DatasetError for a file that lacks some."""

    def __init__(self, source: Source, steps: int) -> None:
        self._source, self._steps = source, steps
        self._frames: dict[int, Frames] = {}
        self._keeps = source.samples * steps * KEPT_CHANNELS * np.dtype(np.int16).itemsize <= LARGEST_KEPT_BYTES
        with opened(source.path) as file:
            if (count := len(file["labels"])) < source.samples:
                raise DatasetError(f"{source.path}: holds {count} samples, where {source.samples} are asked for")
            self.labels: NDArray[np.int64] = file["labels"][: source.samples].astype(np.int64)
        if (highest := int(self.labels.max())) >= (classes := source.dataset.classes):
            raise DatasetError(f"{source.path}: a sample has the label {highest}, where there are {classes} words")

    def batch(self, numbers: Sequence[int]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Frames [T, B, KEPT_CHANNELS] and labels [B] of these samples."""
        stacked = np.stack(self._frames_of(numbers), axis=1).astype(np.float32)
        return stacked, self.labels[list(numbers)]

    def digest(self) -> str:
        """16 hexadecimal digits of all labels and of the frames of some samples: the content of the data."""
        content = hashlib.sha256(self.labels.tobytes())
        chosen = np.linspace(0, self._source.samples - 1, min(DIGESTED, self._source.samples)).astype(int)
        for frame in self._frames_of(chosen.tolist()):
            content.update(frame.tobytes())
        return content.hexdigest()[:16]

    def _frames_of(self, numbers: Sequence[int]) -> list[Frames]:
        missing = [number for number in numbers if number not in self._frames]
        made = self._made(missing) if missing else {}
        if self._keeps:
            self._frames |= made
        return [made[number] if number in made else self._frames[number] for number in numbers]

    def _made(self, numbers: Sequence[int]) -> dict[int, Frames]:
        with opened(self._source.path) as file:
            times, units = file["spikes/times"], file["spikes/units"]
            return {number: self._sample(number, times[number], units[number]) for number in numbers}

    def _sample(self, number: int, times_s: Any, units: Any) -> Frames:
        if len(units) and (highest := int(units.max())) >= CHANNELS:
            channels = f"the channels are 0 to {CHANNELS - 1}"
            raise DatasetError(f"{self._source.path}: sample {number} has an event of channel {highest}; {channels}")
        return frames(times_s, units, self._steps)
