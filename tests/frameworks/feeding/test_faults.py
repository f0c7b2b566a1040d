"""Tests of faults while data are loaded: one clear line each, and no half-written cache counts as whole."""

import errno
import os
import signal
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import tonic
import torch

from snnbench.adapter.refusal import Unavailable, Unsupported
from snnbench.datasets.heidelberg import DatasetError
from snnbench.feeding import cache, epoch, samples
from snnbench.feeding.epoch import LoaderError, Loop
from snnbench.feeding.feed import Feed
from tests.small_epochs import SMALL, reply_to

CPU = torch.device("cpu")
WARM = SMALL.with_(strategy="disk-warm")


def load(case: Any) -> Any:
    """An epoch of the loader alone."""
    with Feed(case, False, CPU) as feed:
        feed.prepare()
        loop = Loop(CPU, torch.float32, lambda: None, lambda: None, lambda start, end: 0, None, not case.workers)
        return loop.run(feed.loader(range(case.samples)), keep=range(case.batches))


def frames(epoch: Any) -> Any:
    """All frames of an epoch."""
    return torch.stack([epoch.frames[number] for number in sorted(epoch.frames)])


def test_damaged_file_is_one_line() -> None:
    SMALL.source.make()
    path = SMALL.source.path
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(DatasetError, match=r"is damaged: .*; fetch it or make it again"):
        load(SMALL)


@pytest.mark.parametrize("workers", [0, 1])
def test_damaged_sample_is_named(workers: int) -> None:
    SMALL.source.make()
    with h5py.File(SMALL.source.path, "r+") as file:
        units = file["spikes/units"][3]
        units[5] = 712
        file["spikes/units"][3] = units
    with pytest.raises(
        DatasetError, match=r"sample 3 of .*shd_train.h5: has an event of channel 712; the channels are 0 to 699"
    ):
        load(SMALL.with_(workers=workers))


def test_wrong_number_of_channels_is_one_line(tmp_path: Path) -> None:
    """The reference names the channel; the data may be the user's own."""
    SMALL.source.make()
    with h5py.File(SMALL.source.path, "r+") as file:
        units = file["spikes/units"][3]
        units[5] = 699 + 7
        file["spikes/units"][3] = units
    with pytest.raises(DatasetError, match="sample 3"):
        reply_to(tmp_path, SMALL, phases=("loader",))


def test_label_beyond_the_words_is_one_line(tmp_path: Path) -> None:
    SMALL.source.make()
    with h5py.File(SMALL.source.path, "r+") as file:
        file["labels"][2] = 20
    with pytest.raises(DatasetError, match="a sample has the label 20, where there are 20 words"):
        reply_to(tmp_path, SMALL, phases=("loader",))


def test_missing_data_is_unavailable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SNNBENCH_DATA", str(tmp_path))
    with pytest.raises(Unavailable, match=r"SHD/shd_train.h5: no such file; .* set SNNBENCH_DATA to the folder"):
        load(SMALL.with_(data="shd"))


def test_file_with_too_few_samples_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    SMALL.source.make()
    monkeypatch.setenv("SNNBENCH_DATA", str(SMALL.source.folder))
    assert len(load(SMALL.with_(data="shd")).labels) == SMALL.batches
    with pytest.raises(DatasetError, match="holds 18 samples, where 19 are asked for"):
        load(SMALL.with_(data="shd", samples=19))


def test_workers_are_refused_on_the_device() -> None:
    with pytest.raises(Unsupported, match="set workers to 0"):
        load(SMALL.with_(strategy="device-sparse", workers=2))


@pytest.mark.parametrize("strategy", ["naive", "disk-cold", "disk-warm"])
def test_killed_loader_is_one_line(monkeypatch: pytest.MonkeyPatch, strategy: str) -> None:
    own, read = os.getpid(), samples.Samples.__getitem__

    def killed(self: Any, index: int) -> Any:
        if index == 7 and os.getpid() != own:
            os.kill(os.getpid(), signal.SIGKILL)
        return read(self, index)

    with Feed(SMALL.with_(strategy=strategy, workers=1), False, CPU) as feed:
        feed.prepare()
        monkeypatch.setattr(samples.Samples, "__getitem__", killed)
        loop = Loop(CPU, torch.float32, lambda: None, lambda: None, lambda start, end: 0, None, False)
        with pytest.raises(LoaderError, match="a process of the loader ended, and its batches are lost: ") as raised:
            loop.run(feed.loader(range(SMALL.samples)))
    assert len(str(raised.value).splitlines()) == 1


def test_second_signal_between_two_statements_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: Any) -> Any:
        raise RuntimeError("DataLoader worker (pid 3) is killed by signal: Killed. ")

    monkeypatch.setattr(epoch, "suppress", killed)
    loop = Loop(CPU, torch.float32, lambda: None, lambda: None, lambda start, end: 0, None, False)
    with pytest.raises(LoaderError, match="a process of the loader ended, and its batches are lost: "):
        loop.run(map(killed, [0]))


FULL = [
    OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    OSError(errno.EFBIG, os.strerror(errno.EFBIG)),
    OSError(errno.ENOSPC, "Unable to synchronously create file (file write failed: time = Wed Nov 25\n, errno = 28"),
    RuntimeError("Can't write data (file write failed: time = Wed Nov 25\n, errno = 28, error message = 'full')"),
]
"""A full disk as Python, h5py and HDF5 report it."""


@pytest.mark.parametrize("error", FULL, ids=["full", "limit", "h5py", "hdf5"])
@pytest.mark.parametrize(("strategy", "workers"), [("disk-warm", 0), ("disk-cold", 0), ("disk-cold", 1)])
def test_full_disk_is_unavailable(
    monkeypatch: pytest.MonkeyPatch, home: Path, strategy: str, workers: int, error: Exception
) -> None:
    def full(*given: Any, **more: Any) -> None:
        raise error

    monkeypatch.setattr(tonic.cached_dataset, "save_to_disk_cache", full)
    expected = (
        r"the cache in .*frames.* cannot be written: its disk is full; free some, or set SNNBENCH_HOME to another disk"
    )
    with pytest.raises(Unavailable, match=f"^{expected}$"):
        load(SMALL.with_(strategy=strategy, workers=workers))
    assert not list((home / "frames").glob("*.whole"))


def test_small_disk_is_refused_before_it_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    SMALL.source.make()
    usage = type("Usage", (), {"free": 10_000})()
    monkeypatch.setattr(cache.shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(Unavailable, match=r"it takes .* GB more, and 1e-05 GB are left"):
        load(WARM)


def test_half_written_cache_is_made_anew(home: Path) -> None:
    expected = frames(load(SMALL))
    assert torch.equal(frames(load(WARM)), expected)
    (marker,) = (home / "frames").glob("*.whole")
    folder = marker.with_suffix("")
    part = folder / "5_0.hdf5"
    marker.unlink()  # as a run leaves it that is killed while it fills the cache
    part.write_bytes(part.read_bytes()[:1000])
    (folder / "6_0.hdf5").unlink()
    assert torch.equal(frames(load(WARM)), expected)
    assert marker.is_file() and len(list(folder.iterdir())) == SMALL.samples


@pytest.mark.parametrize("workers", [0, 1])
def test_whole_cache_that_lost_a_sample_is_not_mended_in_silence(home: Path, workers: int) -> None:
    load(WARM)
    (marker,) = (home / "frames").glob("*.whole")
    (marker.with_suffix("") / "5_0.hdf5").unlink()
    with pytest.raises(DatasetError, match="sample 5 is not in the cache, which should be complete; remove the cache"):
        load(WARM.with_(workers=workers))


def test_cold_cache_is_empty_for_each_epoch_and_gone_afterwards(home: Path) -> None:
    case = SMALL.with_(strategy="disk-cold")
    with Feed(case, False, CPU) as feed:
        loop = Loop(CPU, torch.float32, lambda: None, lambda: None, lambda start, end: 0, None, True)
        for _ in range(2):
            assert loop.run(feed.loader(range(case.samples))).parts_ns["transforming"] > 0
    assert not [folder for folder in (home / "frames").iterdir() if folder.is_dir()]


def test_nothing_is_written_beside_the_users_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Tonic downloads an archive that it misses, so snnbench shows it an empty one elsewhere."""
    SMALL.source.make()
    folder = tmp_path / "mine"
    folder.joinpath("SHD").mkdir(parents=True)
    folder.joinpath("SHD", "shd_train.h5").write_bytes(SMALL.source.path.read_bytes())
    monkeypatch.setenv("SNNBENCH_DATA", str(folder))
    load(SMALL.with_(data="shd", strategy="disk-warm"))
    assert [each.name for each in folder.rglob("*") if each.is_file()] == ["shd_train.h5"]


def test_frames_equal_the_reference() -> None:
    epoch = load(SMALL.with_(batch=18))
    from snnbench.feeding.reference import Reference

    expected, labels = Reference(SMALL.source, SMALL.time_steps).batch(range(18))
    assert np.array_equal(epoch.frames[0].numpy(), expected)
    assert np.array_equal(epoch.labels[0].numpy(), labels)


@pytest.mark.parametrize("strategy", ["disk-warm", "memory", "device-sparse"])
def test_filling_a_cache_announces_each_sample(strategy: Any) -> None:
    announced: list[tuple[int, int]] = []
    with Feed(SMALL.with_(strategy=strategy), False, CPU, lambda *progress: announced.append(progress)) as feed:
        feed.prepare()
    assert announced == [(number, SMALL.samples) for number in range(1, SMALL.samples + 1)]
