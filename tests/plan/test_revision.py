"""Tests of sides that name a git revision: it becomes a reference to its commit, or is refused."""

import subprocess
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from snnbench.adapter.declaration import Adapter
from snnbench.plan.side import SideError, parse
from tests.plan.test_side import adapters

__all__ = ["adapters"]


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
    with pytest.raises(
        SideError, match=r"says no name in pyproject\.toml, setup\.cfg, setup\.py at HEAD; write NAME @ git"
    ):
        parse([f"{repository}@HEAD"])


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("setup.cfg", "[metadata]\nname = mylib\nversion = 100%\n"),
        ("setup.py", 'import setuptools\nsetuptools.setup(version=version(), name="mylib")\n'),
    ],
)
def test_older_files_name_a_distribution(repository: Path, file: str, text: str) -> None:
    """Sinabs has its name in setup.cfg, Rockpool in setup.py; both have a pyproject.toml without one."""
    (repository / "pyproject.toml").write_text("[build-system]\nrequires = []\n")
    (repository / file).write_text(text)
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "older")
    (requirement,) = parse([f"{repository}@HEAD"]).requirements.values()
    assert requirement.startswith("mylib @ git+file:")


@pytest.mark.parametrize(("revision", "complaint"), [("absent", "has no 'absent'"), ("", "has no ''")])
def test_missing_revision_is_refused(repository: Path, revision: str, complaint: str) -> None:
    with pytest.raises(SideError, match=complaint):
        parse([f"{repository}@{revision}"])


def test_folder_without_git_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SideError, match="not a git repository"):
        parse([f"{tmp_path}@main"])


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
    with pytest.raises(SideError, match="write NAME @ git"):
        parse([f"{repository}@HEAD"])


def test_missing_project_file_is_refused(repository: Path) -> None:
    git(repository, "rm", "--quiet", "pyproject.toml")
    git(repository, "commit", "--quiet", "-m", "setup.py only")
    with pytest.raises(SideError, match="write NAME @ git"):
        parse([f"{repository}@HEAD"])


def test_missing_folder_is_refused() -> None:
    with pytest.raises(SideError, match="no folder norse here, and no address such as git"):
        parse(["norse@main"])


def test_repository_of_a_hook_is_not_asked(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git sets GIT_DIR for a hook; the commit of the hook's repository was built in place of the one named."""
    expected = parse([f"{repository}@v1"])
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "--quiet")
    git(other, "commit", "--quiet", "--allow-empty", "-m", "x")
    git(other, "tag", "v1")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    assert parse([f"{repository}@v1"]) == expected


def test_git_says_itself_why_it_refuses_a_repository(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of another user's repository git says how to trust it."""
    fake = repository.parent / "git"
    refusal = r"fatal: dubious ownership\nTo add an exception:\n\n\ttrust it so\n"
    fake.write_text(f"#!/bin/sh\nprintf '{refusal}' >&2; exit 128\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(fake.parent))
    with pytest.raises(SideError, match="git says fatal: dubious ownership: trust it so"):
        parse([f"{repository}@v1"])
