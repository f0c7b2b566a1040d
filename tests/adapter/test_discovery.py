"""Which adapters there are."""

from pathlib import Path

import pytest

from snnbench.adapter import discovery
from snnbench.adapter.refusal import AdapterError
from tests.fakes import CORRECT, write

SHIPPED = {path.stem for path in (Path(__file__).parents[2] / "adapters").glob("*.py")}


def test_those_that_came_with_snnbench_are_there() -> None:
    adapters = discovery.discover()
    assert set(adapters) == SHIPPED
    assert {adapter.path for adapter in adapters.values()} == set(discovery.data_folder("adapters").glob("*.py"))


def test_a_file_of_the_user_is_one_more(tmp_path: Path) -> None:
    mine = write(tmp_path, CORRECT, "my_own")
    adapters = discovery.discover([mine])
    assert set(adapters) == {*SHIPPED, "my-own"}
    assert adapters["my-own"].path == mine


def test_a_file_of_the_user_takes_the_place_of_its_namesake(tmp_path: Path) -> None:
    mine = write(tmp_path, CORRECT, "reference")
    adapters = discovery.discover([mine])
    assert set(adapters) == SHIPPED
    assert adapters["reference"].path == mine


def test_a_file_that_is_no_adapter_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AdapterError, match=r"mine\.py: no function build"):
        discovery.discover([write(tmp_path, "BACKEND = 'numpy'", "mine")])


def test_without_any_adapter_it_is_said_where_they_were_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "PACKAGE", tmp_path / "snnbench")
    with pytest.raises(AdapterError) as caught:
        discovery.discover()
    assert str(caught.value) == f"{tmp_path}/adapters: no adapters here"


def test_an_installed_package_brings_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "snnbench" / "data" / "adapters"
    folder.mkdir(parents=True)
    write(folder, CORRECT, "inside")
    monkeypatch.setattr(discovery, "PACKAGE", tmp_path / "snnbench")
    assert set(discovery.discover()) == {"inside"}
