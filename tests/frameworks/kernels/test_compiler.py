"""Tests of compilation at first use, the cache of compiled code, and the message about a missing compiler."""

import subprocess
import sys
from collections.abc import Iterator
from ctypes import c_int
from pathlib import Path

import pytest

from snnbench.kernels import compiler

SOURCE = "int answer(void) { return ANSWER; }\n"


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """An own cache folder, and cleared in-process caches of the machine's compiler."""
    monkeypatch.setenv("SNNBENCH_HOME", str(tmp_path / "home"))
    caches = (compiler.compiler, compiler.cpp_compiler, compiler._version, compiler._processor)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


def source(folder: Path, text: str = SOURCE) -> Path:
    (folder / "answer.c").write_text(text)
    return folder / "answer.c"


def answer(path: Path, value: int) -> int:
    function = compiler.library(path, {"ANSWER": str(value)}).answer
    function.restype = c_int
    return int(function())


def test_set_of_macros_is_compiled_once_and_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = source(tmp_path)
    assert (answer(path, 4), answer(path, 5)) == (4, 5)
    assert len(list(compiler.cache_folder().glob("answer-*.so"))) == 2
    monkeypatch.setattr(compiler, "_compile", lambda *_: pytest.fail("compiled again"))
    assert answer(path, 4) == 4


def test_processes_that_need_one_library_compile_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, log, slow = source(tmp_path), tmp_path / "log", tmp_path / "cc"
    slow.write_text(f'#!/bin/sh\n[ "$1" = --version ] || {{ echo compiled >> {log}; sleep 0.5; }}\nexec cc "$@"\n')
    slow.chmod(0o755)
    monkeypatch.setenv("CC", str(slow))
    loading = "import sys, pathlib; from snnbench.kernels import compiler; " + (
        "print(compiler.library(pathlib.Path(sys.argv[1]), {'ANSWER': '4'}).answer())"
    )
    command = [sys.executable, "-c", loading, str(path)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.communicate()[0] for process in processes] == ["4\n"] * 3
    assert log.read_text() == "compiled\n"
    assert [entry.suffix for entry in compiler.cache_folder().iterdir()] == [".so"]


def test_changed_text_is_another_library(tmp_path: Path) -> None:
    assert answer(source(tmp_path), 4) == 4
    assert answer(source(tmp_path, "int answer(void) { return -ANSWER; }\n"), 4) == -4


def test_another_processor_is_another_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(source(tmp_path), 4)
    monkeypatch.setattr(compiler, "_processor", lambda: "of another kind")
    answer(source(tmp_path), 4)
    assert len(list(compiler.cache_folder().glob("*.so"))) == 2


def test_missing_compiler_error_names_the_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CC", "/nowhere/cc")
    with pytest.raises(compiler.Unavailable, match="install gcc"):
        compiler.compiler()


def test_the_compiler_s_own_error_is_passed_on(tmp_path: Path) -> None:
    with pytest.raises(compiler.Unavailable, match=r"error.*set CC") as error:
        answer(source(tmp_path, "int answer(void) { return nothing; }\n"), 4)
    assert "\n" not in str(error.value)
    assert not list(compiler.cache_folder().glob("*.so"))


def test_unwritable_folder_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SNNBENCH_HOME", str(tmp_path / "file"))
    with pytest.raises(compiler.Unavailable, match="SNNBENCH_HOME"):
        answer(source(tmp_path), 4)
