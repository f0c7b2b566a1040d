"""Bytecode of an environment, taken from another environment that shares the source file, or compiled.

Workers must not compile what they import: it would count as part of their first call. uv links one file of its cache
into every environment, and the bytecode of such a file is the same in all of them. Python puts the right path into
bytecode when it loads it.
"""

import os
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

PACKAGES = "lib/python*/site-packages"
NOT_COMPILED = r"[/\\]tests[/\\]"
"""Files that no worker imports."""


def prepare(python: Path, folder: Path, others: Iterable[Path], keep: Sequence[int] = ()) -> None:
    """Give every module in the environment `folder` its bytecode; `others` are complete environments.

    Descriptors in `keep` stay open in the compiler. A file that is no valid source stays without bytecode.
    """
    complete = list(others)
    for packages in folder.glob(PACKAGES):
        donors = [other / packages.relative_to(folder) for other in complete]
        tag = packages.parent.name.replace("python", "cpython-").replace(".", "")
        for source in _shared(packages):
            _link(source, [donor / source.relative_to(packages) for donor in donors], f"{source.stem}.{tag}.pyc")
        command: list[str | Path] = [python, "-m", "compileall", "-q", "-q", "-j", "0", "-x", NOT_COMPILED, packages]
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=list(keep), check=False)


def _shared(packages: Path) -> Iterator[Path]:
    """The modules that are the same file as one elsewhere."""
    for folder, _, names in os.walk(packages):
        sources = (Path(folder, name) for name in names if name.endswith(".py"))
        yield from (source for source in sources if source.stat().st_nlink > 1)


def _link(source: Path, twins: Iterable[Path], name: str) -> None:
    """Link the bytecode file `name` of the first twin that is the same file as the source and has bytecode."""
    for twin in twins:
        with suppress(OSError):
            if os.path.samefile(source, twin):
                cache = source.parent / "__pycache__"
                cache.mkdir(exist_ok=True)
                os.link(twin.parent / "__pycache__" / name, cache / name)
                return
