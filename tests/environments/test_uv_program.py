"""Tests of the use of uv: its errors are explained, and settings, overrides and declared metadata reach it."""

import sys
import zipfile
from pathlib import Path

import pytest

from snnbench.environments import store, uv_program
from snnbench.environments.uv_program import EnvironmentFailed
from tests.environments.test_store import adapter, home, plan, quiet

__all__ = ["home"]
ALWAYS = {"PYTHONNOUSERSITE": "1", "NO_COLOR": "1"}
"""Variables that uv always gets."""


def test_missing_uv_error_names_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uv", None)
    about = {"name": "norse", "source": "norse.py", "requires_python": ">=3.11"}
    with pytest.raises(EnvironmentFailed, match="norse: no uv program; install the package `uv`"):
        uv_program.install(["--version"], tmp_path, quiet, about)


def test_missing_package_is_one_line_with_a_next_step(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")  # uv breaks lines at this width
    wanted = plan(adapter("mine", ("snnbench-no-such-package-xyz==1",)), cuda=False)
    with pytest.raises(EnvironmentFailed) as caught:
        store.sync(wanted, quiet)
    message = str(caught.value)
    assert message.startswith("mine: No solution found when resolving dependencies: ")
    assert "snnbench-no-such-package-xyz" in message
    assert "; check the pins in adapters/mine.py, then run `" in message
    assert message.endswith(" `snnbench env sync mine --adapter adapters/mine.py`")
    assert "\n" not in message
    assert not store.is_ready(wanted)


def test_missing_interpreter(home: Path) -> None:
    wanted = plan(adapter(requires_python=">=3.99"), cuda=False)
    with pytest.raises(EnvironmentFailed, match=r"^small: .*; install a Python >=3\.99$"):
        store.sync(wanted, quiet)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (
            ["Using Python 3", "error: Failed to fetch: an index", "  cause: client error", "  cause: refused (111)"],
            "small: Failed to fetch: an index: refused (111); check the network, "
            "then `snnbench env sync small --adapter adapters/small.py`",
        ),
        (
            [
                *("error: Failed to build `x==1`", "  cause: failed", ""),
                *("    [stderr]", "    No module named 'torch'", "", "hint: perhaps", "or so"),
            ],
            "small: Failed to build `x==1`: No module named 'torch'; install what building it needs, or pin a version "
            "that comes as a wheel in adapters/small.py",
        ),
        (
            ["error: No solution found", "  cause: Because x was not found in the cache and you require x==1, no"],
            "small: No solution found: Because x was not found in the cache and you require x==1, no; "
            "unset UV_OFFLINE where there is a network, or build the image with small in LIBRARIES",
        ),
        (
            ["error: No space left on device (os error 28)"],
            "small: No space left on device (os error 28); free some disk space, or set SNNBENCH_HOME to a folder on "
            "a larger disk",
        ),
        (
            [],
            "small: uv failed without a word; check the pins in adapters/small.py, "
            "then run `snnbench env sync small --adapter adapters/small.py`",
        ),
    ],
)
def test_uv_error_is_explained_with_a_next_step(home: Path, output: list[str], expected: str) -> None:
    assert uv_program._explain(output, plan(adapter(), cuda=False).about) == expected


def test_overrides_keep_a_dependency_out(home: Path) -> None:
    wanted = adapter(dependencies=("python-dateutil==2.9.0.post0",), overrides=("six; python_version < '3'",))
    made = store.sync(plan(wanted, cuda=False), quiet)
    assert store.versions(made.python) == {"python-dateutil": "2.9.0.post0"}


def test_declared_metadata_overrides_a_wheel(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wheel is for another Python, and requires a package that does not exist."""
    name = "snnbench_of_old-1.0"
    files = {
        "METADATA": "Metadata-Version: 2.1\nName: snnbench-of-old\nVersion: 1.0\n"
        "Requires-Python: <3.9\nRequires-Dist: snnbench-no-such-package-xyz==1\n",
        "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "RECORD": "",
    }
    with zipfile.ZipFile(tmp_path / f"{name}-py3-none-any.whl", "w") as wheel:
        for file, text in files.items():
            wheel.writestr(f"{name}.dist-info/{file}", text)
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path))
    pinned = ("snnbench-of-old==1.0",)
    with pytest.raises(EnvironmentFailed, match="No solution found"):
        store.sync(plan(adapter(dependencies=pinned), cuda=False), quiet)
    table = '{ name = "snnbench-of-old", version = "1.0", requires-python = ">=3.8", requires-dist = ["six==1.16.0"] }'
    made = store.sync(plan(adapter(dependencies=pinned, metadata=(table,)), cuda=False), quiet)
    assert store.versions(made.python) == {"six": "1.16.0", "snnbench-of-old": "1.0"}


def test_surrounding_project_does_not_change_the_pins(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = '[project]\nname = "x"\nversion = "1"\n[tool.uv]\noverride-dependencies = ["packaging==24.1"]\n'
    (home.parent / "pyproject.toml").write_text(project)
    monkeypatch.chdir(home.parent)
    made = store.sync(plan(adapter(), cuda=False), quiet)
    assert store.versions(made.python) == {"packaging": "24.2"}


def test_pip_settings_are_passed_to_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wheels").mkdir()
    monkeypatch.chdir(tmp_path)
    pip_settings = {
        "PIP_FIND_LINKS": "wheels https://index.example/links gone",
        "PIP_INDEX_URL": "https://index.example/simple",
        "PIP_EXTRA_INDEX_URL": "https://a.example https://b.example",
        "PIP_CERT": "/certificates.pem",
        "OTHER": "kept",
    }
    heard = uv_program.settings(pip_settings)
    assert heard == pip_settings | {
        "UV_FIND_LINKS": f"{tmp_path}/wheels,https://index.example/links",
        "UV_DEFAULT_INDEX": "https://index.example/simple",
        "UV_INDEX": "https://a.example https://b.example",
        "SSL_CERT_FILE": "/certificates.pem",
        **ALWAYS,
    }


def test_uv_keeps_its_own_settings(tmp_path: Path) -> None:
    own = {
        "UV_FIND_LINKS": "/own,https://own.example/links",
        "UV_INDEX_URL": "https://own.example/simple",
        "UV_INDEX": "https://own.example/more",
        "SSL_CERT_FILE": "/own.pem",
    }
    pip = dict.fromkeys(("PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CERT"), str(tmp_path))
    assert uv_program.settings(own | pip) == own | pip | ALWAYS
    assert "UV_FIND_LINKS" not in uv_program.settings({})


def test_empty_torch_backend_is_not_passed_to_uv() -> None:
    """An image cannot unset a variable, and uv stops at an empty one."""
    assert uv_program.settings({"UV_TORCH_BACKEND": ""}) == ALWAYS
    assert uv_program.settings({"UV_TORCH_BACKEND": "cpu"}) == {"UV_TORCH_BACKEND": "cpu", **ALWAYS}


@pytest.mark.parametrize("name", ["PYTHONPATH", "PYTHONHOME", "PYTHONOPTIMIZE", "GIT_DIR", "GIT_WORK_TREE"])
def test_uv_and_its_builds_get_no_packages_and_no_repository_of_the_caller(name: str) -> None:
    assert uv_program.settings({name: "/elsewhere", "GIT_SSH_COMMAND": "ssh"}) == {"GIT_SSH_COMMAND": "ssh", **ALWAYS}
