"""Tests of the doctor's check of compilers, with a PATH and a folder of headers that the test makes."""

from pathlib import Path

import pytest

from snnbench.machine import compiler_doctor


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on the PATH; empty."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_compiler_and_headers_are_found(path: Path, tmp_path: Path) -> None:
    gcc = program(path / "gcc")
    (tmp_path / "Python.h").write_text("")
    compiler, headers = compiler_doctor.c_modules({}, tmp_path)
    assert (compiler.state, compiler.what) == ("well", str(gcc))
    assert headers.state == "well"


def test_missing_compiler_and_headers_name_their_packages(path: Path, tmp_path: Path) -> None:
    compiler, headers = compiler_doctor.c_modules({}, tmp_path)
    assert compiler.state == headers.state == "spoils"
    assert "neither gcc nor clang" in compiler.what and "apt install gcc" in compiler.step
    assert "Triton" in headers.what and "python3-dev" in headers.step


def test_invalid_cc_does_not_fall_back_to_gcc(path: Path, tmp_path: Path) -> None:
    program(path / "gcc")
    compiler, _ = compiler_doctor.c_modules({"CC": "icc"}, tmp_path)
    assert compiler.state == "spoils" and "CC=icc" in compiler.what


def test_clang_suffices(path: Path, tmp_path: Path) -> None:
    program(path / "clang")
    compiler, _ = compiler_doctor.c_modules({}, tmp_path)
    assert compiler.state == "well"


def test_cpp_compiler_is_found_or_named(path: Path) -> None:
    (missing,) = compiler_doctor.cpp_compiler({})
    assert missing.state == "spoils" and "apt install g++" in missing.step
    compiler = program(path / "g++")
    (present,) = compiler_doctor.cpp_compiler({})
    assert (present.state, present.what) == ("well", str(compiler))
    (other,) = compiler_doctor.cpp_compiler({"CXX": "icpc"})
    assert other.state == "spoils" and "CXX=icpc" in other.what


def test_headers_are_searched_in_tritons_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = compiler_doctor.include_folder()
    assert expected.name.startswith("python3")
    monkeypatch.setattr(compiler_doctor.sysconfig, "get_default_scheme", lambda: "posix_local")
    assert compiler_doctor.include_folder() == expected


def test_nvrtc_comes_from_environments_a_package_or_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler_doctor, "find_library", lambda name: None)
    assert compiler_doctor.nvrtc(None).state == "well"
    assert compiler_doctor.nvrtc({"nvidia-cuda-nvrtc": "13.0.88"}).what == "nvidia-cuda-nvrtc 13.0.88"
    missing = compiler_doctor.nvrtc({"torch": "2.13.0"})
    assert missing.state == "spoils" and "nvidia-cuda-nvrtc" in missing.step
    monkeypatch.setattr(compiler_doctor, "find_library", lambda name: f"lib{name}.so.13")
    assert compiler_doctor.nvrtc({}).what == "libnvrtc.so.13"
