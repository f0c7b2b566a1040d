"""Tests of configs/README.md: each config is in its table, and numbers that follow from published ones are right."""

import re
import tomllib
from pathlib import Path

import pytest

from snnbench.recording.reading import read
from tests.pictures import LOADING, TRAINING
from tests.pictures import TABLE_1 as RECORDED_TABLE_1

ROOT = Path(__file__).parent.parent.parent
TEXT = (ROOT / "configs" / "README.md").read_text(encoding="utf-8")
IMAGES = {"MNIST": 60_000, "CIFAR-10": 50_000, "N-MNIST": 60_000}
NETWORKS = {"ResNet18": "spiking-resnet18", "ResNet34": "spiking-resnet34", "ResNet50": "spiking-resnet50"}
TABLE_1 = tomllib.loads((ROOT / "configs" / "temporal-fusion-table1.toml").read_text(encoding="utf-8"))


def rows(header: str) -> list[list[str]]:
    """The rows of the table whose header begins so."""
    lines = TEXT[TEXT.index(header) :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


PUBLISHED = rows("| data | network |")


def test_every_config_is_in_the_table() -> None:
    shipped = {path.stem for path in (ROOT / "configs").glob("*.toml")}
    assert sorted(name.strip("`") for name, *_ in rows("| config |")) == sorted(shipped)


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: " ".join(row[:2]))
def test_derived_numbers_follow_from_published_ones(row: list[str]) -> None:
    data, _, *numbers = row
    seconds = [float(each) for each in numbers[:3]]
    rates = [f"{IMAGES[data] / each:.0f}" for each in seconds] if data in IMAGES else ["-"] * 3
    assert numbers[3:6] == rates
    assert abs(float(numbers[6]) - seconds[1] / seconds[2]) <= 0.005 + 1e-9


@pytest.mark.parametrize(
    ("recording", "sentence"),
    [
        (LOADING, "in its recording the cells took {} minutes."),
        (TRAINING, "Those of `training`, which has the proper training beside it, took {} minutes."),
        (RECORDED_TABLE_1, "`--only device=cpu` in {} minutes:"),
    ],
    ids=["loading", "training", "table-1"],
)
def test_minutes_equal_the_time_of_recorded_cells(recording: Path, sentence: str) -> None:
    seconds = sum(record.wall_s or 0.0 for record in read(recording).records)
    assert sentence.format(f"{seconds / 60:.0f}") in " ".join(TEXT.split())


def test_ratios_are_in_the_range_that_the_config_names() -> None:
    ratios = [float(row[-1]) for row in PUBLISHED]
    low, high = map(
        float, re.findall(r"(\d\.\d\d) to (\d\.\d\d) times as fast", TABLE_1["analysis"].replace("\n", " "))[0]
    )
    assert (low, high) == (min(ratios), max(ratios))


def test_table_1_has_the_networks_sizes_and_neuron_of_the_paper() -> None:
    case = TABLE_1["case"]
    assert len(PUBLISHED) == 4 * len(NETWORKS)
    assert case["model"] == [NETWORKS[row[1]] for row in PUBLISHED[:3]]
    assert (case["profile"], case["beta"], case["threshold"]) == ("zero-attached", 0.2, 0.3)
    on_gpu = [sweep for sweep in TABLE_1["sweep"] if sweep["device"] == "cuda"]
    assert {sweep["time_steps"] for sweep in on_gpu} == {32}
    assert {sweep["name"]: sweep["batch"] for sweep in on_gpu} == {"images": 100, "gestures": 10, "rectangle": 100}
