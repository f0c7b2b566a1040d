"""Tests of configs/README.md: each config is in its table, and table 1 has the networks of the paper."""

import tomllib
from pathlib import Path

from snnbench.report.site.published import load

ROOT = Path(__file__).parent.parent.parent
TEXT = (ROOT / "configs" / "README.md").read_text(encoding="utf-8")
TABLE_1 = tomllib.loads((ROOT / "configs" / "temporal-fusion-table1.toml").read_text(encoding="utf-8"))


def rows(header: str) -> list[list[str]]:
    """The rows of the table whose header begins so."""
    lines = TEXT[TEXT.index(header) :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_config_is_in_the_table() -> None:
    shipped = {path.stem for path in (ROOT / "configs").glob("*.toml")}
    assert sorted(name.strip("`") for name, *_ in rows("| config |")) == sorted(shipped)


def test_table_1_has_the_networks_sizes_and_neuron_of_the_paper() -> None:
    case = TABLE_1["case"]
    published = load("temporal-fusion-table1")
    assert published and len(published.group) == 4 * len(case["model"])
    assert {group.case["model"] for group in published.group} == set(case["model"])
    assert (case["profile"], case["beta"], case["threshold"]) == ("zero-attached", 0.2, 0.3)
    on_gpu = [sweep for sweep in TABLE_1["sweep"] if sweep["device"] == "cuda"]
    assert {sweep["time_steps"] for sweep in on_gpu} == {32}
    assert {sweep["name"]: sweep["batch"] for sweep in on_gpu} == {"images": 100, "gestures": 10, "rectangle": 100}
