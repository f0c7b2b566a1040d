"""The Heidelberg spiking datasets: the layout of their HDF5 files, and a check of a file.

Cramer et al., "The Heidelberg Spiking Data Sets for the Systematic Evaluation of Spiking Neural Networks", 2020,
https://zenkelab.org/resources/spiking-heidelberg-datasets-shd/. One sample is a spoken word, as events of 700 channels:

    spikes/times    for each sample its times, float16, seconds, in ascending order
    spikes/units    for each sample the channel of each event, uint16
    labels          the word of each sample, from 0
    extra/keys      the words;  extra/speaker  the speaker of each sample

snnbench never downloads these files. Tonic expects a file of NAME and SPLIT at `NAME/name_split.h5`.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snnbench.exits import UserError

CHANNELS = 700
LAYOUT = ("spikes/times", "spikes/units", "labels", "extra/keys")
"""The parts that are read."""
SEED = "snnbench_seed"
"""The attribute that only generated files have: the seed of their generator."""


class DatasetError(UserError):
    """A file of a dataset is missing, damaged or another one; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """One of the datasets: its words and its splits."""

    name: str
    classes: int
    splits: tuple[str, ...]

    def path(self, folder: Path, split: str) -> Path:
        """The file of a split, where Tonic expects it in `folder`."""
        return folder / self.name.upper() / f"{self.name}_{split}.h5"


DATASETS = {
    "ssc": Dataset("ssc", 35, ("train", "valid", "test")),
    "shd": Dataset("shd", 20, ("train", "test")),
}
"""Spiking Speech Commands and Spiking Heidelberg Digits, by name."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The content of a file. `durations_s` are the shortest and the longest; a published file has no `seed`."""

    samples: int
    classes: int
    events: int
    median_events: int
    durations_s: tuple[float, float]
    seed: int | None
    sha256: str


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """The open HDF5 file at `path`. Raises DatasetError if it is missing, damaged, or lacks a part of the layout."""
    import h5py

    if not path.is_file():
        raise DatasetError(f"{path}: no such file; `snnbench data make --help` says how to generate one")
    try:
        with h5py.File(path, "r") as file:
            if lacking := [name for name in LAYOUT if not isinstance(file.get(name), h5py.Dataset)]:
                raise DatasetError(f"{path}: lacks {', '.join(lacking)}, so it is no file of SHD or SSC")
            yield file
    except DatasetError:
        raise
    except (OSError, KeyError, RuntimeError, TypeError, ValueError) as error:  # h5py, of a damaged file
        reason = str(error.args[0] if error.args else error).splitlines()[0]
        raise DatasetError(f"{path}: is damaged: {reason}; fetch it or make it again") from error


def generated(path: Path) -> tuple[int, int | None]:
    """(number of samples, seed of the generator if it was generated) of a file. Raises DatasetError."""
    with opened(path) as file:
        return len(file["labels"]), _seed(file)


def check(path: Path, each: Callable[[int, int], None] = lambda done, count: None) -> Summary:
    """Read a whole file and compare it with the layout; `each` gets the progress. Raises DatasetError."""
    with opened(path) as file:
        times, units, labels = (file[name] for name in ("spikes/times", "spikes/units", "labels"))
        count, classes = len(labels), len(file["extra/keys"])
        if not count or not len(times) == len(units) == count:
            raise DatasetError(f"{path}: {len(times)} times, {len(units)} units and {count} labels, expected as many")
        if outside := [int(label) for label in labels[()] if label >= classes]:
            raise DatasetError(f"{path}: a sample has the label {outside[0]}, where there are {classes} words")
        sizes, durations = np.empty(count, np.int64), np.empty(count)
        for number in range(count):
            sample_times, sample_units = times[number], units[number]
            if complaint := _complaint(sample_times, sample_units):
                raise DatasetError(f"{path}: sample {number} {complaint}")
            sizes[number], durations[number] = len(sample_times), sample_times[-1]
            each(number + 1, count)
        seed = _seed(file)
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    shortest, longest = float(durations.min()), float(durations.max())
    return Summary(count, classes, int(sizes.sum()), int(np.median(sizes)), (shortest, longest), seed, digest)


def _seed(file: Any) -> int | None:
    return int(file.attrs[SEED]) if SEED in file.attrs else None


def _complaint(times: NDArray[np.float16], units: NDArray[np.uint16]) -> str | None:
    """Why a sample is not of the layout."""
    if times.dtype != np.float16 or units.dtype != np.uint16:
        return f"has times of {times.dtype} and channels of {units.dtype}, expected float16 and uint16"
    if not len(times) or len(times) != len(units):
        return f"has {len(times)} times and {len(units)} channels, expected as many, and at least one"
    if (highest := int(units.max())) >= CHANNELS:
        return f"has an event of channel {highest}; the channels are 0 to {CHANNELS - 1}"
    seconds = times.astype(np.float64)
    if not np.isfinite(seconds).all() or seconds[0] < 0 or (np.diff(seconds) < 0).any():
        return "has times that are negative or not in ascending order"
    return None
