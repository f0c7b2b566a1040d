"""Tests of the discovery of adapters: shipped files, the user's files, and an installed package."""

from pathlib import Path

import pytest

from snnbench.adapter import discovery
from snnbench.adapter.refusal import AdapterError
from tests.fakes import CORRECT, write
from tests.sweep import recordings, run_arguments, snnbench, write_config

SHIPPED = {path.stem for path in (Path(__file__).parents[2] / "adapters").glob("*.py")}


def test_shipped_adapters_are_discovered() -> None:
    adapters = discovery.discover()
    assert set(adapters) == SHIPPED
    assert {adapter.path for adapter in adapters.values()} == set(discovery.data_folder("adapters").glob("*.py"))


def test_user_file_is_added(tmp_path: Path) -> None:
    mine = write(tmp_path, CORRECT, "my_own")
    adapters = discovery.discover([mine])
    assert set(adapters) == {*SHIPPED, "my-own"}
    assert adapters["my-own"].path == mine


def test_user_file_replaces_its_namesake(tmp_path: Path) -> None:
    mine = write(tmp_path, CORRECT, "reference")
    adapters = discovery.discover([mine])
    assert set(adapters) == SHIPPED
    assert adapters["reference"].path == mine
    hyphened = tmp_path / "jax_scan.py"
    assert discovery.replaced([mine, hyphened, tmp_path / "my_own.py"]) == {"reference": mine, "jax-scan": hyphened}


def test_replaced_adapter_is_announced_recorded_reported_and_found(tmp_path: Path) -> None:
    mine = write(tmp_path, CORRECT, "reference")
    config = write_config(tmp_path, ["reference"], trials=1)
    done = snnbench(tmp_path, *run_arguments(config, [mine]))
    announced, words = f"{mine} replaces snnbench's own adapter reference", "snnbench's own adapters: reference"
    assert done.stderr.splitlines()[0] == announced
    assert words in done.stdout
    assert snnbench(tmp_path, "verify", "--config", config, "--adapter", mine, "--env", "current").stderr.startswith(
        announced
    )
    (recording,) = recordings(tmp_path)
    checked = snnbench(tmp_path, "check", recording)
    assert f"provenance: files of the user replaced {words}" in checked.stdout
    assert words in snnbench(tmp_path, "report", recording).stdout


def test_malformed_adapter_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AdapterError, match=r"mine\.py: no function neuron"):
        discovery.discover([write(tmp_path, "BACKEND = 'numpy'", "mine")])


def test_missing_adapters_error_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "PACKAGE", tmp_path / "snnbench")
    with pytest.raises(AdapterError) as caught:
        discovery.discover()
    assert str(caught.value) == f"{tmp_path}/adapters: no adapters here"


def test_installed_package_has_its_own_adapters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "snnbench" / "data" / "adapters"
    folder.mkdir(parents=True)
    write(folder, CORRECT, "inside")
    monkeypatch.setattr(discovery, "PACKAGE", tmp_path / "snnbench")
    assert set(discovery.discover()) == {"inside"}
