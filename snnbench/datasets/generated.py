"""Generated files of the Heidelberg spiking datasets: the same layout and the same sizes, without a download.

The number of events of a sample is lognormal. SSC's files take 35.1 kB a sample, at 4 bytes an event, which is about
8,000 events; its words last 0.8 to 1.2 s. A word is a few bands of channels that rise or fall, like the formants of a
vowel, beside events at random. So a network can learn the words, and its accuracy is no chance. A sample depends on the
seed, its split and its number only: a longer file begins with the samples of a shorter one.
"""

import io
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snnbench.datasets.heidelberg import CHANNELS, SEED, Dataset, DatasetError, generated
from snnbench.files import draft

MEDIAN_EVENTS, SPREAD, FEWEST, MOST = 8000, 0.35, 500, 20_000
"""Events of a sample: lognormal with this median and standard deviation of the logarithm, cut at both ends."""
DURATIONS_S = (0.8, 1.2)
BANDS = 6
"""Bands of channels of a word."""
NOISE = 0.2
"""The share of events at random."""
BAND_WIDTH, SPEAKER_SHIFT = 15.0, 10.0
"""Standard deviations, in channels: of the events around a band, and of a sample's pitch around that of its word."""
SPEAKERS = 12
SAMPLE_BYTES = 50_000
"""Bytes of a sample on the disk, with some room: 36.4 kB at the median number of events."""


@dataclass(frozen=True, slots=True)
class Word:
    """The bands of a word: channel, change of channel over its duration, first and last moment as shares of it."""

    channels: NDArray[np.float64]
    drifts: NDArray[np.float64]
    starts: NDArray[np.float64]
    ends: NDArray[np.float64]


def word(seed: int, label: int) -> Word:
    """The word of a label, the same in all splits."""
    random = _generator(seed, "word", label)
    starts = random.uniform(0.0, 0.6, BANDS)
    return Word(random.uniform(50, CHANNELS - 50, BANDS), random.uniform(-120, 120, BANDS), starts, starts + 0.4)


def sample(seed: int, split: str, number: int, classes: int) -> tuple[NDArray[np.float16], NDArray[np.uint16], int]:
    """Times in seconds, ascending, channels of the events, and the label of a sample."""
    random = _generator(seed, split, number)
    label = int(random.integers(classes))
    spoken = word(seed, label)
    count = int(np.clip(random.lognormal(np.log(MEDIAN_EVENTS), SPREAD), FEWEST, MOST))
    band = random.integers(BANDS, size=count)
    moments = random.uniform(spoken.starts[band], spoken.ends[band])
    centres = spoken.channels[band] + spoken.drifts[band] * moments + SPEAKER_SHIFT * random.standard_normal()
    channels = centres + BAND_WIDTH * random.standard_normal(count)
    noise = random.random(count) < NOISE
    moments[noise] = random.random(int(noise.sum()))
    channels[noise] = random.uniform(0, CHANNELS, int(noise.sum()))
    moments[int(random.integers(count))] = 1.0  # the last event ends the word
    order = np.argsort(moments)
    times = (moments[order] * random.uniform(*DURATIONS_S)).astype(np.float16)
    units = np.clip(np.floor(channels[order]), 0, CHANNELS - 1).astype(np.uint16)
    return times, units, label


def make(
    dataset: Dataset,
    split: str,
    samples: int,
    seed: int,
    folder: Path,
    each: Callable[[int, int], None] = lambda done, count: None,
) -> Path:
    """Write the file of a split where Tonic expects it, and return its path; `each` gets the progress.

    The file is written under another name first, so a file of the right name is whole. The same file is not written
    again. Tonic looks for the archive of a download, so an empty one is written, too. Raises DatasetError if another
    file has that name or the disk is full.
    """
    path = dataset.path(folder, split)
    if not path.exists():
        _make(path, dataset, split, samples, seed, each)
    elif generated(path) != (samples, seed):
        raise DatasetError(f"{path}: holds other samples; remove it, or name another --folder")
    path.with_suffix(".h5.zip").touch()
    return path


def _make(path: Path, dataset: Dataset, split: str, samples: int, seed: int, each: Callable[[int, int], None]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if (free := shutil.disk_usage(path.parent).free) < SAMPLE_BYTES * samples:
        needed = SAMPLE_BYTES * samples / 1e9
        raise DatasetError(f"{path}: takes up to {needed:.3g} GB, and its disk has {free / 1e9:.3g} GB left; free some")
    try:
        with draft(path) as unfinished:
            _write(unfinished, dataset, split, samples, seed, each)
    except OSError as error:
        raise DatasetError(f"{path}: cannot be written: {error.strerror or error}; nothing was kept") from error


class _Disk(io.FileIO):
    """A file for HDF5, whose library ends the process if a write fails. So the failure is noted here instead."""

    failure: OSError | None = None

    def write(self, content: Any) -> int:
        """Write all of the content, or note why not."""
        left = memoryview(content).cast("B")
        size = len(left)
        try:
            while left and not self.failure:
                left = left[super().write(left) or 0 :]
        except OSError as error:
            self.failure = error
        return size

    def truncate(self, size: int | None = None) -> int:
        """Set the size of the file, or note why not."""
        try:
            return super().truncate(size)
        except OSError as error:
            self.failure = self.failure or error
            return size or 0

    def require(self) -> None:
        """Raise the OSError of the first failed write."""
        if self.failure:
            raise self.failure


def _write(path: Path, dataset: Dataset, split: str, samples: int, seed: int, each: Callable[[int, int], None]) -> None:
    import h5py

    with _Disk(path, "w+") as disk:

        def written(done: int) -> None:
            disk.require()
            each(done, samples)

        try:
            with h5py.File(disk, "w") as file:
                _fill(file, dataset, split, samples, seed, written)
        finally:  # after a failed write HDF5 may raise errors of its own
            disk.require()


def _fill(file: Any, dataset: Dataset, split: str, samples: int, seed: int, each: Callable[[int], None]) -> None:
    import h5py

    labels = np.empty(samples, np.uint16)
    times = file.create_dataset("spikes/times", (samples,), dtype=h5py.vlen_dtype(np.dtype(np.float16)))
    units = file.create_dataset("spikes/units", (samples,), dtype=h5py.vlen_dtype(np.dtype(np.uint16)))
    for number in range(samples):
        times[number], units[number], labels[number] = sample(seed, split, number, dataset.classes)
        each(number + 1)
    file["labels"] = labels
    file["extra/keys"] = np.array([f"word {label}" for label in range(dataset.classes)], dtype="S16")
    file["extra/speaker"] = np.arange(samples, dtype=np.uint16) % SPEAKERS
    for name in ("gender", "age", "body_height"):
        file[f"extra/meta_info/{name}"] = np.array([b"generated"] * SPEAKERS)
    file.attrs[SEED] = seed


def _generator(seed: int, name: str, number: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, number, *name.encode()])))
