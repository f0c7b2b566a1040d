"""The feed of a case: its samples, by strategy, and PyTorch's DataLoader over them."""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tonic
import torch
from torch.utils.data import DataLoader

from snnbench.adapter.refusal import Unavailable, Unsupported
from snnbench.datasets.heidelberg import DatasetError, opened
from snnbench.feeding import cache
from snnbench.feeding.cache import DiskCache
from snnbench.feeding.samples import Fault, Notes, Samples

Batch = tuple[torch.Tensor, torch.Tensor, list[int]]
"""Frames, labels, and the nanoseconds of each of samples.PARTS."""


class Collate:
    """Tonic's collation of samples to a batch with the time axis where the library has it."""

    def __init__(self, notes: Notes, batch_first: bool) -> None:
        self._notes, self._pad = notes, tonic.collation.PadTensors(batch_first)

    def __call__(self, samples: Sequence[Any]) -> Batch | Fault:
        """The batch, or the first fault."""
        if fault := next((sample for sample in samples if isinstance(sample, Fault)), None):
            return fault
        started = time.perf_counter_ns()
        frames, labels = self._pad(samples)
        self._notes.add("collating", time.perf_counter_ns() - started)
        return frames, labels, self._notes.take()


@dataclass(frozen=True, slots=True)
class Prepared:
    """What was done before the clock: seconds to fill a cache in this process, and the size of the cache."""

    filled_s: float = 0.0
    cache_bytes: int = 0


class Feed:
    """The loaders of a case for one process. `filling(done, samples)` gets the progress of filling a cache.

    Raises Unavailable if the data or the room for a cache are missing, and DatasetError if the data are damaged.
    """

    def __init__(
        self,
        case: Any,
        batch_first: bool,
        device: torch.device,
        filling: Callable[[int, int], None] = lambda done, samples: None,
    ) -> None:
        if case.strategy == "device-sparse" and case.workers:
            raise Unsupported("samples on the device are not sent to other processes; set workers to 0")
        if not case.batches:
            raise DatasetError(f"{case.samples} samples make no batch of {case.batch}")
        case.source.make()
        if not case.source.path.is_file():
            advice = "snnbench downloads no data; set SNNBENCH_DATA to the folder that holds yours"
            raise Unavailable(f"{case.source.path}: no such file; {advice}")
        with opened(case.source.path) as file:
            if (count := len(file["labels"])) < case.samples:
                raise DatasetError(f"{case.source.path}: holds {count} samples, where {case.samples} are asked for")
        self.case, self._batch_first, self._device, self._filling = case, batch_first, device, filling
        self._folder = Path(tempfile.mkdtemp(prefix="snnbench-data-"))
        self._cold: DiskCache | None = None
        self.prepared = Prepared()
        self._samples: Any = None

    def __enter__(self) -> "Feed":
        return self

    def __exit__(self, *error: object) -> None:
        self._forget_cold()
        shutil.rmtree(self._folder, ignore_errors=True)

    def prepare(self) -> None:
        """Fill the cache of the strategy, outside of any clock."""
        started = time.perf_counter()
        match self.case.strategy:
            case "disk-warm":
                size = self._fill_disk()
            case "memory":
                size = self._fill_memory()
            case "device-sparse":
                size = self._fill_device()
            case _:
                return
        self.prepared = Prepared(time.perf_counter() - started, size)

    def loader(self, order: Sequence[int]) -> "DataLoader[Any]":
        """A loader of the samples in this order. For a cold cache, an empty folder."""
        if self.case.strategy == "naive":
            self._samples = self._samples or Samples(self.case, self._folder)
        elif self.case.strategy == "disk-cold":
            self._forget_cold()
            self._cold = cache.cold()
            self._samples = self._through(self._cold)
        options: dict[str, Any] = {}
        if self.case.workers:
            options = {"num_workers": self.case.workers, "pin_memory": self._device.type == "cuda"}
        collate = Collate(self._samples.notes, self._batch_first)
        return DataLoader(
            self._samples,
            batch_size=self.case.batch,
            sampler=list(order),
            drop_last=True,
            collate_fn=collate,
            **options,
        )

    def _fill_disk(self) -> int:
        stat = self.case.source.path.stat()
        identity = self.case.source.path, stat.st_size, stat.st_mtime_ns, self.case.samples, self.case.time_steps
        whole = cache.warm(*identity, tonic.__version__)
        with cache.locked(whole):
            if not whole.is_whole:
                whole.empty()
                for number, _ in enumerate(self._every(self._through(whole)), start=1):
                    if number == 1 or number % 1000 == 0:
                        whole.require_room(self.case.samples, number)
                whole.seal()
        self._samples = self._through(whole, is_complete=True)
        return whole.size_bytes

    def _fill_memory(self) -> int:
        in_memory: list[Any] = []

        def cached(dataset: Any) -> Any:
            in_memory.append(tonic.MemoryCachedDataset(dataset))
            return in_memory[0]

        self._samples = Samples(self.case, self._folder, cached, is_complete=True)
        read = Samples(self.case, self._folder)
        in_memory[0].samples_dict.update(enumerate(self._every(read)))
        return sum(frames.nbytes for frames, _ in in_memory[0].samples_dict.values())

    def _fill_device(self) -> int:
        read = Samples(self.case, self._folder)
        sparse = [
            (torch.from_numpy(frames).flatten(1).to_sparse().coalesce().to(self._device), int(label))
            for frames, label in self._every(read)
        ]
        self._samples = OnDevice(sparse)
        return sum(
            part.numel() * part.element_size() for frames, _ in sparse for part in (frames.indices(), frames.values())
        )

    def _every(self, samples: Samples) -> Iterator[Any]:
        """Every sample in turn, loaded by all CPUs of the case. Raises DatasetError, or Unavailable for a full disk."""
        processes = self.case.threads if self.case.threads > 1 else 0
        loader = DataLoader(samples, batch_size=None, num_workers=processes, collate_fn=_itself)
        for number, sample in enumerate(loader, start=1):
            self._filling(number, self.case.samples)
            if isinstance(sample, Fault):
                raise sample.raised()
            yield sample

    def _through(self, there: DiskCache, is_complete: bool = False) -> Samples:
        """The samples through a cache on the disk."""

        def cached(dataset: Any) -> Any:
            return tonic.DiskCachedDataset(dataset, cache_path=str(there.folder))

        return Samples(self.case, self._folder, cached, is_complete, there.folder)

    def _forget_cold(self) -> None:
        if self._cold:
            self._cold.remove()
            self._cold = None


class OnDevice:
    """Samples that are on the device, as sparse frames [T, channels]."""

    def __init__(self, samples: list[tuple[torch.Tensor, int]]) -> None:
        self._samples, self.notes = samples, Notes()

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        """A sample."""
        started = time.perf_counter_ns()
        sample = self._samples[index]
        self.notes.add("reading", time.perf_counter_ns() - started)
        return sample


def _itself(sample: Any) -> Any:
    return sample
