"""Tests of the check of event data: a damaged file, and a file of another layout, each give one clear line."""

import hashlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from snnbench.datasets import generated, heidelberg
from snnbench.datasets.heidelberg import DATASETS, SEED, DatasetError

Spoil = Callable[[Any], None]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A generated file of four samples."""
    return generated.make(DATASETS["shd"], "train", 4, 0, tmp_path)


def test_summary_is_of_the_whole_file(path: Path) -> None:
    seen: list[tuple[int, int]] = []
    summary = heidelberg.check(path, lambda done, count: seen.append((done, count)))
    samples = [generated.sample(0, "train", number, 20) for number in range(4)]
    sizes = [len(times) for times, _, _ in samples]
    assert (summary.samples, summary.events) == (4, sum(sizes))
    assert summary.median_events == int(np.median(sizes))
    assert summary.durations_s == (min(float(s[0][-1]) for s in samples), max(float(s[0][-1]) for s in samples))
    assert summary.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_published_file_has_no_seed(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        del file.attrs[SEED]
    assert heidelberg.check(path).seed is None


def _channel(file: Any) -> None:
    units = file["spikes/units"][2]
    units[5] = 812
    file["spikes/units"][2] = units


def _order(file: Any) -> None:
    file["spikes/times"][1] = file["spikes/times"][1][::-1]


def _nan(file: Any) -> None:
    times = file["spikes/times"][1]
    times[3] = np.nan
    file["spikes/times"][1] = times


def _label(file: Any) -> None:
    file["labels"][1] = 20


def _format(file: Any) -> None:
    samples = [file["spikes/times"][number] for number in range(4)]
    del file["spikes/times"]
    times = file.create_dataset("spikes/times", (4,), dtype=h5py.vlen_dtype(np.float32))
    for number, sample in enumerate(samples):
        times[number] = sample


def _lengths(file: Any) -> None:
    file["spikes/units"][0] = file["spikes/units"][0][:-1]


def _no_event(file: Any) -> None:
    file["spikes/units"][0], file["spikes/times"][0] = [], []


def _no_units(file: Any) -> None:
    del file["spikes/units"]


def _group(file: Any) -> None:
    del file["labels"]
    file.create_group("labels")


def _few_labels(file: Any) -> None:
    labels = file["labels"][:3]
    del file["labels"]
    file["labels"] = labels


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_channel, "sample 2 has an event of channel 812; the channels are 0 to 699"),
        (_order, "sample 1 has times that are negative or not in ascending order"),
        (_nan, "sample 1 has times that are negative or not in ascending order"),
        (_label, "a sample has the label 20, where there are 20 words"),
        (_format, "sample 0 has times of float32 and channels of uint16, expected float16 and uint16"),
        (_lengths, "channels, expected as many, and at least one"),
        (_no_event, "sample 0 has 0 times and 0 channels, expected as many, and at least one"),
        (_no_units, "lacks spikes/units, so it is no file of SHD or SSC"),
        (_group, "lacks labels, so it is no file of SHD or SSC"),
        (_few_labels, "4 times, 4 units and 3 labels, expected as many"),
    ],
    ids=lambda value: value.__name__.removeprefix("_") if callable(value) else "",
)
def test_wrong_content_is_named(path: Path, spoil: Spoil, message: str) -> None:
    with h5py.File(path, "r+") as file:
        spoil(file)
    with pytest.raises(DatasetError) as raised:
        heidelberg.check(path)
    assert message in str(raised.value)
    assert str(raised.value).startswith(f"{path}: ")
    assert "\n" not in str(raised.value)


def test_missing_file_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no such file; `snnbench data make --help` says how"):
        heidelberg.check(tmp_path / "none.h5")


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_truncated_file_is_damaged(path: Path, share: float) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(DatasetError, match="is damaged: "):
        heidelberg.check(path)


def test_damaged_bytes_never_give_another_error(path: Path) -> None:
    """Of 300 files with random bytes somewhere, each passes or is refused in one line."""
    content, draw = path.read_bytes(), random.Random(0)
    refused = 0
    for _ in range(300):
        damaged = bytearray(content)
        start, count = draw.choice([draw.randrange(4000), draw.randrange(len(content) - 64)]), draw.choice([1, 8, 64])
        damaged[start : start + count] = draw.randbytes(count)
        path.write_bytes(damaged)
        try:
            heidelberg.check(path)
        except DatasetError as error:
            refused += 1
            assert "\n" not in str(error)
    assert refused > 100, "the damage was felt"


def test_splits_and_words_are_the_published() -> None:
    assert (DATASETS["ssc"].classes, DATASETS["shd"].classes) == (35, 20)
    assert DATASETS["ssc"].path(Path("data"), "train") == Path("data/SSC/ssc_train.h5")
