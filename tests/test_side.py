"""Sides of an A/B run: what a user may change, by which form, and which contenders that changes."""

import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from snnbench import declaration
from snnbench.adapter import Adapter
from snnbench.side import Side, SideError, contenders, parse
from tests.fakes import CORRECT, write

HEADER = '# /// script\n# dependencies = ["my-lib==1.0", "torch==2.13.0"]\n# ///\n'
OTHER = '# /// script\n# dependencies = ["other==3.0", "torch==2.13.0"]\n# ///\n'


@pytest.fixture
def adapters(tmp_path: Path) -> dict[str, Adapter]:
    """`mine` pins my-lib and torch, `another` pins other and torch."""
    written = {"mine": HEADER + CORRECT, "another": OTHER + CORRECT}
    return {name: declaration.read(write(tmp_path, text, name)) for name, text in written.items()}


ALL = [("mine", "default"), ("another", "default")]


def changed(adapters: dict[str, Adapter], *sides: Side) -> list[str]:
    """The libraries that take part."""
    return [library for library, _ in contenders(sides, adapters, ALL)]


def test_a_version_takes_the_place_of_the_pinned_one(adapters: dict[str, Adapter]) -> None:
    side = parse(["My_Lib==1.2"])
    own = side.adapters(adapters)
    assert own["mine"].variants["default"].pins.dependencies == ("My_Lib==1.2", "torch==2.13.0")
    assert own["another"] == adapters["another"]
    assert changed(adapters, Side(), side) == ["mine"]
    assert side.title == "My_Lib==1.2" and Side().title == "as pinned"


def test_a_version_of_a_framework_changes_all_that_pin_it(adapters: dict[str, Adapter]) -> None:
    side = parse(["torch==2.12.0"])
    assert changed(adapters, side, Side()) == ["mine", "another"]
    assert {one.variants["default"].pins.dependencies[1] for one in side.adapters(adapters).values()} == {
        "torch==2.12.0"
    }


def test_without_any_change_all_run_against_themselves(adapters: dict[str, Adapter]) -> None:
    assert changed(adapters, Side(), Side()) == ["mine", "another"]


def test_the_same_pin_on_both_sides_is_a_change_of_neither_and_runs(adapters: dict[str, Adapter]) -> None:
    assert changed(adapters, parse(["other==3.0"]), parse(["other==3.0"])) == ["another"]


def test_an_adapter_file_takes_the_place_of_that_of_its_name(tmp_path: Path, adapters: dict[str, Adapter]) -> None:
    (tmp_path / "new").mkdir()
    path = write(tmp_path / "new", CORRECT.replace("A fake", "A newer fake"), "mine")
    side = parse([str(path)])
    own = side.adapters(adapters)
    assert own["mine"].path == path and own["mine"].digest != adapters["mine"].digest
    assert changed(adapters, Side(), side) == ["mine"]


@pytest.mark.parametrize("text", ["OMP_NUM_THREADS=1", "EMPTY=", "A=b=c"])
def test_a_variable_changes_all(adapters: dict[str, Adapter], text: str) -> None:
    side = parse([text])
    name, _, value = text.partition("=")
    assert side.variables == {name: value}
    assert changed(adapters, Side(), side) == ["mine", "another"]


def test_an_interpreter_changes_all_and_a_link_stays_one(tmp_path: Path, adapters: dict[str, Adapter]) -> None:
    link = tmp_path / "python"
    link.symlink_to(sys.executable)
    side = parse([f"python={link}"])
    assert side.python == link
    assert changed(adapters, side, Side()) == ["mine", "another"]


def git(folder: Path, *arguments: str) -> str:
    """What git says in a folder."""
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    return subprocess.run(
        ["git", "-C", folder, *identity, *arguments], check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A git repository of my-lib, with the tag v1 and one commit after it."""
    folder = tmp_path / "my lib"
    folder.mkdir()
    git(folder, "init", "--quiet")
    for number, version in enumerate(("1.0", "1.1")):
        (folder / "pyproject.toml").write_text(f'[project]\nname = "My_Lib"\nversion = "{version}"\n')
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "-m", version)
        if not number:
            git(folder, "tag", "v1")
    return folder


def test_a_revision_becomes_a_direct_reference_to_its_commit(repository: Path, adapters: dict[str, Adapter]) -> None:
    commit = git(repository, "rev-parse", "v1")
    side = parse([f"{repository}@v1"])
    (requirement,) = side.requirements.values()
    url = f"git+file://{str(repository).replace(' ', '%20')}@{commit}"
    assert (Requirement(requirement).name, Requirement(requirement).url) == ("My_Lib", url)
    assert side.adapters(adapters)["mine"].variants["default"].pins.dependencies[0] == requirement
    assert side.adapters(adapters)["mine"].variants["default"].pins.distribution == "My_Lib"
    assert parse([f"{repository}@HEAD"]).requirements != side.requirements


def test_a_revision_whose_file_gives_no_name_wants_one(repository: Path) -> None:
    (repository / "pyproject.toml").write_text("[build-system]\nrequires = []\n")
    git(repository, "commit", "--quiet", "-am", "no name")
    with pytest.raises(SideError, match="gives no name; write NAME @ git"):
        parse([f"{repository}@HEAD"])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("nonsense", "names no version; write nonsense==VERSION"),
        ("my-lib>=1", "names no version; write my-lib==VERSION"),
        ("my-lib==1.*", "names no version; write my-lib==VERSION"),
        ("my lib", "is none of LIBRARY==VERSION"),
        ("absent.py", "absent.py: no such file"),
        ("python=/absent/python", "python=/absent/python: no program here"),
        ("=3", "is none of LIBRARY==VERSION"),
    ],
)
def test_a_change_that_is_none_says_what_to_write(text: str, complaint: str) -> None:
    with pytest.raises(SideError, match=complaint):
        parse([text])


@pytest.mark.parametrize(("revision", "complaint"), [("absent", "no 'absent' here"), ("", "no '' here")])
def test_a_revision_that_is_not_there_is_named(repository: Path, revision: str, complaint: str) -> None:
    with pytest.raises(SideError, match=complaint):
        parse([f"{repository}@{revision}"])


def test_a_folder_without_git_is_named(tmp_path: Path) -> None:
    with pytest.raises(SideError, match="no 'main' here"):
        parse([f"{tmp_path}@main"])


def test_a_pin_of_nothing_in_the_config_names_the_nearest(adapters: dict[str, Adapter]) -> None:
    with pytest.raises(SideError, match=r"my-lbi: no contender of this config pins it.*my-lib"):
        changed(adapters, Side(), parse(["my-lbi==1"]))
