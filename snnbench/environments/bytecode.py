"""Bytecode of an environment, taken from another environment that shares the source file, or compiled.

Workers must not compile what they import: it would count as part of their first call. uv links one file of its cache
into every environment, and the bytecode of such a file is the same in all of them. Python puts the right path into
bytecode when it loads it.
"""

import os
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

PACKAGES = "lib/python*/site-packages"
NOT_COMPILED = "tests"
"""The name of folders with files that no worker imports."""
COMPILE = """
import sys
from compileall import compile_file
from concurrent.futures import ProcessPoolExecutor
from functools import partial
with ProcessPoolExecutor() as pool:
    list(pool.map(partial(compile_file, quiet=2), sys.stdin.read().splitlines(), chunksize=16))
"""
"""`python -m compileall` of the files on standard input: that command has one process for named files."""


def prepare(python: Path, folder: Path, others: Iterable[Path], keep: Sequence[int] = ()) -> None:
    """Give every module in the environment `folder` its bytecode; `others` are complete environments.

    Descriptors in `keep` stay open in the compiler. A file that is no valid source stays without bytecode.
    """
    complete = list(others)
    for packages in folder.glob(PACKAGES):
        donors = [str(other / packages.relative_to(folder)) for other in complete]
        tag = packages.parent.name.replace("python", "cpython-").replace(".", "")
        missing = _not_linked(str(packages), donors, tag)
        command: list[str | Path] = [python, "-I", "-W", "ignore", "-c", COMPILE]
        subprocess.run(
            command, input="\n".join(missing), text=True, stdout=subprocess.DEVNULL, pass_fds=list(keep), check=False
        )


def _not_linked(packages: str, donors: Sequence[str], tag: str) -> list[str]:
    """The modules whose bytecode must be compiled, once that of the others is linked."""
    missing = []
    for folder, _, names in os.walk(packages):
        inside = os.path.relpath(folder, packages)
        if NOT_COMPILED in inside.split(os.sep):
            continue
        twins = [twin for donor in donors if os.path.isdir(twin := os.path.join(donor, inside))]
        for name in names:
            stem, extension = os.path.splitext(name)
            if extension == ".py" and not _link(folder, name, twins, f"{stem}.{tag}.pyc"):
                missing.append(os.path.join(folder, name))
    return missing


def _link(folder: str, source: str, twins: Iterable[str], name: str) -> bool:
    """Link the bytecode file `name` of a module from the first folder that has the same file, and its bytecode."""
    own = os.stat(os.path.join(folder, source))
    if own.st_nlink == 1:
        return False
    for twin in twins:
        with suppress(OSError):
            if os.path.samestat(own, os.stat(os.path.join(twin, source))):
                cache = os.path.join(folder, "__pycache__")
                os.makedirs(cache, exist_ok=True)
                os.link(os.path.join(twin, "__pycache__", name), os.path.join(cache, name))
                return True
    return False
