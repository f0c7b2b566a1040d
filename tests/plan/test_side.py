"""Tests of the sides of an A/B run: allowed changes, their forms, and the contenders that they affect."""

import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from snnbench.adapter import reading
from snnbench.adapter.declaration import Adapter
from snnbench.plan.side import Side, SideError, contenders, parse
from tests.fakes import CORRECT, write

HEADER = '# /// script\n# dependencies = ["my-lib==1.0", "torch==2.13.0"]\n# ///\n'
OTHER = '# /// script\n# dependencies = ["other==3.0", "torch==2.13.0"]\n# ///\n'


@pytest.fixture
def adapters(tmp_path: Path) -> dict[str, Adapter]:
    """`mine` pins my-lib and torch, `another` pins other and torch."""
    written = {"mine": HEADER + CORRECT, "another": OTHER + CORRECT}
    return {name: reading.read(write(tmp_path, text, name)) for name, text in written.items()}


ALL = [("mine", "default"), ("another", "default")]


def changed(adapters: dict[str, Adapter], *sides: Side, cuda: bool = False) -> list[str]:
    """The libraries that take part."""
    return [library for library, _ in contenders(sides, adapters, ALL, cuda)]


def test_version_replaces_the_pinned_version(adapters: dict[str, Adapter]) -> None:
    side = parse(["My_Lib==1.2"])
    own = side.adapters(adapters)
    assert own["mine"].variants["default"].pins.dependencies == ("My_Lib==1.2", "torch==2.13.0")
    assert own["another"] == adapters["another"]
    assert changed(adapters, Side(), side) == ["mine"]
    assert side.title == "My_Lib==1.2" and Side().title == "as pinned"


def test_framework_version_changes_every_adapter_that_pins_it(adapters: dict[str, Adapter]) -> None:
    side = parse(["torch==2.12.0"])
    assert changed(adapters, side, Side()) == ["mine", "another"]
    assert {one.variants["default"].pins.dependencies[1] for one in side.adapters(adapters).values()} == {
        "torch==2.12.0"
    }


def test_no_change_runs_all_against_themselves(adapters: dict[str, Adapter]) -> None:
    assert changed(adapters, Side(), Side()) == ["mine", "another"]


def test_same_pin_on_both_sides_runs(adapters: dict[str, Adapter]) -> None:
    assert changed(adapters, parse(["other==3.0"]), parse(["other==3.0"])) == ["another"]


def test_adapter_file_replaces_its_namesake(tmp_path: Path, adapters: dict[str, Adapter]) -> None:
    (tmp_path / "new").mkdir()
    path = write(tmp_path / "new", CORRECT.replace("A fake", "A newer fake"), "mine")
    side = parse([str(path)])
    own = side.adapters(adapters)
    assert own["mine"].path == path and own["mine"].digest != adapters["mine"].digest
    assert changed(adapters, Side(), side) == ["mine"]


@pytest.mark.parametrize("text", ["OMP_NUM_THREADS=1", "EMPTY=", "A=b=c"])
def test_variable_changes_every_contender(adapters: dict[str, Adapter], text: str) -> None:
    side = parse([text])
    name, _, value = text.partition("=")
    assert side.variables == {name: value}
    assert changed(adapters, Side(), side) == ["mine", "another"]


def test_interpreter_changes_all_and_stays_a_link(tmp_path: Path, adapters: dict[str, Adapter]) -> None:
    link = tmp_path / "python"
    link.symlink_to(sys.executable)
    side = parse([f"python={link}"])
    assert side.python == link
    assert changed(adapters, side, Side()) == ["mine", "another"]


def git(folder: Path, *arguments: str) -> str:
    """The output of git in a folder."""
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


def test_revision_becomes_a_reference_to_its_commit(repository: Path, adapters: dict[str, Adapter]) -> None:
    commit = git(repository, "rev-parse", "v1")
    side = parse([f"{repository}@v1"])
    (requirement,) = side.requirements.values()
    url = f"git+file://{str(repository).replace(' ', '%20')}@{commit}"
    assert (Requirement(requirement).name, Requirement(requirement).url) == ("My_Lib", url)
    assert side.adapters(adapters)["mine"].variants["default"].pins.dependencies[0] == requirement
    assert side.adapters(adapters)["mine"].variants["default"].pins.distribution == "My_Lib"
    assert parse([f"{repository}@HEAD"]).requirements != side.requirements
    assert parse(["A=1", f"{repository}@v1"]).title == f"A=1 {repository}@v1 ({commit[:12]})"


def test_revision_without_project_name_is_refused(repository: Path) -> None:
    (repository / "pyproject.toml").write_text("[build-system]\nrequires = []\n")
    git(repository, "commit", "--quiet", "-am", "no name")
    with pytest.raises(SideError, match=r"says no name in pyproject\.toml at HEAD; write NAME @ git"):
        parse([f"{repository}@HEAD"])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("nonsense", "names no version; write nonsense==VERSION"),
        ("my-lib>=1", "names no version; write my-lib==VERSION"),
        ("my-lib==1.*", "names no version; write my-lib==VERSION"),
        ("my lib", "cannot read the change 'my lib'; write LIBRARY==VERSION"),
        ("absent.py", "absent.py: no such file"),
        ("python=/absent/python", "python=/absent/python: no program here"),
        ("=3", "cannot read the change '=3'; write LIBRARY==VERSION"),
    ],
)
def test_malformed_change_is_refused_with_its_syntax(text: str, complaint: str) -> None:
    with pytest.raises(SideError, match=complaint):
        parse([text])


@pytest.mark.parametrize(("revision", "complaint"), [("absent", "has no 'absent'"), ("", "has no ''")])
def test_missing_revision_is_refused(repository: Path, revision: str, complaint: str) -> None:
    with pytest.raises(SideError, match=complaint):
        parse([f"{repository}@{revision}"])


def test_folder_without_git_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SideError, match="is in no git repository"):
        parse([f"{tmp_path}@main"])


def test_unpinned_library_is_refused_with_suggestions(adapters: dict[str, Adapter]) -> None:
    with pytest.raises(SideError, match=r"my-lbi: no contender of this config pins it.*my-lib"):
        changed(adapters, Side(), parse(["my-lbi==1"]))


def test_requirement_keeps_its_extras_and_marker(tmp_path: Path) -> None:
    header = """# /// script
# dependencies = ["jax[cpu]==1.0 ; python_version > '3'"]
# [tool.snnbench]
# cuda = ["jax[cuda13]==1.0"]
# ///
"""
    adapter = reading.read(write(tmp_path, header + CORRECT, "mine"))
    pins = parse(["jax[fast]==2.0"]).adapters({"mine": adapter})["mine"].variants["default"].pins
    assert pins.dependencies == ('jax[cpu,fast]==2.0; python_version > "3"',)
    assert pins.cuda == ("jax[cuda13,fast]==2.0",)


def test_cuda_only_pin_needs_cuda(tmp_path: Path) -> None:
    header = '# /// script\n# dependencies = ["a==1"]\n# [tool.snnbench]\n# cuda = ["b==1"]\n# ///\n'
    adapters = {"mine": reading.read(write(tmp_path, header + CORRECT, "mine"))}
    of = [("mine", "default")]
    assert contenders([Side(), parse(["b==2"])], adapters, of, cuda=True) == of
    with pytest.raises(SideError, match="b: no contender of this config pins it"):
        contenders([Side(), parse(["b==2"])], adapters, of, cuda=False)


@pytest.mark.parametrize(
    "tool",
    [
        "# [tool.uv]\n# override-dependencies = [\"my-lib ; python_version < '3'\"]\n",
        '# [[tool.uv.dependency-metadata]]\n# name = "my-lib"\n# version = "1.0"\n# requires-dist = []\n',
    ],
)
def test_version_with_hand_written_metadata_is_refused(tmp_path: Path, tool: str) -> None:
    header = f'# /// script\n# dependencies = ["my-lib==1.0"]\n{tool}# ///\n'
    adapter = reading.read(write(tmp_path, header + CORRECT, "mine"))
    with pytest.raises(SideError, match="my-lib: its adapter says by hand what it needs"):
        parse(["my-lib==2.0"]).adapters({"mine": adapter})


@pytest.mark.parametrize("text", ["my-lib=2.0", "My_Lib=2.0", "mine=2.0"])
def test_version_with_one_equals_sign_is_refused(adapters: dict[str, Adapter], text: str) -> None:
    if "-" in text:  # not a variable's name either
        with pytest.raises(SideError, match="cannot read the change"):
            parse([text])
        return
    with pytest.raises(SideError, match=r"is an environment variable; a version is .*==2\.0"):
        changed(adapters, Side(), parse([text]))


def test_adapter_file_without_namesake_is_refused(tmp_path: Path, adapters: dict[str, Adapter]) -> None:
    path = write(tmp_path, CORRECT, "my_mine")
    with pytest.raises(SideError, match="is the adapter 'my-mine' by its name, which this config does not run"):
        changed(adapters, Side(), parse([str(path), "A=1"]))


@pytest.mark.parametrize(
    "name", ["TRITON_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "PYTHONPATH", "CUDA_VISIBLE_DEVICES", "UV_X"]
)
def test_variable_not_passed_to_workers_is_refused(name: str) -> None:
    with pytest.raises(SideError, match=f"^{name}=1: "):
        parse([f"{name}=1"])


@pytest.mark.parametrize(
    "texts", [["A=1", "A=2"], ["lib==1", "LIB==2"], [f"python={sys.executable}", f"python={sys.executable}"]]
)
def test_repeated_change_is_refused(texts: list[str]) -> None:
    with pytest.raises(SideError, match=r"already"):
        parse(texts)


def test_package_in_a_subfolder_has_its_subdirectory(repository: Path) -> None:
    inner = repository / "inner"
    inner.mkdir()
    (inner / "pyproject.toml").write_text('[tool.poetry]\nname = "other"\n')
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "inner")
    git(repository, "branch", "a@b")
    (requirement,) = parse([f"{inner}@a@b"]).requirements.values()
    assert Requirement(requirement).name == "other"
    assert str(Requirement(requirement).url).endswith(f"@{git(repository, 'rev-parse', 'HEAD')}#subdirectory=inner")


@pytest.mark.parametrize("content", [b"tool = 3", b"\xff", b"[project]\nversion = 1"])
def test_malformed_project_file_is_refused(repository: Path, content: bytes) -> None:
    (repository / "pyproject.toml").write_bytes(content)
    git(repository, "commit", "--quiet", "-am", "broken")
    with pytest.raises(SideError, match=r"says no name in pyproject\.toml at HEAD; write NAME @ git"):
        parse([f"{repository}@HEAD"])


def test_missing_project_file_is_refused(repository: Path) -> None:
    git(repository, "rm", "--quiet", "pyproject.toml")
    git(repository, "commit", "--quiet", "-m", "setup.py only")
    with pytest.raises(SideError, match="write NAME @ git"):
        parse([f"{repository}@HEAD"])


def test_missing_folder_is_refused() -> None:
    with pytest.raises(SideError, match="no folder norse here, and no address such as git"):
        parse(["norse@main"])
