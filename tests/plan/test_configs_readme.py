"""Tests of configs/README.md: each config is in its table, and numbers that follow from published ones are right."""

import tomllib
from pathlib import Path

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


def test_derived_numbers_follow_from_published_ones() -> None:
    for data, network, *numbers in PUBLISHED:
        seconds = [float(each) for each in numbers[:3]]
        rates = [f"{IMAGES[data] / each:.0f}" for each in seconds] if data in IMAGES else ["-"] * 3
        assert numbers[3:6] == rates, (data, network)
        assert abs(float(numbers[6]) - seconds[1] / seconds[2]) <= 0.005 + 1e-9, (data, network)


def test_table_1_has_the_networks_sizes_and_neuron_of_the_paper() -> None:
    case = TABLE_1["case"]
    assert len(PUBLISHED) == 4 * len(NETWORKS)
    assert case["model"] == [NETWORKS[row[1]] for row in PUBLISHED[:3]]
    assert (case["profile"], case["beta"], case["threshold"]) == ("zero-attached", 0.2, 0.3)
    on_gpu = [sweep for sweep in TABLE_1["sweep"] if sweep["device"] == "cuda"]
    assert {sweep["time_steps"] for sweep in on_gpu} == {32}
    assert {sweep["name"]: sweep["batch"] for sweep in on_gpu} == {"images": 100, "gestures": 10, "rectangle": 100}
