"""Tests of generated event data: layout, sizes, determinism, and files that cannot be written."""

import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from snnbench.datasets import generated, heidelberg
from snnbench.datasets.heidelberg import CHANNELS, DATASETS, DatasetError

SSC = DATASETS["ssc"]


def test_sample_has_the_layouts_formats_and_ranges() -> None:
    times, units, label = generated.sample(0, "train", 3, 35)
    assert (times.dtype, units.dtype) == (np.float16, np.uint16)
    assert len(times) == len(units)
    assert (np.diff(times.astype(float)) >= 0).all()
    assert 0.799 <= times[-1] <= 1.201
    assert units.max() < CHANNELS
    assert 0 <= label < 35


def test_sizes_are_like_ssc() -> None:
    """Lognormal: the logarithm of the median of 400 samples has a standard error of 1.25 * 0.35 / 20 = 0.022."""
    sizes = [len(generated.sample(0, "train", number, 35)[0]) for number in range(400)]
    assert abs(np.log(np.median(sizes) / 8000)) < 3 * 0.022
    assert 0.3 < np.std(np.log(sizes)) < 0.4
    assert 500 <= min(sizes) <= max(sizes) <= 20_000


def test_nearest_mean_tells_words_apart() -> None:
    """The nearest mean of 12 samples of each word finds the word of most new samples."""

    def histogram(number: int) -> tuple[np.ndarray, int]:
        times, units, label = generated.sample(0, "train", number, 5)
        counts, _, _ = np.histogram2d(times.astype(float) / times[-1], units, (4, 35), ((0, 1), (0, CHANNELS)))
        return counts.ravel() / len(times), label

    drawn = [histogram(number) for number in range(120)]
    means = [np.mean([counts for counts, label in drawn[:80] if label == word], 0) for word in range(5)]
    right = [int(np.argmin([np.abs(counts - mean).sum() for mean in means])) == label for counts, label in drawn[80:]]
    assert np.mean(right) > 0.9


def test_file_is_whole_and_where_tonic_looks(tmp_path: Path) -> None:
    path = generated.make(SSC, "valid", 5, 1, tmp_path)
    assert path == tmp_path / "SSC" / "ssc_valid.h5"
    assert (tmp_path / "SSC" / "ssc_valid.h5.zip").read_bytes() == b"", "without it Tonic downloads"
    assert sorted(each.name for each in path.parent.iterdir()) == ["ssc_valid.h5", "ssc_valid.h5.zip"]
    with h5py.File(path) as file:
        assert file["spikes/times"].dtype.metadata["vlen"] == np.float16
        assert file["spikes/units"].dtype.metadata["vlen"] == np.uint16
        assert len(file["extra/speaker"]) == len(file["labels"]) == 5
        assert set(file["extra/meta_info"]) == {"gender", "age", "body_height"}


def test_equal_seeds_give_equal_bytes(tmp_path: Path) -> None:
    first, again, other = (
        generated.make(SSC, "train", 3, seed, tmp_path / name) for name, seed in (("a", 0), ("b", 0), ("c", 1))
    )
    assert first.read_bytes() == again.read_bytes() != other.read_bytes()


def test_longer_file_begins_with_the_shorter(tmp_path: Path) -> None:
    short, long = (generated.make(SSC, "train", count, 0, tmp_path / str(count)) for count in (2, 4))
    with h5py.File(short) as first, h5py.File(long) as second:
        assert all((first["spikes/times"][number] == second["spikes/times"][number]).all() for number in range(2))
        assert (first["labels"][()] == second["labels"][:2]).all()


def test_splits_have_other_samples_of_the_same_words() -> None:
    train, test = (generated.sample(0, split, 0, 35)[0] for split in ("train", "test"))
    assert train.shape != test.shape or (train != test).any()
    assert (generated.word(0, 4).channels == generated.word(0, 4).channels).all()
    assert (generated.word(0, 4).channels != generated.word(0, 5).channels).all()


def test_same_file_is_not_written_again(tmp_path: Path) -> None:
    path = generated.make(SSC, "train", 2, 0, tmp_path)
    archive = path.with_name("ssc_train.h5.zip")
    archive.unlink()
    before = path.stat().st_mtime_ns
    assert generated.make(SSC, "train", 2, 0, tmp_path) == path
    assert path.stat().st_mtime_ns == before
    assert archive.exists(), "an interrupt may have come before it was written"


@pytest.mark.parametrize(("samples", "seed"), [(3, 0), (2, 1)])
def test_another_file_is_never_overwritten(tmp_path: Path, samples: int, seed: int) -> None:
    before = generated.make(SSC, "train", 2, 0, tmp_path).read_bytes()
    with pytest.raises(DatasetError, match="holds other samples; remove it, or name another --folder"):
        generated.make(SSC, "train", samples, seed, tmp_path)
    assert SSC.path(tmp_path, "train").read_bytes() == before


def test_too_small_disk_is_refused_before_writing(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"takes up to 5e\+07 GB, and its disk has .* GB left"):
        generated.make(SSC, "train", 10**12, 0, tmp_path)
    assert not list((tmp_path / "SSC").iterdir())


LIMITED = """
import resource, signal, sys
from pathlib import Path
from snnbench.datasets import generated, heidelberg
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    generated.make(heidelberg.DATASETS["ssc"], "train", 40, 0, Path(sys.argv[1]))
except heidelberg.DatasetError as error:
    print(error)
"""


@pytest.mark.parametrize("limit_bytes", [0, 100, 200_000, 1_300_000])
def test_disk_that_fills_leaves_no_file(tmp_path: Path, limit_bytes: int) -> None:
    """A limit on the size of files fails a write as a full disk does. HDF5 alone ends the process."""
    command = [sys.executable, "-c", LIMITED, str(tmp_path), str(limit_bytes)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    line = f"{tmp_path}/SSC/ssc_train.h5: cannot be written: File too large; nothing was kept\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, line, "")
    assert not list((tmp_path / "SSC").iterdir()), "neither a file nor a draft"


def test_interrupt_leaves_no_file(tmp_path: Path) -> None:
    def interrupt(done: int, count: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generated.make(SSC, "train", 4, 0, tmp_path, interrupt)
    assert not list((tmp_path / "SSC").iterdir())


def test_limits_of_the_disk_test_are_below_the_file(tmp_path: Path) -> None:
    assert generated.make(SSC, "train", 40, 0, tmp_path).stat().st_size > 1_300_000


def test_generated_file_passes_its_own_check(tmp_path: Path) -> None:
    summary = heidelberg.check(generated.make(DATASETS["shd"], "test", 6, 7, tmp_path))
    assert (summary.samples, summary.classes, summary.seed) == (6, 20, 7)
