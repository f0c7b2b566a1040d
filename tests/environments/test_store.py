"""Tests of managed environments, which uv really makes from packages of a few kilobytes."""

import fcntl
import json
import os
import pwd
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
import uv

from snnbench import files
from snnbench.adapter.declaration import Adapter
from snnbench.adapter.discovery import discover
from snnbench.adapter.reading import read
from snnbench.cli.env import Device, sync
from snnbench.environments import store
from snnbench.environments.store import Environment
from snnbench.environments.uv_program import EnvironmentFailed

SMALL = ("packaging==24.2",)


def adapter(name: str = "small", dependencies: tuple[str, ...] = SMALL, **changes: object) -> Adapter:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.py"
        path.write_text('BACKEND = "numpy"\ndef build(case, weights, variant): ...\n')
        plain = read(path)
    variant = plain.variants["default"]
    pins = replace(variant.pins, dependencies=dependencies, **changes)  # type: ignore[arg-type]
    return replace(plain, path=Path(f"adapters/{name}.py"), variants={"default": replace(variant, pins=pins)})


def plan(wanted: Adapter, cuda: bool = False) -> Environment:
    return store.plan(wanted, "default", cuda)


def quiet(line: str) -> None:
    del line


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SNNBENCH_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("UV_TORCH_BACKEND", raising=False)
    return tmp_path / "home"


@pytest.fixture
def no_uv(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A function that makes uv missing from its call on."""

    def missing() -> str:
        raise FileNotFoundError("uv")

    return lambda: monkeypatch.setattr(uv, "find_uv_bin", missing)


def key(wanted: Adapter, cuda: bool = False) -> str:
    return plan(wanted, cuda).key


def test_home_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SNNBENCH_HOME", str(tmp_path / "chosen"))
    assert files.home() == tmp_path / "chosen"
    monkeypatch.delenv("SNNBENCH_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert files.home() == tmp_path / "snnbench"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert files.home() == Path.home() / ".cache" / "snnbench"


@pytest.mark.parametrize("chosen", [{"HOME": None}, {"SNNBENCH_HOME": "/tmp/a:b"}, {"SNNBENCH_HOME": "~nobody.here"}])
def test_home_that_cannot_be_used_is_one_line(monkeypatch: pytest.MonkeyPatch, chosen: dict[str, str | None]) -> None:
    for name in ("SNNBENCH_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in chosen.items():
        monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name)
    monkeypatch.setattr(pwd, "getpwuid", mock.Mock(side_effect=KeyError))
    with pytest.raises(files.NoHome, match="set SNNBENCH_HOME"):
        files.home()


def test_made_once_then_used_without_uv(home: Path, no_uv: Callable[[], None]) -> None:
    lines: list[str] = []
    planned = plan(adapter(), cuda=False)
    assert planned.folder == home / "envs" / planned.key
    assert not store.is_ready(planned)
    store.sync(planned, lines.append)
    assert store.is_ready(planned)
    assert any("packaging==24.2" in line and "+" in line for line in lines)
    script = "import packaging; print(packaging.__version__)"
    assert subprocess.check_output([planned.python, "-I", "-c", script], text=True) == "24.2\n"
    assert store.versions(planned.python) == {"packaging": "24.2"}

    no_uv()
    lines.clear()
    other = adapter("other", tuple(reversed((*SMALL, " packaging == 24.2"))))  # the same pins, written differently
    assert store.sync(plan(adapter(), cuda=False), lines.append) == planned
    assert store.sync(plan(other, cuda=False), lines.append).folder == planned.folder
    assert lines == []
    [environment] = store.installed()
    assert (environment.folder, list(environment.adapters)) == (planned.folder, ["other", "small"])
    assert list(environment.requirements) == ["packaging==24.2"]
    assert environment.created.endswith("+00:00")
    assert environment.size_bytes > 100_000

    store.remove(environment, quiet)
    assert store.installed() == []
    assert not store.is_ready(planned)
    with pytest.raises(EnvironmentFailed, match="install the package `uv`"):
        store.sync(planned, quiet)


def test_key_depends_on_the_installed_packages_only(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = adapter()
    with_cuda = adapter(cuda=("six==1.16.0",))
    keys = [
        key(plain),
        key(adapter(dependencies=("packaging==24.1",))),
        key(adapter(overrides=("six; python_version < '3'",))),
        key(adapter(requires_python=">=3.11,<3.99")),
        key(adapter(metadata=('{ name = "packaging", version = "24.2" }',))),
        key(with_cuda, cuda=True),
    ]
    monkeypatch.setenv("UV_TORCH_BACKEND", "cpu")
    keys.append(key(plain))
    assert len(set(keys)) == len(keys)
    monkeypatch.delenv("UV_TORCH_BACKEND")
    assert key(with_cuda) == key(plain) == key(plain, cuda=True) == key(adapter("another"))
    assert plan(with_cuda, cuda=True).requirements == ("packaging==24.2", "six==1.16.0")


def test_current_interpreter_is_used_if_it_fits(home: Path) -> None:
    assert plan(adapter(), cuda=False).interpreter == sys.executable
    assert plan(adapter(requires_python="<3.9,>=3.8"), cuda=False).interpreter == "<3.9,>=3.8"


@pytest.mark.parametrize("wrong", [{"requires_python": "three"}, {"dependencies": ("six==",)}])
def test_malformed_header_is_refused(home: Path, wrong: dict[str, object]) -> None:
    with pytest.raises(EnvironmentFailed, match=r"^adapters/small\.py: script header: .*") as caught:
        plan(adapter(**wrong), cuda=False)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_half_made_environment_is_made_again(home: Path) -> None:
    planned = plan(adapter(), cuda=False)
    (planned.folder / "bin").mkdir(parents=True)
    planned.python.symlink_to(sys.executable)
    (planned.folder / "left-over").touch()
    assert not store.is_ready(planned)
    assert [found.created for found in store.installed()] == [""]
    store.sync(planned, quiet)
    assert store.is_ready(planned)
    assert not (planned.folder / "left-over").exists()

    planned.python.unlink()  # the interpreter is uninstalled
    assert not store.is_ready(planned)
    store.sync(planned, quiet)
    assert store.is_ready(planned)

    (planned.folder / "snnbench.json").write_text('{"adapters": ["sm')
    assert not store.is_ready(planned)


def test_unwritable_home_is_an_error(home: Path) -> None:
    home.write_text("not a folder")
    with pytest.raises(EnvironmentFailed, match="set SNNBENCH_HOME to a folder that can be written"):
        store.sync(plan(adapter(), cuda=False), quiet)


def test_home_without_programs_is_an_error(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_flag=os.ST_NOEXEC))
    with pytest.raises(EnvironmentFailed, match=r"mounted noexec.*set SNNBENCH_HOME"):
        store.sync(plan(adapter(), cuda=False), quiet)


@pytest.mark.parametrize("loose", ["packaging", "packaging>=24.1,<24.3", "packaging==24.*"])
def test_loose_pin_is_refused_with_the_exact_one(home: Path, loose: str) -> None:
    planned = plan(adapter(dependencies=("six==1.16.0", loose)), cuda=False)
    with pytest.raises(EnvironmentFailed, match=r'expected exact pins; write "packaging==2\d.\d"$'):
        store.sync(planned, quiet)
    assert not planned.folder.exists()


BUILDING = """
import os, zipfile

def build_wheel(folder, settings=None, metadata=None):
    name, about = "unreleased-1.0-py3-none-any.whl", "unreleased-1.0.dist-info"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        wheel.write("unreleased.py")
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\\nName: unreleased\\nVersion: 1.0\\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{about}/RECORD", "")
    return name
"""


def test_package_without_a_release_is_installed_from_its_folder(home: Path, tmp_path: Path) -> None:
    """After an edit, into another environment."""
    library = tmp_path / "library"
    library.mkdir()
    project = '[build-system]\nrequires = []\nbuild-backend = "building"\nbackend-path = ["."]\n'
    (library / "pyproject.toml").write_text(f'{project}[project]\nname = "unreleased"\nversion = "1.0"\n')
    (library / "building.py").write_text(BUILDING)
    printed = []
    for number in (1, 2):
        (library / "unreleased.py").write_text(f"print({number})")
        made = store.sync(plan(adapter(dependencies=(f"unreleased @ file:{library}",)), cuda=False), quiet)
        printed.append(subprocess.check_output([made.python, "-c", "import unreleased"], text=True).strip())
    assert printed == ["1", "2"]


def test_second_snnbench_waits_and_reuses(home: Path, no_uv: Callable[[], None]) -> None:
    made = store.sync(plan(adapter(), cuda=False), quiet)
    no_uv()
    waited = threading.Event()
    with made.folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (made.folder / "snnbench.json").rename(made.folder / "later")  # as if the first were still at work
        second = threading.Thread(target=store.sync, args=(made, lambda line: waited.set()))
        second.start()
        assert waited.wait(10)
        (made.folder / "later").rename(made.folder / "snnbench.json")
    second.join(10)
    assert not second.is_alive()
    assert store.is_ready(made)


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, BrokenPipeError])
def test_interrupted_environment_is_made_again(home: Path, interruption: type[BaseException]) -> None:
    def interrupt(line: str) -> None:
        if line.startswith("Using"):
            raise interruption

    planned = plan(adapter(), cuda=False)
    with pytest.raises(interruption):
        store.sync(planned, interrupt)
    assert not store.is_ready(planned)
    assert store.is_ready(store.sync(planned, quiet))


def test_versions_of_another_interpreter() -> None:
    assert store.versions(store.current())["pytest"] == pytest.__version__
    with pytest.raises(EnvironmentFailed, match=r"^/no/such/python: .*No such file"):
        store.versions(Path("/no/such/python"))


def test_versions_are_those_that_a_worker_can_import(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker in another Python than this one gets no PYTHONPATH; its marker named a package of that."""
    (tmp_path / "elsewhere" / "packaging-9.9.9.dist-info").mkdir(parents=True)
    metadata = "Metadata-Version: 2.1\nName: packaging\nVersion: 9.9.9\n"
    (tmp_path / "elsewhere" / "packaging-9.9.9.dist-info" / "METADATA").write_text(metadata)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "elsewhere"))
    made = store.sync(plan(adapter(), cuda=False), quiet)
    assert store.versions(made.python) == {"packaging": "24.2"}
    (made.folder / "snnbench.json").unlink()  # as an interpreter that the user names
    assert store.versions(made.python)["packaging"] == "24.2"
    assert store.versions(store.current())["packaging"] == "9.9.9"


def test_marker_is_plain_json(home: Path) -> None:
    made = store.sync(plan(adapter(), cuda=False), quiet)
    marker = json.loads((made.folder / "snnbench.json").read_text())
    assert marker.keys() == {"adapters", "versions", "created", *store.PINNED_FIELDS}


def test_environments_are_made_for_the_named_device(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header = (
        "# /// script\n# requires-python = '>=3.11'\n# dependencies = ['packaging==24.2']\n# [tool.snnbench]\n"
        "# cuda = ['six==1.16.0']\n# ///\nBACKEND = 'numpy'\ndef build(case, weights, variant): ...\n"
    )
    files = [tmp_path / "both.py", tmp_path / "cards.py"]
    for path, devices in zip(files, ("", "DEVICES = ('cuda',)\n"), strict=True):
        path.write_text(header + devices)

    def made(device: Device) -> dict[str, str]:
        sync(["both", "cards"], files, device=device)
        return dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())

    plain, cuda = made(Device.cpu), made(Device.cuda)
    assert plain["cards"] == "not made: it needs a CUDA device"
    assert cuda["both"] == cuda["cards"] != plain["both"]
    has_six = [bool(list(Path(folder).glob("lib/*/site-packages/six.py"))) for folder in (plain["both"], cuda["both"])]
    assert has_six == [False, True]


def test_variant_may_require_another_python(tmp_path: Path) -> None:
    """A release of NumPy may have no wheel for this Python, and uv would try to build it."""
    own = '# [tool.snnbench.variants.old]\n# requires-python = "==3.11.*"\n'
    path = tmp_path / "two.py"
    path.write_text(
        f'# /// script\n{own}# ///\nBACKEND = "numpy"\nVARIANTS = {{"new": "", "old": ""}}\n'
        "def neuron(case, variant): ...\n"
    )
    two = discover([path])["two"]
    plans = {name: store.plan(two, name, cuda=True) for name in two.variants}
    assert (plans["new"].requires_python, plans["old"].requires_python) == (">=3.11", "==3.11.*")
    assert plans["old"].interpreter in (sys.executable, "==3.11.*")
