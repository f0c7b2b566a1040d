"""Preparation: the setup of each side of a request, with its adapters, environments and variables."""

from collections.abc import Mapping, Sequence
from typing import Any

from snnbench import workloads
from snnbench.adapter.contender import Work
from snnbench.adapter.declaration import Adapter
from snnbench.environments import Env
from snnbench.environments.interpreters import interpreters, place_of, unmanaged
from snnbench.environments.uv_program import EnvironmentFailed
from snnbench.machine import description, gpus
from snnbench.plan.config import Protocol
from snnbench.plan.side import Side, SideError
from snnbench.run.progress import bar, say
from snnbench.run.request import RunRequest
from snnbench.run.setup import RunContext, Setup


def prepare(request: RunRequest, works: Sequence[Work], adapters: dict[str, Adapter], cuda: bool) -> dict[str, Setup]:
    """The setup of the works, by side. Missing environments and missing generated data are made.

    Raises SideError, AdapterError, EnvironmentFailed, DatasetError.
    """
    for case in dict.fromkeys(work.case for work in works):
        with bar("samples generated") as each:
            workloads.of(case).prepare(case, each)
    if request.test is None:
        return {"": Setup(adapters, interpreters(works, adapters, request.env is Env.managed, cuda, say))}
    sides = request.test.sides
    setups = {name: _setup(name, side, works, adapters, request.env, cuda) for name, side in sides.items()}
    _require_a_pair(works, setups)
    (_, *base), (_, *new) = content(setups)
    texts = [set(side.texts) for side in sides.values()]
    if base == new and texts[0] != texts[1]:
        raise SideError("both sides come to the same adapters, environments and variables: nothing to compare")
    return setups


def context(works: Sequence[Work], adapters: Mapping[str, Adapter], env: Env, protocol: Protocol) -> RunContext:
    """What a command runs works with that prints their records. Missing environments are made."""
    facts = description.facts()
    setup = Setup(adapters, interpreters(works, adapters, env is Env.managed, gpus.has_cuda(), say))
    return RunContext({"": setup}, protocol, description.model(facts), description.memory_bytes(facts), say)


def _require_a_pair(works: Sequence[Work], setups: Mapping[str, Setup]) -> None:
    """Raise EnvironmentFailed if no work has an environment on both sides: there would be nothing to compare."""
    problems: list[str] = []
    for work in works:
        pair = [setup.interpreter((work.library, work.variant), work.case).problem for setup in setups.values()]
        if not any(pair):
            return
        problems += filter(None, pair)
    raise EnvironmentFailed(problems[0])


def content(setups: Mapping[str, Setup]) -> list[Any]:
    """The content of each side, for a digest: a continued run must not pair trials of different files."""
    return [
        [
            name,
            sorted(
                (*contender, setup.adapters[contender[0]].digest, python.key)
                for (contender, _), python in setup.interpreters.items()
            ),
            sorted(setup.variables.items()),
        ]
        for name, setup in setups.items()
    ]


def _setup(
    name: str, side: Side, works: Sequence[Work], adapters: Mapping[str, Adapter], env: Env, cuda: bool
) -> Setup:
    """The setup of the works on one side."""
    if side.requirements and (env is Env.current or side.python):
        raise SideError(f"{side.title}: nothing is installed into a Python of your own; leave out --env and python=")
    own = side.adapters(adapters)
    for work in works:
        if work.library not in own:
            raise SideError(f"{name} has no adapter {work.library}: name its file, too, with --{name}")
        if work.variant not in own[work.library].variants:
            raise SideError(f"{own[work.library].path}: has no variant {work.variant!r}, which the config asks for")
    if side.python:
        interpreter = unmanaged(side.python, "python")
        alike = {place_of((work.library, work.variant), work.case): interpreter for work in works}
        return Setup(own, alike, side.variables)
    return Setup(own, interpreters(works, own, env is Env.managed, cuda, say), side.variables)
