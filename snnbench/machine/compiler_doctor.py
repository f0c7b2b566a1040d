"""The doctor's checks of compilers, which libraries need to compile kernels at run time."""

import shutil
import sysconfig
from collections.abc import Iterator, Mapping
from ctypes.util import find_library
from pathlib import Path

from snnbench.machine.diagnosis import Diagnosis


def c_modules(environ: Mapping[str, str], include: Path) -> Iterator[Diagnosis]:
    """Diagnoses of a C compiler and Python's headers: with an empty cache, Triton compiles a C module at its start."""
    use = "Triton, torch.compile and the kernels in C compile when they run"
    yield _compiler("C", environ.get("CC"), "CC", ("gcc", "clang"), use)
    if (include / "Python.h").is_file():
        yield Diagnosis("Python headers", "well", str(include / "Python.h"))
    else:
        what = f"no {include / 'Python.h'}: the C module of Triton includes it"
        version = sysconfig.get_python_version()
        step = f"sudo apt install python3-dev, or python{version}-dev where the system's Python is another one"
        yield Diagnosis("Python headers", "spoils", what, step)


def cpp_compiler(environ: Mapping[str, str]) -> Iterator[Diagnosis]:
    """The diagnosis of a C++ compiler."""
    use = "torch.compile and the kernels for the CPU compile when they run"
    yield _compiler("C++", environ.get("CXX"), "CXX", ("g++", "clang++"), use)


def _compiler(language: str, named: str | None, variable: str, names: tuple[str, str], use: str) -> Diagnosis:
    """The diagnosis of the compiler that the environment names, or else on the first of these `names`."""
    path = next((found for name in ([named] if named else names) if (found := shutil.which(name))), None)
    if path:
        return Diagnosis(f"{language} compiler", "well", path)
    gnu, other = names
    what = f"{variable}={named} is not on the PATH" if named else f"neither {gnu} nor {other} is on the PATH"
    return Diagnosis(f"{language} compiler", "spoils", f"{what}: {use}", f"sudo apt install {gnu}, or set {variable}")


def include_folder() -> Path:
    """Triton's folder for Python's headers. Debian's scheme `posix_local` names one in /usr/local without headers."""
    scheme = sysconfig.get_default_scheme()
    return Path(sysconfig.get_paths("posix_prefix" if scheme == "posix_local" else scheme)["include"])


def nvrtc(versions: Mapping[str, str] | None) -> Diagnosis:
    """The diagnosis of NVRTC, NVIDIA's run-time compiler, for a Python with these distributions.

    None stands for managed environments.
    """
    if versions is None:
        return Diagnosis("NVRTC", "well", "PyTorch and cuda-core bring it into their environments")
    packages = [f"{name} {version}" for name, version in versions.items() if name.startswith("nvidia-cuda-nvrtc")]
    if origins := packages or [name for name in [find_library("nvrtc")] if name]:
        return Diagnosis("NVRTC", "well", origins[0])
    what = "neither in this Python nor among the machine's libraries: kernels in CUDA C++ cannot be compiled"
    return Diagnosis("NVRTC", "spoils", what, "pip install nvidia-cuda-nvrtc")
