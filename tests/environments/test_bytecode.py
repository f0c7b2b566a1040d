"""Tests of bytecode: linked from an environment with the same source file, compiled otherwise, right when imported."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from snnbench.environments import bytecode

PACKAGES = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
TAG = sys.implementation.cache_tag


def environment(folder: Path, **modules: str) -> Path:
    """A folder laid out as an environment, with these modules."""
    (folder / PACKAGES).mkdir(parents=True)
    for name, text in modules.items():
        (folder / PACKAGES / f"{name}.py").write_text(text)
    return folder


def compiled(folder: Path, name: str) -> Path:
    return folder / PACKAGES / "__pycache__" / f"{name}.{TAG}.pyc"


@pytest.fixture
def donor(tmp_path: Path) -> Path:
    """A complete environment with bytecode."""
    made = environment(
        tmp_path / "donor", shared="value = __file__\ndef where():\n    return 1 / 0\n", own="value = 1\n"
    )
    bytecode.prepare(Path(sys.executable), made, [])
    return made


def test_every_module_is_compiled(donor: Path) -> None:
    assert compiled(donor, "shared").is_file() and compiled(donor, "own").is_file()


def test_settings_of_the_caller_do_not_change_the_bytecode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With PYTHONOPTIMIZE or PYTHONPYCACHEPREFIX the compiler wrote files that a worker does not read."""
    monkeypatch.setenv("PYTHONOPTIMIZE", "2")
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path / "elsewhere"))
    new = environment(tmp_path / "new", own="value = 1\n")
    bytecode.prepare(Path(sys.executable), new, [])
    assert compiled(new, "own").is_file()


def test_bytecode_of_a_shared_file_is_linked(tmp_path: Path, donor: Path) -> None:
    new = environment(tmp_path / "new", own="value = 2\n")
    os.link(donor / PACKAGES / "shared.py", new / PACKAGES / "shared.py")
    bytecode.prepare(Path(sys.executable), new, [donor])
    assert compiled(new, "shared").samefile(compiled(donor, "shared"))
    assert not compiled(new, "own").samefile(compiled(donor, "own"))


def test_module_with_linked_bytecode_is_not_compiled_again(tmp_path: Path, donor: Path) -> None:
    new = environment(tmp_path / "new", own="value = 2\n")
    os.link(donor / PACKAGES / "shared.py", new / PACKAGES / "shared.py")
    assert TAG is not None
    missing = bytecode._not_linked(str(new / PACKAGES), [str(donor / PACKAGES)], TAG)
    assert missing == [str(new / PACKAGES / "own.py")]


def test_linked_bytecode_names_the_file_that_was_imported(tmp_path: Path, donor: Path) -> None:
    new = environment(tmp_path / "new")
    os.link(donor / PACKAGES / "shared.py", new / PACKAGES / "shared.py")
    bytecode.prepare(Path(sys.executable), new, [donor])
    program = (
        "import shared, traceback\nprint(shared.__cached__)\n"
        "try:\n    shared.where()\nexcept ZeroDivisionError:\n    print(traceback.format_exc())"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(new / PACKAGES)},
        text=True,
        capture_output=True,
        check=True,
    ).stdout
    assert str(compiled(new, "shared")) in shown and f'File "{new / PACKAGES / "shared.py"}"' in shown
    assert str(donor) not in shown


def test_tests_and_invalid_sources_stay_without_bytecode(tmp_path: Path) -> None:
    new = environment(tmp_path / "new", broken="def :\n", good="value = 1\n")
    (new / PACKAGES / "package" / "tests").mkdir(parents=True)
    (new / PACKAGES / "package" / "tests" / "test_it.py").write_text("value = 1\n")
    bytecode.prepare(Path(sys.executable), new, [])
    assert [path.name for path in new.rglob("*.pyc")] == [f"good.{TAG}.pyc"]
