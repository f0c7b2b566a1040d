"""Sources: the files of event data that a case names, and the place where each lies on this machine.

Generated data are made by snnbench when they are needed. Published data are the user's: snnbench never downloads them,
and looks for them in the folder that SNNBENCH_DATA names, or in `data`.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from snnbench.datasets import generated
from snnbench.datasets.heidelberg import DATASETS, Dataset
from snnbench.files import home

DataName = Literal["generated-ssc", "generated-shd", "ssc", "shd"]
GENERATED = "generated-"
FOLDER = "SNNBENCH_DATA"
"""The environment variable that names the folder of the user's data."""
SPLIT = "train"
SEED = 0
"""The seed of generated data."""


@dataclass(frozen=True, slots=True)
class Source:
    """The first `samples` samples of the training split of a dataset."""

    data: DataName
    samples: int

    @property
    def is_generated(self) -> bool:
        """Whether snnbench makes the file."""
        return self.data.startswith(GENERATED)

    @property
    def dataset(self) -> Dataset:
        """The dataset, or the one that is imitated."""
        return DATASETS[self.data.removeprefix(GENERATED)]

    @property
    def folder(self) -> Path:
        """The folder in which Tonic looks for the file."""
        if self.is_generated:
            return home() / "data" / f"{self.data}-{self.samples}-{SEED}"
        return Path(os.path.expanduser(os.environ.get(FOLDER) or "data")).absolute()

    @property
    def path(self) -> Path:
        """The HDF5 file."""
        return self.dataset.path(self.folder, SPLIT)

    def make(self, each: Callable[[int, int], None] = lambda done, count: None) -> None:
        """Make the file of generated data, if it is missing; `each` gets the progress. Raises DatasetError."""
        if self.is_generated:
            generated.make(self.dataset, SPLIT, self.samples, SEED, self.folder, each)
