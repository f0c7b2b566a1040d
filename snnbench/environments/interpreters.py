"""Interpreters: the Python of each contender, in a managed environment or in the current one."""

import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from snnbench import workloads
from snnbench.adapter.contender import Contender, Work
from snnbench.adapter.declaration import Adapter
from snnbench.cases.case import Case
from snnbench.digest import digest
from snnbench.environments import store
from snnbench.environments.store import Environment
from snnbench.environments.uv_program import EnvironmentFailed

Say = Callable[[str], None]
SIDE_BY_SIDE = 2
"""Environments that are made at once. More of them would compile modules that one takes from another made before."""
EnvironmentKey = tuple[Contender, tuple[str, ...]]
"""A contender, and the packages that its work needs beside those of its adapter: works of one place share a Python."""


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


def place_of(contender: Contender, case: Case) -> EnvironmentKey:
    """The place of a contender's work on a case."""
    return contender, workloads.packages(case.workload)[0]


def interpreters(
    works: Iterable[Work], adapters: Mapping[str, Adapter], managed: bool, cuda: bool, say: Say
) -> dict[EnvironmentKey, Interpreter]:
    """An interpreter for each place. A missing environment is made only if one of its works can run here."""
    wanted: dict[EnvironmentKey, tuple[str, bool]] = {}
    for work in works:
        there = place_of((work.library, work.variant), work.case)
        adapter = adapters[work.library]
        is_exchanged = bool(work.case.nir_graph and adapter.exchanges)
        declined = adapter.variants[work.variant].refusal(work.case) and not is_exchanged
        runs = not declined and (cuda or not work.case.device.startswith("cuda"))
        wanted[there] = work.case.workload, runs or wanted.get(there, ("", False))[1]
    if not managed:
        return dict.fromkeys(wanted, unmanaged(store.current(), "current"))
    planned: dict[EnvironmentKey, Environment | EnvironmentFailed] = {}
    for there, (workload, _) in wanted.items():
        (library, variant), _ = there
        try:
            planned[there] = store.plan(adapters[library], variant, cuda, workload)
        except EnvironmentFailed as error:
            planned[there] = error
    made = _made([one for there, one in planned.items() if wanted[there][1] and isinstance(one, Environment)], say)
    by_place = {}
    for there, one in planned.items():
        try:
            if isinstance(one, EnvironmentFailed):
                raise one
            if failure := made.get(one.key):
                raise failure
            if wanted[there][1]:
                store.sync(one, say)  # it is there, and gets the names of all of its adapters
            versions = store.versions(one.python) if store.is_ready(one) else {}
            by_place[there] = Interpreter(one.python, one.key, versions)
        except EnvironmentFailed as error:
            by_place[there] = Interpreter(Path(), "", {}, str(error))
    return by_place


def _made(environments: Sequence[Environment], say: Say) -> dict[str, EnvironmentFailed]:
    """Make the missing ones of these environments side by side. Returns the failures, by key."""
    missing = {one.key: one for one in environments if not store.is_ready(one)}
    if not missing:
        return {}
    with ThreadPoolExecutor(SIDE_BY_SIDE) as threads:
        ends = {key: threads.submit(store.sync, one, say) for key, one in missing.items()}
    failures = {}
    for key, end in ends.items():
        try:
            end.result()
        except EnvironmentFailed as error:
            failures[key] = error
    return failures
