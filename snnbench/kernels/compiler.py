"""The machine's compilers of C and C++, and a cache folder for libraries: compiled at first use, kept between runs."""

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from ctypes import CDLL
from functools import cache
from pathlib import Path

from snnbench.adapter.refusal import Unavailable
from snnbench.files import home, lock

FLAGS = ("-O3", "-march=native", "-fopenmp", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")
"""No contraction and no reassociation: vector code gives the results of scalar code."""
CPP_FLAGS = ("-O2", "-std=c++20")
SHARED = ("-shared", "-fPIC")
OTHER_KERNEL = "or use the kernel 'torch', which needs none"


def cache_folder() -> Path:
    """The folder of compiled kernels: under SNNBENCH_HOME, or the user's cache folder."""
    return home() / "kernels"


@cache
def compiler() -> str:
    """The compiler's path: $CC, else cc, gcc or clang. Raises Unavailable."""
    for name in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        if name and (path := shutil.which(name)):
            return path
    raise Unavailable(f"no C compiler on this machine: install gcc, set CC, {OTHER_KERNEL}")


@cache
def cpp_compiler() -> str:
    """The path of the C++ compiler: $CXX, else c++, g++ or clang++. Raises Unavailable."""
    for name in (os.environ.get("CXX", ""), "c++", "g++", "clang++"):
        if name and (path := shutil.which(name)):
            return path
    raise Unavailable("no C++ compiler on this machine: install g++, or set CXX")


def library(source: Path, macros: Mapping[str, str], *headers: Path) -> CDLL:
    """The shared library of `source` with these macros, compiled if this machine has not done so before.

    The file's name is a hash of all its inputs: the texts of `source` and of the `headers` that it includes, macros,
    flags, compiler and processor. Raises Unavailable.
    """
    command = [compiler(), *FLAGS, *SHARED, *(f"-D{name}={value}" for name, value in macros.items())]
    path = _cached(source, headers, *command, _version(command[0]), _processor())
    if not path.exists():
        _compile(
            [*command, str(source), "-lm"], path, f"set CC to a compiler with OpenMP (gcc 12 or newer), {OTHER_KERNEL}"
        )
    return CDLL(str(path))


def cpp_library(source: Path, headers: Sequence[Path], folders: Sequence[str], made_for: Sequence[str]) -> Path:
    """The path of a shared library in C++, compiled like the other libraries.

    `folders` are options that name folders and libraries of a framework. Where they are does not matter, so `made_for`
    says which version of it they belong to. Raises Unavailable.
    """
    command = [cpp_compiler(), *CPP_FLAGS, *SHARED]
    path = _cached(source, headers, *command, _version(command[0]), *made_for)
    if not path.exists():
        _compile([*command, str(source), *folders], path, "set CXX to a C++ compiler (g++ 12 or newer)")
    return path


def _cached(source: Path, headers: Sequence[Path], *others: str) -> Path:
    """The path of the library that is made of these files and words."""
    made_of = [*(path.read_text(encoding="utf-8") for path in (source, *headers)), *others]
    digest = hashlib.sha256(chr(0).join(made_of).encode()).hexdigest()[:20]
    return cache_folder() / f"{source.stem}{source.suffix.replace('.', '-')}-{digest}.so"


def _compile(command: list[str], path: Path, remedy: str) -> None:
    """Compile under another name first, so that no process finds an incomplete file. Raises Unavailable.

    Of several processes that need the file at once, one compiles it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(path), tempfile.TemporaryDirectory(dir=path.parent) as folder:
            if path.exists():
                return
            fresh = Path(folder) / path.name
            done = subprocess.run([*command, "-o", str(fresh)], capture_output=True, text=True)
            if done.returncode:
                lines = (done.stderr.strip() or "without a word").splitlines()
                line = next((one for one in lines if "error" in one), lines[-1])
                raise Unavailable(f"{command[0]} failed: {line}; {remedy}")
            fresh.replace(path)
    except OSError as error:
        step = f"set SNNBENCH_HOME to a folder that can be written, {OTHER_KERNEL}"
        raise Unavailable(f"{path.parent}: {error.strerror}; {step}") from error


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Wait for the process that makes this file, if there is one."""
    locked = path.with_suffix(".lock")
    with locked.open("w") as stream:
        lock(stream)
        try:
            yield
        finally:
            locked.unlink(missing_ok=True)


@cache
def _version(compiler: str) -> str:
    return subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout.partition("\n")[0]


@cache
def _processor() -> str:
    """The processor that -march=native depends on, because different machines may share a cache."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor()
    lines = text.split("\n\n")[0].splitlines()
    fields = ("model name", "flags", "Features", "CPU part", "cpu family", "model\t")
    return "\n".join(line for line in lines if line.startswith(fields))
