"""The CUDA compiler of an environment, from NVIDIA's packages: it compiles code against the PyTorch beside it."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

COMPILER = "lib/python*/site-packages/nvidia/*/bin/nvcc"
ARCHITECTURES = "7.5;8.0;9.0+PTX"
"""Code that an environment keeps is compiled for these on any machine. Newer cards compile the last one's PTX."""


def prepare(environment: Path) -> dict[str, str]:
    """Complete the toolkit in an environment's folder. Returns the variables for a build; empty without a compiler."""
    compiler = next(environment.glob(COMPILER), None)
    if compiler is None:
        return {}
    home = compiler.parents[1]
    with suppress(FileExistsError):
        (home / "lib64").symlink_to("lib")  # PyTorch links with what lies there
    for library in (home / "lib").glob("libcudart.so.*"):  # packages have no names without a version
        with suppress(FileExistsError):
            library.with_name("libcudart.so").symlink_to(library.name)
    return variables(environment) | {"TORCH_CUDA_ARCH_LIST": ARCHITECTURES}


def variables(environment: Path, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables by which PyTorch finds the compiler of an environment, and ninja; empty without a compiler."""
    compiler = next(environment.glob(COMPILER), None)
    if compiler is None:
        return {}
    path = os.pathsep.join((str(environment / "bin"), environ.get("PATH", os.defpath)))
    return {"CUDA_HOME": str(compiler.parents[1]), "PATH": path}
