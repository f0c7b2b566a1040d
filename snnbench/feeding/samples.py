"""Samples: Tonic's dataset of a case, whose reading and transforming are timed, and whose faults have one clear line.

The time of a sample is noted in the process that loads it. A batch carries the notes of its samples to the loop.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tonic

from snnbench.adapter.refusal import Unavailable
from snnbench.cases.case import Case
from snnbench.datasets.frames import KEPT_CHANNELS, SECOND_US, window_us
from snnbench.datasets.heidelberg import CHANNELS, DatasetError, opened
from snnbench.feeding import cache

PARTS = ("reading", "transforming", "caching", "collating")
"""The parts of a loader's work, in the order of a batch's notes."""
FAULTS = (OSError, KeyError, IndexError, RuntimeError, TypeError, ValueError)
"""Raised by Tonic, NumPy and HDF5 for a damaged file."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A sample that cannot be loaded. The message travels in place of the sample, and is raised in the loop.

    `full_folder` is the folder of the cache if its disk is full.
    """

    message: str
    full_folder: Path | None = None

    def raised(self) -> DatasetError | Unavailable:
        """The error to raise."""
        return cache.full(self.full_folder, self.message) if self.full_folder else DatasetError(self.message)


@dataclass(slots=True)
class Notes:
    """Nanoseconds of each part since the last batch, in this process."""

    spent_ns: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PARTS, 0))

    def add(self, part: str, ns: int) -> None:
        """Note so many more nanoseconds of a part."""
        self.spent_ns[part] += ns

    def take(self) -> list[int]:
        """The nanoseconds of all PARTS, which then count from 0."""
        taken = [self.spent_ns[part] for part in PARTS]
        self.spent_ns.update(dict.fromkeys(PARTS, 0))
        return taken


class Timed:
    """A dataset or a transform; `last_ns` is the time of its last call, and `calls` their number."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.last_ns, self.calls = inner, 0, 0

    def __call__(self, events: Any) -> Any:
        """The transformed events."""
        return self._timed(self.inner, events)

    def __getitem__(self, index: int) -> Any:
        """A sample."""
        return self._timed(self.inner.__getitem__, index)

    def __len__(self) -> int:
        return len(self.inner)

    def _timed(self, call: Callable[[Any], Any], argument: Any) -> Any:
        started = time.perf_counter_ns()
        result = call(argument)
        self.last_ns, self.calls = time.perf_counter_ns() - started, self.calls + 1
        return result


class Samples:
    """The first samples of a dataset: frames [T, 1, KEPT_CHANNELS] and label, or a Fault.

    `cached` puts a cache around the dataset, and `cache_folder` is its folder if it is on the disk. If `is_complete`,
    the cache holds every sample, and one that it lacks is a fault: to make it anew in silence would be other work.
    """

    def __init__(
        self,
        case: Case,
        folder: Path,
        cached: Callable[[Any], Any] = lambda dataset: dataset,
        is_complete: bool = False,
        cache_folder: Path | None = None,
    ) -> None:
        self._case, self._is_complete, self._cache_folder = case, is_complete, cache_folder
        self._path: Path = case.source.path  # type: ignore[attr-defined]
        self.notes = Notes()
        self._transform = Timed(frames_of(case.time_steps))
        self._read = Timed(dataset_of(case, folder, self._transform))
        self._whole = cached(self._read)

    def __len__(self) -> int:
        samples: int = self._case.samples  # type: ignore[attr-defined]
        return samples

    def __getitem__(self, index: int) -> Any:
        """A sample, with its time noted."""
        calls, started = self._read.calls, time.perf_counter_ns()
        try:
            frames, label = self._whole[index]
        except FAULTS as error:
            if self._cache_folder and cache.is_full(error):
                return Fault("its disk is full", self._cache_folder)
            return Fault(f"sample {index} of {self._path}: {self._foreign_channel(index) or _line(error)}")
        spent_ns = time.perf_counter_ns() - started
        if self._read.calls == calls:
            self.notes.add("reading", spent_ns)
        elif self._is_complete:
            return Fault(f"sample {index} is not in the cache, which should be complete; remove the cache")
        else:
            self.notes.add("reading", self._read.last_ns - self._transform.last_ns)
            self.notes.add("transforming", self._transform.last_ns)
            self.notes.add("caching", spent_ns - self._read.last_ns)
        if frames.shape != (self._case.time_steps, 1, KEPT_CHANNELS):
            return Fault(f"sample {index} has no event, or frames of the shape {list(frames.shape)}")
        return frames, label

    def _foreign_channel(self, index: int) -> str:
        """A sentence on an event whose channel the layout lacks; empty if the sample has no such event."""
        with suppress(DatasetError, *FAULTS), opened(self._path) as file:
            if (highest := int(file["spikes/units"][index].max())) >= CHANNELS:
                return f"has an event of channel {highest}; the channels are 0 to {CHANNELS - 1}"
        return ""


def frames_of(steps: int) -> Callable[[Any], Any]:
    """Tonic's transforms of the first second of a sample into frames, as in Lenz's experiment, for fixed time steps."""
    transforms = tonic.transforms
    whole_second = {"start_time": 0, "end_time": SECOND_US, "include_incomplete": True}
    compose: Callable[[Any], Any] = transforms.Compose(
        [
            transforms.Downsample(spatial_factor=KEPT_CHANNELS / CHANNELS),
            transforms.CropTime(max=SECOND_US),
            transforms.ToFrame((KEPT_CHANNELS, 1, 1), time_window=window_us(steps), **whole_second),
        ]
    )
    return compose


def dataset_of(case: Case, folder: Path, transform: Callable[[Any], Any]) -> Any:
    """Tonic's dataset of the case's file, seen through a link in `folder`.

    Tonic downloads an archive that it misses beside the file. So an empty one stands beside the link, and nothing is
    written into the user's folder.
    """
    source = case.source  # type: ignore[attr-defined]
    link = source.dataset.path(folder, "train")
    link.parent.mkdir(parents=True, exist_ok=True)
    link.with_suffix(".h5.zip").touch()
    link.unlink(missing_ok=True)
    link.symlink_to(source.path)
    if source.dataset.name == "ssc":
        return tonic.datasets.SSC(str(folder), split="train", transform=transform)
    return tonic.datasets.SHD(str(folder), train=True, transform=transform)


def _line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
