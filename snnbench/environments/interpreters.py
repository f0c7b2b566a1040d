"""Interpreters: the Python of each contender, in a managed environment or in the current one."""

import platform
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from snnbench.adapter.contender import Contender, Work
from snnbench.adapter.declaration import Adapter
from snnbench.digest import digest
from snnbench.environments import store
from snnbench.environments.uv_program import EnvironmentFailed

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The Python of an adapter. `key` names its installed packages; `problem` says why it is unavailable."""

    python: Path
    key: str
    versions: dict[str, str]
    problem: str = ""


def unmanaged(python: Path, name: str) -> Interpreter:
    """An interpreter with its installed packages; its key begins with `name`. Raises EnvironmentFailed."""
    versions = store.versions(python)
    number = platform.python_version() if python == store.current() else store.python_version(python)
    return Interpreter(python, f"{name}-{digest([number, versions])}", versions)


def interpreters(
    works: Iterable[Work], adapters: Mapping[str, Adapter], managed: bool, cuda: bool, say: Say
) -> dict[Contender, Interpreter]:
    """An interpreter for each contender. A missing environment is made only if one of its works can run here."""
    wanted: dict[Contender, bool] = {}
    for work in works:
        contender = work.library, work.variant
        declined = adapters[work.library].variants[work.variant].refusal(work.case)
        runs = not declined and (cuda or not work.case.device.startswith("cuda"))
        wanted[contender] = wanted.get(contender, False) or runs
    if not managed:
        return dict.fromkeys(wanted, unmanaged(store.current(), "current"))
    by_contender = {}
    for (library, variant), runs in wanted.items():
        adapter = adapters[library]
        try:
            environment = store.plan(adapter, variant, cuda)
            if runs:
                store.sync(environment, say)
            versions = store.versions(environment.python) if store.is_ready(environment) else {}
            by_contender[library, variant] = Interpreter(environment.python, environment.key, versions)
        except EnvironmentFailed as error:
            by_contender[library, variant] = Interpreter(Path(), "", {}, str(error))
    return by_contender
